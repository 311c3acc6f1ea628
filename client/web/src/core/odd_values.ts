// What no line can show: samples that are NaN, infinite ones, and means that overflow. A loss that became one of them is what
// somebody looks for, so that it is told in words and has a look of its own. Where there are none, nothing here is asked.
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
  /** Some mean does. */
  readonly hasOverflow: boolean;
}

/** What is told where the number would be, and beside it, quieter. */
export interface OddWords {
  readonly value: string;
  readonly range: string;
}

/** Samples that are finite, whose sum is beyond what a number holds: nobody knows their mean. */
export function overflows({ mean, min, max }: Pick<OddBucket, "mean" | "min" | "max">): boolean {
  return !Number.isFinite(mean) && Number.isFinite(min) && Number.isFinite(max);
}

const overflowWord = "overflow";

/** "NaN" where a bucket has no number, "overflow" where its mean does; valueText has whole words. */
export function meanText(mean: number, unit: string, isOverflow: boolean): string {
  return isOverflow ? overflowWord : Number.isNaN(mean) ? "NaN" : valueText(mean, unit);
}

/** "60 of 120 are NaN", with " samples" "60 of 120 samples are NaN"; "" = none is. */
export function nanPart(nans: number, samples: number, what = ""): string {
  return nans === 0 ? "" : `${countText(nans)} of ${countText(samples)}${what} ${nans === 1 ? "is" : "are"} NaN`;
}

function joinedWords(words: readonly string[], between: string): string {
  return words.filter((word) => word !== "").join(between);
}

export function bucketWords(bucket: OddBucket, unit: string): OddWords {
  const { mean, min, max, nans, counted } = bucket;
  if (counted === 0) return { value: "NaN", range: "" };
  const isOverflow = overflows(bucket);
  // Where there is no mean, what the samples are is told even where they are alike.
  const range = rangeText(min, max, unit) || (isOverflow ? valueText(min, unit) : "");
  return { value: meanText(mean, unit, isOverflow), range: joinedWords([range, nanPart(nans, nans + counted)], ", ") };
}

/** "60 of 120 samples are NaN; some are +infinity". */
export function totalWords({ nans, samples, hasPlus, hasMinus, hasOverflow }: OddTotal): string {
  const infinite = joinedWords([hasPlus ? "+infinity" : "", hasMinus ? "−infinity" : ""], " and ");
  const all = samples === 1 ? "the only sample is NaN" : `all ${countText(samples)} samples are NaN`;
  return joinedWords([
    nans > 0 && nans === samples ? all : nanPart(nans, samples, " samples"),
    infinite === "" ? "" : `some ${nans === 0 ? "samples " : ""}are ${infinite}`,
    hasOverflow ? "some means overflow: sums of samples beyond what a number holds" : "",
  ], "; ");
}

export function summed(totals: readonly OddTotal[]): OddTotal {
  return {
    nans: totals.reduce((sum, one) => sum + one.nans, 0), samples: totals.reduce((sum, one) => sum + one.samples, 0),
    hasPlus: totals.some((one) => one.hasPlus), hasMinus: totals.some((one) => one.hasMinus),
    hasOverflow: totals.some((one) => one.hasOverflow),
  };
}

/** A stretch of an axis. */
interface Stretch {
  readonly start: number;
  readonly end: number;
}

/** One in which some line has such samples. */
export interface OddBand extends Stretch {
  /** "NaN", "+∞", "−∞", "overflow". */
  readonly text: string;
  /** In which row its words stand, 0 = on top: in none are those of another that overlaps it. */
  readonly row: number;
}

/** Of a chart's line; see core/align.ts. */
interface OddLine {
  readonly means: readonly (number | null | undefined)[];
  readonly odd: ReadonlyMap<number, OddBucket>;
}

interface OddChart {
  readonly places: readonly number[];
  readonly width: number;
  readonly lines: readonly OddLine[];
}

interface OddKind {
  readonly word: string;
  is(bucket: OddBucket): boolean;
}

const kinds: readonly OddKind[] = [
  { word: "NaN", is: ({ nans }) => nans > 0 }, { word: "+∞", is: ({ max }) => max === Infinity }, { word: "−∞", is: ({ min }) => min === -Infinity },
  { word: overflowWord, is: overflows },
];

/** Where a line has samples of `kind`: neighbours are one stretch, also where ticks lie apart. */
function stretchesOf({ means, odd }: OddLine, { places, width }: OddChart, kind: OddKind): Stretch[] {
  const stretches: Stretch[] = [];
  let goesOn = false;
  means.forEach((mean, row) => {
    if (mean === undefined) return;
    const bucket = odd.get(row);
    const is = bucket !== undefined && kind.is(bucket);
    const [start, end] = [(places[row] ?? 0) - width / 2, (places[row] ?? 0) + width / 2];
    const before = stretches[stretches.length - 1];
    if (is && goesOn && before) stretches[stretches.length - 1] = { ...before, end };
    else if (is) stretches.push({ start, end });
    goesOn = is;
  });
  return stretches;
}

/** Those that overlap or touch are one; ascending. */
function joined(stretches: Stretch[]): Stretch[] {
  const all: Stretch[] = [];
  for (const stretch of stretches.sort((a, b) => a.start - b.start)) {
    const before = all[all.length - 1];
    if (before && stretch.start <= before.end) all[all.length - 1] = { start: before.start, end: Math.max(before.end, stretch.end) };
    else all.push(stretch);
  }
  return all;
}

/** Of all lines together: one of each kind wherever any line has it, ascending. */
export function oddBands(chart: OddChart): OddBand[] {
  const lines = chart.lines.filter(({ odd }) => odd.size > 0);
  const bands = kinds.flatMap((kind) => joined(lines.flatMap((line) => stretchesOf(line, chart, kind))).map((stretch) => ({ ...stretch, text: kind.word })));
  const ends: number[] = [];
  return bands.sort((a, b) => a.start - b.start).map((band) => {
    const free = ends.findIndex((end) => end <= band.start);
    const row = free < 0 ? ends.length : free;
    ends[row] = band.end;
    return { ...band, row };
  });
}

/** Rows of numbers between two that are none: no line reaches them. */
export function loneRows({ means }: OddLine): number[] {
  const own: number[] = [];
  means.forEach((mean, row) => mean !== undefined && own.push(row));
  const isNumber = (at: number): boolean => typeof means[own[at] ?? -1] === "number";
  return own.filter((_, at) => isNumber(at) && !isNumber(at - 1) && !isNumber(at + 1));
}
