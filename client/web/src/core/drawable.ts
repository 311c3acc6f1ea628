// Whether a stretch of the time is one that a chart can show. The contract takes times that no clock has had: where numbers
// lie farther apart than pixels an axis has no ticks, and who counts on from one to the next never comes to an end.
import type { AxisKind, Range } from "./range";
import { isTellable } from "./time_text";

/** So many places of a stretch have to be told apart: pixels of a wide window. */
const placesLeast = 2048;

/** From a number to the next larger one; at a power of two it may be twice that. */
export function distanceAt(value: number): number {
  return 2 ** (Math.floor(Math.log2(Math.max(1, Math.abs(value)))) - 52);
}

/** Microseconds each: as long as they are told apart a single one is drawn, too. */
export function isDrawable({ start, end }: Range, axis: AxisKind): boolean {
  if (axis === "batch") return true;
  if (!isTellable(start) || !isTellable(end)) return false;
  return end <= Number.MAX_SAFE_INTEGER || end - start >= placesLeast * distanceAt(end);
}
