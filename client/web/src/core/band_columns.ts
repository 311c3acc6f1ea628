// Bands of lines with as many buckets as pixels, or more: a column of pixels each, which a browser without a GPU fills in a
// fifth of the time of the outline that joins them.

/** Wider buckets are joined by an outline: as steps they would be seen. */
export const pitchMax = 2.5;

/** A rectangle of whole pixels. */
export interface BandColumn {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** Of a stretch of neighbours, by their middles across the canvas and what lies between `tops` and `bottoms` there, in its
 *  pixels; ascending. Those that share a column of pixels are one, and no two overlap: a band is of one shade. What is thinner
 *  than a pixel lies under its line. */
export function bandColumns(middles: readonly number[], tops: readonly number[], bottoms: readonly number[]): BandColumn[] {
  const columns: BandColumn[] = [];
  const edge = (at: number): number => {
    const before = middles[Math.max(0, at - 1)] ?? 0;
    const after = middles[Math.min(middles.length - 1, at)] ?? 0;
    return Math.round((before + after) / 2);
  };
  let top = Infinity;
  let bottom = -Infinity;
  for (let at = 0; at < middles.length; ++at) {
    top = Math.min(top, tops[at] ?? Infinity);
    bottom = Math.max(bottom, bottoms[at] ?? -Infinity);
    const left = columnsEnd(columns) ?? edge(at);
    const right = at === middles.length - 1 ? Math.max(edge(at), left + 1) : edge(at + 1);
    if (right <= left) continue;
    const [from, to] = [Math.round(top), Math.round(bottom)];
    columns.push({ left, top: from, width: right - left, height: Math.max(0, to - from) });
    top = Infinity;
    bottom = -Infinity;
  }
  return columns.filter((column) => column.height > 0);
}

function columnsEnd(columns: readonly BandColumn[]): number | null {
  const last = columns[columns.length - 1];
  return last ? last.left + last.width : null;
}
