// What no line can show: samples that are NaN, and infinite ones. A loss that became one of them is what somebody looks
// for, so that it is told in words and has a look of its own. Where there are none, nothing here is asked.
import { countText, rangeText, valueText } from "./units";

/** A bucket with such samples; its numbers as the master told them. */
export interface OddBucket {
  readonly mean: number;
  readonly min: number;
  readonly max: number;
  /** Samples that are NaN, and those that are not. */
  readonly nans: number;
  readonly counted: number;
}

/** Of a line, or of all rows of a heat map. */
export interface OddTotal {
  readonly nans: number;
  /** NaN or not. */
  readonly samples: number;
  readonly hasPlus: boolean;
  readonly hasMinus: boolean;
  /** False = nobody knows in which buckets the NaN are: a comparison tells how many. */
  readonly isPlaced: boolean;
}

/** What is told where the number would be, and beside it, quieter. */
export interface OddWords {
  readonly value: string;
  readonly range: string;
}

/** "NaN" where a bucket has no number; valueText has whole words. */
export function meanText(mean: number, unit: string): string {
  return Number.isNaN(mean) ? "NaN" : valueText(mean, unit);
}

/** "60 of 120 are NaN", with " samples" "60 of 120 samples are NaN"; "" = none is. */
export function nanPart(nans: number, samples: number, what = ""): string {
  return nans === 0 ? "" : `${countText(nans)} of ${countText(samples)}${what} ${nans === 1 ? "is" : "are"} NaN`;
}

export function bucketWords({ mean, min, max, nans, counted }: OddBucket, unit: string): OddWords {
  if (counted === 0) return { value: "NaN", range: "" };
  return { value: meanText(mean, unit), range: [rangeText(min, max, unit), nanPart(nans, nans + counted)].filter((part) => part !== "").join(", ") };
}

/** "60 of 120 samples are NaN; some are +infinity". */
export function totalWords({ nans, samples, hasPlus, hasMinus }: OddTotal): string {
  const infinite = [hasPlus ? "+infinity" : "", hasMinus ? "−infinity" : ""].filter((word) => word !== "").join(" and ");
  if (nans === 0) return infinite === "" ? "" : `some samples are ${infinite}`;
  const all = samples === 1 ? "the only sample is NaN" : `all ${countText(samples)} samples are NaN`;
  const some = nans === samples ? all : nanPart(nans, samples, " samples");
  return infinite === "" ? some : `${some}; some are ${infinite}`;
}

export function summed(totals: readonly OddTotal[]): OddTotal {
  return {
    nans: totals.reduce((sum, one) => sum + one.nans, 0), samples: totals.reduce((sum, one) => sum + one.samples, 0),
    hasPlus: totals.some((one) => one.hasPlus), hasMinus: totals.some((one) => one.hasMinus), isPlaced: totals.every((one) => one.isPlaced),
  };
}

/** A stretch of an axis in which a line has such samples: "NaN", "+∞", "NaN, −∞". */
export interface OddBand {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Of a chart's line; see core/align.ts. */
interface OddLine {
  readonly means: readonly (number | null | undefined)[];
  readonly odd: ReadonlyMap<number, OddBucket>;
}

function bandText(bucket: OddBucket | undefined): string {
  if (!bucket) return "";
  return [bucket.nans > 0 ? "NaN" : "", bucket.max === Infinity ? "+∞" : "", bucket.min === -Infinity ? "−∞" : ""].filter((part) => part !== "").join(", ");
}

/** Neighbours of a line that say the same are one, also where ticks lie apart; so are those of several lines that overlap. */
export function oddBands({ places, width, lines }: { readonly places: readonly number[]; readonly width: number; readonly lines: readonly OddLine[] }): OddBand[] {
  const bands: OddBand[] = [];
  for (const { means, odd } of lines) {
    if (odd.size === 0) continue;
    let said = "";
    means.forEach((mean, row) => {
      if (mean === undefined) return;
      const text = bandText(odd.get(row));
      const [start, end] = [(places[row] ?? 0) - width / 2, (places[row] ?? 0) + width / 2];
      const before = bands[bands.length - 1];
      if (text !== "" && text === said && before) bands[bands.length - 1] = { ...before, end };
      else if (text !== "") bands.push({ start, end, text });
      said = text;
    });
  }
  bands.sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : a.start - b.start));
  const joined: OddBand[] = [];
  for (const band of bands) {
    const before = joined[joined.length - 1];
    if (before?.text === band.text && band.start <= before.end) joined[joined.length - 1] = { ...before, end: Math.max(before.end, band.end) };
    else joined.push(band);
  }
  return joined;
}

/** Rows of numbers between two that are none: no line reaches them. */
export function loneRows({ means }: OddLine): number[] {
  const own: number[] = [];
  means.forEach((mean, row) => mean !== undefined && own.push(row));
  const isNumber = (at: number): boolean => typeof means[own[at] ?? -1] === "number";
  return own.filter((_, at) => isNumber(at) && !isNumber(at - 1) && !isNumber(at + 1));
}
