// How many values the lines of charts that are in sight may have together, and what each line gets of them: more nobody
// sees, and each frame would take longer for it.
import { bucketCount, type Range } from "./range";

/** Of all lines in sight together. */
export const valuesMax = 20_000;
/** So many a line keeps as long as what is in sight leaves it as many, however many lie out of sight. */
const bucketsUsual = 60;
/** Below this a line of many says too little of its shape: charts of many lines are one line then. */
const bucketsLeast = 40;
/** The style sheet lets charts stand in so many columns at most. */
const columnsMax = 3;
/** What a chart's card has beside its chart at least: its head, its place, a line of its legend. Pixels, as all below. */
const cardPixels = 80;
/** Names of lines stand in so many columns at most, and scroll where they would be higher. */
const nameColumnsMax = 4;
const namePixels = 17;
const namesPixelsMax = 110;
/** Of a window that follows the buckets stay on their grid: it may have this much more than was asked for (core/live_grid.ts),
 *  and two more at its ends. */
const liveSlack = 1.25;

/** Where charts are looked at: how high it is at most, and how high each chart is. */
export interface Sight {
  readonly height: number;
  readonly chartHeight: number;
}

/** Of a card whose chart has so many lines, at least. */
export function cardHeight(lineCount: number, { chartHeight }: Sight): number {
  return chartHeight + cardPixels + Math.min(namesPixelsMax, (Math.ceil(lineCount / nameColumnsMax) - 1) * namePixels);
}

/** At most, wherever somebody scrolls to: of those with the most lines, with rows that are cut off at both ends. */
function linesInSight(lineCounts: readonly number[], sight: Sight): number {
  const sorted = [...lineCounts].sort((a, b) => b - a);
  let lines = 0;
  let left = sight.height;
  for (let at = 0; at < sorted.length; at += columnsMax) {
    const row = sorted.slice(at, at + columnsMax);
    lines += row.reduce((sum, count) => sum + count, 0);
    if (left <= 0) break;
    left -= cardHeight(row[row.length - 1] ?? 0, sight);
  }
  return lines;
}

/** Up to how many series of a chart have a line each, `most` at most: as many as leave each line enough,
 *  whichever of the charts are seen. Above, a chart's lines are one. */
export function lineLimit(seriesCounts: readonly number[], most: number, sight: Sight): number {
  for (let limit = most; limit > 1; --limit) {
    const counts = seriesCounts.map((count) => (count > limit ? 1 : count));
    if (linesInSight(counts, sight) * bucketsLeast <= valuesMax) return limit;
  }
  return 1;
}

/** Buckets of each line of charts that have so many lines each. */
export function bucketsOfLine(
  widthPixels: number, seriesCount: number, lineCounts: readonly number[], sight: Sight, range: Range | null, isLive = false,
): number {
  const share = (lines: number): number => Math.floor(valuesMax / Math.max(1, lines));
  const all = lineCounts.reduce((sum, count) => sum + count, 0);
  const shared = Math.min(Math.max(bucketsUsual, share(all)), share(linesInSight(lineCounts, sight)));
  return Math.max(1, Math.min(isLive ? Math.floor(shared / liveSlack) - 2 : shared, bucketCount(widthPixels, seriesCount, range)));
}
