// Bucketed series on one axis, as a chart wants them: one column of places, a value or a hole for each series.
//
// undefined = nothing was due here (another series' place): the line goes on. null = something was due and is
// not there: the line breaks.
import { overflows, type OddBucket, type OddTotal } from "./odd_values";

export interface Bucketed {
  readonly indexes: readonly number[];
  readonly mins: readonly number[];
  readonly maxs: readonly number[];
  readonly means: readonly number[];
  /** Of each bucket, of what a master answers: only there is a mean that is no finite number told. Values of our own
   *  have none where they cannot be said. */
  readonly counts?: readonly bigint[];
  /** Empty = no NaN in any. */
  readonly nanCounts?: readonly bigint[];
}

export type Value = number | null | undefined;

export interface AlignedLine {
  readonly means: Value[];
  readonly mins: Value[];
  readonly maxs: Value[];
  /** The row of its newest bucket that has anything, numbers or not; -1 = none. */
  readonly last: number;
  /** By row, ascending: its buckets with samples that are NaN or infinite, and those whose mean overflows. */
  readonly odd: ReadonlyMap<number, OddBucket>;
  /** null = there are none such. */
  readonly total: OddTotal | null;
}

export interface Aligned {
  /** Middles of the buckets, on the axis of the answer. Ascending. */
  readonly places: number[];
  /** Of a bucket. */
  readonly width: number;
  /** Some bucket holds more than one sample. */
  readonly hasMeans: boolean;
  readonly lines: AlignedLine[];
}

/** Holes wider than this many usual distances break a line: one late or lost tick does not. */
const breakDistances = 3.5;

/** The usual distance between neighbours of one series, in buckets: 95 of 100 are at most so far apart.
 *  Ticks of a clock are all as far, steps of a training are not. */
export function usualDistance(indexes: readonly number[]): number {
  const distances: number[] = [];
  for (let i = 1; i < indexes.length; ++i) distances.push((indexes[i] ?? 0) - (indexes[i - 1] ?? 0));
  distances.sort((a, b) => a - b);
  return Math.max(1, distances[Math.floor(distances.length * 0.95)] ?? 1);
}

/** Of a hole in a line: from its first bucket to the one that is there again. */
interface Break {
  readonly from: number;
  readonly to: number;
}

function breaksOf(indexes: readonly number[]): Break[] {
  let widest = 0;
  for (let i = 1; i < indexes.length; ++i) widest = Math.max(widest, (indexes[i] ?? 0) - (indexes[i - 1] ?? 0));
  // Most lines have none: they are not sorted for it.
  if (widest <= breakDistances) return [];
  const most = usualDistance(indexes) * breakDistances;
  const breaks: Break[] = [];
  for (let i = 1; i < indexes.length; ++i) {
    const before = indexes[i - 1] ?? 0;
    const to = indexes[i] ?? 0;
    if (to - before > most) breaks.push({ from: before + 1, to });
  }
  return breaks;
}

function finite(value: number | undefined): number | null {
  return value !== undefined && Number.isFinite(value) ? value : null;
}

const noneOdd: ReadonlyMap<number, OddBucket> = new Map();

function oddOf(one: Bucketed, row: Int32Array): ReadonlyMap<number, OddBucket> {
  const odd = new Map<number, OddBucket>();
  one.indexes.forEach((index, i) => {
    const nans = Number(one.nanCounts?.[i] ?? 0n);
    const mean = one.means[i] ?? NaN;
    // An infinite sample makes its bucket's mean infinite, or NaN where there are both; so does a sum that overflows.
    if (nans === 0 && Number.isFinite(mean)) return;
    odd.set(row[index] ?? 0, { mean, min: one.mins[i] ?? NaN, max: one.maxs[i] ?? NaN, nans, counted: Number(one.counts?.[i] ?? 0n) });
  });
  return odd;
}

function totalOf(one: Bucketed, odd: ReadonlyMap<number, OddBucket>): OddTotal | null {
  if (odd.size === 0) return null;
  const buckets = [...odd.values()];
  const nans = buckets.reduce((sum, bucket) => sum + bucket.nans, 0);
  const counted = (one.counts ?? []).reduce((sum, count) => sum + Number(count), 0);
  return {
    nans, samples: nans + counted,
    hasPlus: buckets.some(({ max }) => max === Infinity), hasMinus: buckets.some(({ min }) => min === -Infinity), hasOverflow: buckets.some(overflows),
  };
}

/** Indexes of each ascend, as the master sends them: buckets of one answer, of which there are some thousands. */
export function aligned(series: readonly Bucketed[], start: number, width: number): Aligned {
  const breaks = series.map((one) => breaksOf(one.indexes));
  let count = 0;
  for (const one of series) count = Math.max(count, (one.indexes[one.indexes.length - 1] ?? -1) + 1);
  // The row of each bucket that some series has, or breaks at; a table, for charts that live are made anew all the time.
  const row = new Int32Array(count).fill(-1);
  for (const one of series) for (const index of one.indexes) row[index] = 0;
  for (const one of breaks) for (const { from } of one) row[from] = 0;
  const places: number[] = [];
  for (let index = 0; index < count; ++index) {
    if (row[index] !== 0) continue;
    row[index] = places.length;
    places.push(start + (index + 0.5) * width);
  }
  const lines = series.map((one, which) => {
    const empty = (): Value[] => new Array<Value>(places.length).fill(undefined);
    const line = { means: empty(), mins: empty(), maxs: empty() };
    const put = (index: number, mean: Value, min: Value, max: Value): void => {
      const at = row[index] ?? 0;
      line.means[at] = mean;
      line.mins[at] = min;
      line.maxs[at] = max;
    };
    // In each place that others have there, too: a chart joins what lies beyond a single one.
    for (const { from, to } of breaks[which] ?? []) {
      for (let index = from; index < to; ++index) if ((row[index] ?? -1) >= 0) put(index, null, null, null);
    }
    const isAnswer = one.counts !== undefined;
    let last = -1;
    let hasOdd = isAnswer && (one.nanCounts?.length ?? 0) > 0;
    one.indexes.forEach((index, i) => {
      const mean = finite(one.means[i]);
      put(index, mean, finite(one.mins[i]), finite(one.maxs[i]));
      if (mean === null && isAnswer) hasOdd = true;
      if (mean !== null || isAnswer) last = row[index] ?? -1;
    });
    const odd = hasOdd ? oddOf(one, row) : noneOdd;
    return { ...line, last, odd, total: totalOf(one, odd) };
  });
  const hasMeans = series.some(({ counts, nanCounts }) => counts?.some((count, i) => Number(count) + Number(nanCounts?.[i] ?? 0n) > 1));
  return { places, width, hasMeans, lines };
}

export interface Extent {
  readonly min: number;
  readonly max: number;
}

/** Smallest and largest of what lines show; null where they show nothing. */
export function extentOf(lines: readonly AlignedLine[]): Extent | null {
  let min = Infinity;
  let max = -Infinity;
  for (const line of lines) {
    for (const value of line.mins) if (typeof value === "number" && value < min) min = value;
    for (const value of line.maxs) if (typeof value === "number" && value > max) max = value;
  }
  return min <= max ? { min, max } : null;
}
