// Values over time as a line the size of a word: the path of an SVG, and what it says in words.

export interface SparkValues {
  /** Ascending; those without a value are left out. */
  readonly indexes: readonly number[];
  readonly means: readonly number[];
}

/** Columns that are so far apart still are neighbours. */
const joinedMax = 4;

/** "M0 8L1 7…" in a box of `columnCount` by `height`, 0 at the bottom and `most` on top; broken where nothing is. */
export function sparkPath({ indexes, means }: SparkValues, columnCount: number, height: number, most: number): string {
  const first = indexes[0] ?? 0;
  let path = "";
  let before = -Infinity;
  indexes.forEach((index, at) => {
    const mean = means[at];
    if (mean === undefined || !Number.isFinite(mean)) return;
    const x = Math.min(index - first, columnCount);
    const y = height - (Math.min(most, Math.max(0, mean)) / most) * height;
    // A value with no neighbour is a line of one column; of few samples each column is far from the next.
    const joins = index - before <= joinedMax;
    path += joins ? `L${x} ${y.toFixed(1)}` : `M${x} ${y.toFixed(1)}h0.9`;
    before = index;
  });
  return path;
}

export function meanOf({ means }: SparkValues): number {
  const finite = means.filter(Number.isFinite);
  return finite.length === 0 ? NaN : finite.reduce((sum, mean) => sum + mean, 0) / finite.length;
}
