// Declared gaps as bands of a chart of time. Those without times are told in words alone.

import type { Range } from "./range";

export interface KnownGap {
  readonly cause: string;
  readonly metricGroup: string;
  readonly writerNo: number;
  readonly missing: number;
  /** 0 = unknown. */
  readonly firstUs: number;
  readonly lastUs: number;
  readonly reason: string;
}

export interface GapBand extends Range {
  readonly texts: string[];
}

export function gapText(gap: KnownGap): string {
  const count = gap.missing > 0 ? `${gap.missing.toLocaleString("en")} samples missing` : "number unknown";
  const place = gap.metricGroup === "" ? "" : `, group ${gap.metricGroup}`;
  const reason = gap.reason === "" || gap.reason === gap.cause ? "" : `: ${gap.reason}`;
  return `${gap.cause} (${count}${place})${reason}`;
}

/** Clipped to `range`, then as wide as can be seen, towards its middle where it lies at an end. */
function widened(first: number, last: number, range: Range, widthMin: number): Range {
  const start = Math.max(first, range.start);
  const end = Math.min(last, range.end);
  const pad = Math.max(0, (widthMin - (end - start)) / 2);
  const from = Math.min(Math.max(start - pad, range.start), range.end - 2 * pad);
  return pad === 0 ? { start, end } : { start: from, end: Math.min(range.end, from + (end - start) + 2 * pad) };
}

/** Bands that touch `range`, clipped to it, overlapping ones joined; of `metricGroup`, or of all ("").
 *  Each is at least `widthMin` wide, so that one lost tick can be seen and pointed at. */
export function gapBands(gaps: readonly KnownGap[], range: Range, metricGroup: string, widthMin: number): GapBand[] {
  const bands = gaps
    .filter((gap) => gap.firstUs > 0 && gap.lastUs >= gap.firstUs)
    .filter((gap) => metricGroup === "" || gap.metricGroup === "" || gap.metricGroup === metricGroup)
    .filter((gap) => gap.lastUs >= range.start && gap.firstUs < range.end)
    .map((gap) => ({ ...widened(gap.firstUs, gap.lastUs, range, widthMin), texts: [gapText(gap)] }))
    .sort((a, b) => a.start - b.start);
  const joined: GapBand[] = [];
  for (const band of bands) {
    const before = joined[joined.length - 1];
    if (before && band.start <= before.end) {
      joined[joined.length - 1] = {
        start: before.start,
        end: Math.max(before.end, band.end),
        texts: [...new Set([...before.texts, ...band.texts])],
      };
    } else {
      joined.push(band);
    }
  }
  return joined;
}

/** The band at `place`, or within `slack` of it: a thin one can be pointed at. */
export function bandAt(bands: readonly GapBand[], place: number, slack = 0): GapBand | null {
  return bands.find((band) => place >= band.start - slack && place <= band.end + slack) ?? null;
}
