// A half-open stretch of an axis, [start, end): microseconds since 1970, or batches. What zooming and
// panning do to it, and how finely it is asked for.

export interface Range {
  readonly start: number;
  readonly end: number;
}

export type AxisKind = "time" | "batch";

/** The last place that a question can name: the contract's numbers of 64 and of 32 bits, the former as far as a double is one. */
export const placeMax: Readonly<Record<AxisKind, number>> = { time: 2 ** 63 - 1024, batch: 2 ** 31 - 1 };

/** null = all there is. */
export function sameRange(one: Range | null, other: Range | null): boolean {
  return one?.start === other?.start && one?.end === other?.end;
}

/** The narrowest stretch that is worth a chart: a millisecond, two batches. */
export function spanMin(axis: AxisKind): number {
  return axis === "time" ? 1000 : 2;
}

/** Whole units, at least the narrowest span, within `bounds` where they are wide enough. */
export function fit(range: Range, bounds: Range, axis: AxisKind): Range {
  const span = Math.max(spanMin(axis), Math.round(range.end - range.start));
  if (span >= bounds.end - bounds.start) return bounds;
  const start = Math.min(Math.max(Math.floor(range.start), bounds.start), bounds.end - span);
  return { start, end: start + span };
}

/** factor 0.5 = half of the span, about `center` (default: the middle). */
export function zoomed(range: Range, factor: number, bounds: Range, axis: AxisKind, center?: number): Range {
  const about = center ?? (range.start + range.end) / 2;
  return fit({ start: about - (about - range.start) * factor, end: about + (range.end - about) * factor }, bounds, axis);
}

/** fraction 0.5 = half a span to the right. */
export function panned(range: Range, fraction: number, bounds: Range, axis: AxisKind): Range {
  const by = (range.end - range.start) * fraction;
  return fit({ start: range.start + by, end: range.end + by }, bounds, axis);
}

/** Server limits: 10,000 buckets a series, a million in all. */
export const bucketsMax = 10_000;
export const bucketsOfAllMax = 1_000_000;

/** One bucket for each pixel, as far as the master answers so many; never more than there are units. */
export function bucketCount(widthPixels: number, seriesCount: number, range: Range | null): number {
  const shared = Math.floor(bucketsOfAllMax / Math.max(1, seriesCount));
  const units = range ? Math.max(1, Math.ceil(range.end - range.start)) : bucketsMax;
  return Math.max(1, Math.min(bucketsMax, shared, units, Math.max(50, Math.ceil(widthPixels))));
}

/** The stretch that is shown while following: `span` until the newest sample. */
export function liveRange(newest: number, span: number, bounds: Range): Range {
  const end = newest + 1;
  return { start: Math.max(bounds.start, end - span), end: Math.max(end, bounds.start + 1) };
}

/** The places of buckets, those that only begin before `end` at the end: the newest value would lie out of sight, and
 *  not count for the height of its chart. */
export function inSight(places: readonly number[], end: number): number[] {
  return places.map((place, at) => {
    const half = at > 0 ? (place - (places[at - 1] ?? place)) / 2 : 0;
    return place > end && place - half <= end ? end : place;
  });
}
