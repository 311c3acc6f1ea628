// Of a chart over batches that follows: from which batch on it asks anew. Batches come in order from each rank, but not from all at once:
// one that is behind goes on from where it was.

/** Just behind the newest batch of each series, as of an answer. */
export interface Seen {
  /** When it was asked for, in milliseconds. */
  readonly atMs: number;
  readonly ends: ReadonlyMap<string, number>;
}

/** Batches of one moment are all there after this. */
const lateMs = 5000;

/** The batch from which on anything may have come since what is kept was asked for; `seen` in the order of asking, the last one is what is kept.
 *  null = nobody knows: ask for all. What a series that had rested for `lateMs` brings of earlier batches is not found by this. */
export function tailStart(seen: readonly Seen[], nowMs: number): number | null {
  const before = [...seen].reverse().find((one) => one.atMs <= nowMs - lateMs);
  const last = seen[seen.length - 1];
  if (!before || !last || before.ends.size === 0) return null;
  let start = -Infinity;
  for (const end of before.ends.values()) start = Math.max(start, end);
  for (const [name, end] of before.ends) {
    if ((last.ends.get(name) ?? end) > end) start = Math.min(start, end);
  }
  // One that is new since may begin anywhere.
  for (const [name, end] of last.ends) {
    if (!before.ends.has(name)) start = Math.min(start, end);
  }
  return Math.max(0, start - 1); // The newest batch may have had more to come, too.
}

/** Of `seen`, what `tailStart` may ask about later. */
export function stillAsked(seen: readonly Seen[], nowMs: number): Seen[] {
  const late = seen.filter((one) => one.atMs <= nowMs - lateMs).length;
  return seen.slice(Math.max(0, late - 1));
}

/** Of the master's own buckets: a chart keeps them until they are this much finer than wanted. */
const finerMost = 1.25;

export interface BatchTail {
  readonly start: number;
  readonly end: number;
  readonly buckets: number;
}

/** The question for what lies from batch `from` on, on the grid of `start` and `width` that is kept up to `newestEnd`; null = buckets are too
 *  fine by now: ask for all. */
export function batchTail(start: number, width: number, newestEnd: number, from: number, bucketsWanted: number): BatchTail | null {
  const count = Math.ceil((newestEnd - start) / width);
  if (count > bucketsWanted * finerMost || from <= start) return null;
  const first = start + Math.floor((from - start) / width) * width;
  // What is new lies ahead; what is empty is not sent.
  const ahead = Math.max(bucketsAheadMin, Math.ceil(count / 2));
  const buckets = Math.ceil((newestEnd - first) / width) + ahead;
  return { start: first, end: first + buckets * width, buckets };
}

const bucketsAheadMin = 64;
