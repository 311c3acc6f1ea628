// How the axes of a chart are divided and written: room for ticks, what each says, from where to where values reach.
import type { Extent } from "./align";
import type { AxisKind } from "./range";
import { isoText } from "./time_text";

/** Steps of an axis of bytes: powers of two, as its units are. */
export const byteSteps = Array.from({ length: 60 }, (_, power) => 2 ** power);

/** "22:07". */
const minuteSpace = 52;

/** So many pixels of `width` at least for a tick: "22:07:15" does not touch its neighbour, nor do milliseconds. Whole
 *  minutes of the clock need less: on a phone they are two or three then, rather than one; times since a start (`width` is
 *  infinite) have texts of any length. */
export function tickSpace(axis: AxisKind, span: number, width: number): number {
  if (axis !== "time") return 60;
  if ((span * minuteSpace) / width > 30) return minuteSpace;
  return span < 10 ? 104 : 76;
}

/** So much stays free at the right for the half of a tick's text that reaches beyond the last place: "21:04:05", "21:04:05.123". */
export function endSpace(axis: AxisKind, span: number): number {
  return axis === "time" && span < 10 ? 40 : 28;
}

/** Of the axis of values: alike in most charts, wider where its texts are ("18.875 GiB"). */
export function sideWidth(shown: readonly string[] | null): number {
  return Math.max(76, 16 + 7 * Math.max(0, ...(shown ?? []).map((text) => text.length)));
}

/** "17:55", as fine as the step to the next tick (both in seconds). */
export function timeTick(seconds: number, step: number): string {
  const iso = isoText(seconds * 1e6);
  if (step >= 86_400) return iso.slice(5, 10);
  if (seconds % 86_400 === 0) return iso.slice(5, 10);
  if (step >= 60) return iso.slice(11, 16);
  return iso.slice(11, step >= 1 ? 19 : 23);
}

/** From zero where values are of one sign, to 100 for percents; never of no height. */
export function yRange(extent: Extent | null, unit: string): [number, number] {
  if (!extent) return [0, 1];
  const { min, max } = extent;
  if (unit === "percent" && min >= 0 && max <= 100) return [0, 102]; // a line at 100 is seen whole
  const near = min >= 0 && (min < max * 0.6 || min === max);
  const pad = (max - min) * 0.08 || Math.abs(max) * 0.1 || 1;
  // Of the largest of numbers there is none beyond.
  return [near ? 0 : Math.max(-Number.MAX_VALUE, min - pad), Math.min(Number.MAX_VALUE, max + pad)];
}
