// A chart that follows asks for the end of its window alone: the buckets before it are as they were, as long as all lie
// on one grid, which stays where it is while the window moves on. So no line trembles from one question to the next, and
// a question costs what is new.
//
//   Whatever came is in what is kept, but for samples that came later than `lateUs` after the newest: those come with the
//   next whole answer, `wholeMs` later at most.
import type { Range } from "./range";

export interface Grid {
  /** Microseconds; a whole multiple of the width, so that another grid of this width has the same buckets. */
  readonly start: number;
  readonly width: number;
}

/** What is asked: buckets of `grid.width` from `start` on. */
export interface LivePlan {
  readonly grid: Grid;
  readonly isWhole: boolean;
  readonly windowEnd: number;
  readonly start: number;
  readonly end: number;
  readonly buckets: number;
}

/** From buckets of twice the finest rollup's step on, answers are of rollups, with a grid of the master's. */
const widthEnd = 20_000_000;
/** How late samples come that are on time: agents send each 100 ms, but not all at once. */
const lateUs = 5_000_000;
/** So long the end alone is asked for. */
export const wholeMs = 10_000;
/** Of a window that grows: before its buckets are this much finer than wanted they stay. */
const finerMost = 1.25;

/** What is there already. */
export interface Kept {
  readonly grid: Grid;
  /** The end of the window that was asked for last: what came since is not in it. */
  readonly end: number;
}

/** `window` = what is shown, until its newest sample; `isFresh` = what is kept holds all there was until `wholeMs` ago.
 *  null = not to be had this way: buckets so wide are asked for as they are. */
export function livePlan(window: Range, buckets: number, kept: Kept | null, isFresh: boolean): LivePlan | null {
  const span = Math.max(1, window.end - window.start);
  const wanted = Math.ceil(span / Math.max(1, buckets));
  const stays = kept !== null && wanted <= kept.grid.width * finerMost && wanted * finerMost >= kept.grid.width;
  const width = stays ? kept.grid.width : wanted;
  if (width >= widthEnd) return null;
  const floor = (us: number): number => Math.floor(us / width) * width;
  // News are ahead of the newest sample that is known; what is empty is not sent.
  const end = floor(window.end + Math.max(span, lateUs)) + width;
  const tail = floor(Math.min(window.end, kept?.end ?? window.end) - Math.max(lateUs, 2 * width));
  const isTail = stays && isFresh && tail > kept.grid.start && window.start >= kept.grid.start;
  const start = isTail ? tail : floor(window.start);
  return { grid: isTail ? kept.grid : { start, width }, isWhole: !isTail, windowEnd: window.end, start, end, buckets: Math.round((end - start) / width) };
}

/** Columns of one series; those of another length than `indexes` are empty. */
export interface Columns {
  readonly indexes: readonly number[];
  readonly mins: readonly number[];
  readonly maxs: readonly number[];
  readonly means: readonly number[];
  readonly lasts: readonly number[];
  readonly counts: readonly bigint[];
  readonly nanCounts: readonly bigint[];
}

/** First place of an ascending list at which `least` or more stands. */
function placeOf(indexes: readonly number[], least: number): number {
  let low = 0;
  let high = indexes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((indexes[middle] ?? 0) < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** `kept` from bucket `first` on, and in place of all from bucket `from` on `tail`, whose bucket 0 that is. */
export function joined(kept: Columns, tail: Columns | undefined, first: number, from: number) {
  const low = placeOf(kept.indexes, first);
  const high = Math.max(low, placeOf(kept.indexes, from));
  const news = tail ?? { indexes: [], mins: [], maxs: [], means: [], lasts: [], counts: [], nanCounts: [] };
  const both = <T>(before: readonly T[], after: readonly T[]): T[] => [...before.slice(low, high), ...after];
  const zeros = (count: number): bigint[] => new Array<bigint>(count).fill(0n);
  const nanOf = (one: Columns): readonly bigint[] => (one.nanCounts.length > 0 ? one.nanCounts : zeros(one.indexes.length));
  const nanCounts = both(nanOf(kept), nanOf(news));
  return {
    indexes: [...kept.indexes.slice(low, high), ...news.indexes.map((index) => index + from)],
    mins: both(kept.mins, news.mins), maxs: both(kept.maxs, news.maxs), means: both(kept.means, news.means),
    lasts: both(kept.lasts, news.lasts), counts: both(kept.counts, news.counts),
    nanCounts: nanCounts.some((count) => count > 0n) ? nanCounts : [],
  };
}
