// What the colours of a heat map stand for, in words: its ends are of 98 of 100 values, what lies beyond them has the
// same colour and is told apart; what lies far beyond has one of its own.
import type { HeatGrid } from "./heat";
import { farEnds } from "./heat_far";
import { valueText } from "./units";

export interface HeatScale {
  /** "100 ms", or "≤ 100 ms" where some lie below. */
  readonly low: string;
  readonly high: string;
  /** "smallest 2.0 %, largest 300 ms"; "" = none lies beyond an end. */
  readonly beyond: string;
  /** "far below: ≤ 2.0 %", "far above: ≥ 519 ms", of those that are there. */
  readonly far: readonly { readonly side: -1 | 1; readonly text: string }[];
}

export function heatScale({ low, high, least, largest }: Pick<HeatGrid, "low" | "high" | "least" | "largest">, unit: string): HeatScale {
  if (Number.isNaN(low)) return { low: "", high: "no finite values", beyond: "", far: [] };
  const [lowText, highText, leastText, largestText] = [low, high, least, largest].map((value) => valueText(value, unit)) as [string, string, string, string];
  // What reads alike is not told twice.
  const [isBelow, isAbove] = [least < low && leastText !== lowText, largest > high && largestText !== highText];
  const ends = farEnds({ low, high });
  return {
    low: isBelow ? `≤ ${lowText}` : lowText, high: isAbove ? `≥ ${highText}` : highText,
    beyond: [isBelow ? `smallest ${leastText}` : "", isAbove ? `largest ${largestText}` : ""].filter((text) => text !== "").join(", "),
    far: [
      ...(least <= ends.below && least < low ? [{ side: -1 as const, text: `far below: ≤ ${valueText(ends.below, unit)}` }] : []),
      ...(largest >= ends.above && largest > high ? [{ side: 1 as const, text: `far above: ≥ ${valueText(ends.above, unit)}` }] : []),
    ],
  };
}
