// Declared gaps as bands of a chart over time or batches. Those without a place there are told in words alone.

import type { AxisKind, Range } from "./range";
import { countText } from "./units";

export interface KnownGap {
  readonly cause: string;
  readonly metricGroup: string;
  readonly writerNo: number;
  readonly missing: number;
  /** 0 = unknown. */
  readonly firstUs: number;
  readonly lastUs: number;
  /** Of the last batch before it and the first behind it, as far as the master knows them. */
  readonly batchBefore: number | null;
  readonly batchAfter: number | null;
  readonly reason: string;
}

export interface GapBand extends Range {
  readonly texts: string[];
}

export function gapText(gap: KnownGap): string {
  const count = gap.missing > 0 ? `${countText(gap.missing)} samples missing` : "number unknown";
  const place = gap.metricGroup === "" ? "" : `, group ${gap.metricGroup}`;
  const reason = gap.reason === "" || gap.reason === gap.cause ? "" : `: ${gap.reason}`;
  return `${gap.cause} (${count}${place})${reason}`;
}

/** Where it lies; null = that is not known. Of one that is known to begin or to end at a batch alone that batch. */
function placeOf(gap: KnownGap, axis: AxisKind): Range | null {
  if (axis === "time") return gap.firstUs > 0 && gap.lastUs >= gap.firstUs ? { start: gap.firstUs, end: gap.lastUs } : null;
  const start = gap.batchBefore ?? gap.batchAfter;
  const end = gap.batchAfter ?? gap.batchBefore;
  return start === null || end === null ? null : { start, end };
}

/** Batches are missing behind the first and before the last. */
function touches(place: Range, range: Range, axis: AxisKind): boolean {
  const isBetween = axis === "batch" && place.start < place.end;
  return isBetween ? place.end > range.start && place.start + 1 < range.end : place.end >= range.start && place.start < range.end;
}

export function gapsWithoutPlace(gaps: readonly KnownGap[], axis: AxisKind): KnownGap[] {
  return gaps.filter((gap) => placeOf(gap, axis) === null);
}

/** Clipped to `range`, then as wide as can be seen, towards its middle where it lies at an end. */
function widened(first: number, last: number, range: Range, widthMin: number): Range {
  const start = Math.max(first, range.start);
  const end = Math.min(last, range.end);
  const pad = Math.max(0, (widthMin - (end - start)) / 2);
  const from = Math.min(Math.max(start - pad, range.start), range.end - 2 * pad);
  return pad === 0 ? { start, end } : { start: from, end: Math.min(range.end, from + (end - start) + 2 * pad) };
}

/** Those of one group, and those of all groups; "" = all. */
export function gapsOfGroup(gaps: readonly KnownGap[], metricGroup: string): KnownGap[] {
  return gaps.filter((gap) => metricGroup === "" || gap.metricGroup === "" || gap.metricGroup === metricGroup);
}

/** Each cause with what is missing because of it: "ring full 1,200; cut off, number unknown". */
export function gapCauses(gaps: readonly KnownGap[]): string {
  const missing = new Map<string, number>();
  for (const gap of gaps) missing.set(gap.cause, (missing.get(gap.cause) ?? 0) + gap.missing);
  return [...missing].map(([cause, count]) => cause + (count > 0 ? ` ${countText(count)}` : ", number unknown")).join("; ");
}

/** Bands that touch `range`, clipped to it, overlapping ones joined; of `metricGroup`, or of all ("").
 *  Each is at least `widthMin` wide, so that one lost tick can be seen and pointed at. */
export function gapBands(gaps: readonly KnownGap[], range: Range, metricGroup: string, widthMin: number, axis: AxisKind): GapBand[] {
  const bands = gapsOfGroup(gaps, metricGroup).flatMap((gap) => {
    const place = placeOf(gap, axis);
    if (!place || !touches(place, range, axis)) return [];
    return [{ ...widened(place.start, place.end, range, widthMin), texts: [gapText(gap)] }];
  });
  return joinedBands(bands);
}

/** By their start; overlapping ones are one, which tells the texts of all. */
export function joinedBands(bands: readonly GapBand[]): GapBand[] {
  const joined: GapBand[] = [];
  for (const band of [...bands].sort((a, b) => a.start - b.start)) {
    const before = joined[joined.length - 1];
    if (before && band.start <= before.end) {
      joined[joined.length - 1] = {
        start: before.start,
        end: Math.max(before.end, band.end),
        texts: [...new Set([...before.texts, ...band.texts])],
      };
    } else {
      joined.push(band);
    }
  }
  return joined;
}

/** What is known of one of several trials that lie side by side, by batch or by the time since each began. */
export interface GapSide {
  readonly name: string;
  /** When it began. */
  readonly startUs: number;
  readonly gaps: readonly KnownGap[];
}

/** As gapBands, over batches or microseconds since each side's start; texts tell whose gap it is. */
export function sideBands(sides: readonly GapSide[], range: Range, metricGroup: string, widthMin: number, axis: AxisKind): GapBand[] {
  return joinedBands(sides.flatMap(({ name, startUs, gaps }) => {
    const begin = axis === "time" ? startUs : 0;
    return gapBands(gaps, { start: range.start + begin, end: range.end + begin }, metricGroup, widthMin, axis)
      .map((band) => ({ start: band.start - begin, end: band.end - begin, texts: band.texts.map((text) => `${name}: ${text}`) }));
  }));
}

/** The band at `place`, or within `slack` of it: a thin one can be pointed at. */
export function bandAt(bands: readonly GapBand[], place: number, slack = 0): GapBand | null {
  return bands.find((band) => place >= band.start - slack && place <= band.end + slack) ?? null;
}
