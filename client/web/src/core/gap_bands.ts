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

/** Bands that touch `range`, clipped to it, overlapping ones joined; of `metricGroup`, or of all ("").
 *  Each is at least `widthMin` wide, so that one lost tick can be seen and pointed at. */
export function gapBands(gaps: readonly KnownGap[], range: Range, metricGroup: string, widthMin: number): GapBand[] {
  const bands = gaps
    .filter((gap) => gap.firstUs > 0 && gap.lastUs >= gap.firstUs)
    .filter((gap) => metricGroup === "" || gap.metricGroup === "" || gap.metricGroup === metricGroup)
    .map((gap) => {
      const pad = Math.max(0, (widthMin - (gap.lastUs - gap.firstUs)) / 2);
      return { start: gap.firstUs - pad, end: gap.lastUs + pad, texts: [gapText(gap)] };
    })
    .filter((band) => band.end >= range.start && band.start < range.end)
    .sort((a, b) => a.start - b.start);
  const joined: GapBand[] = [];
  for (const band of bands) {
    const clipped = { ...band, start: Math.max(band.start, range.start), end: Math.min(band.end, range.end) };
    const before = joined[joined.length - 1];
    if (before && clipped.start <= before.end) {
      joined[joined.length - 1] = {
        start: before.start,
        end: Math.max(before.end, clipped.end),
        texts: [...new Set([...before.texts, ...clipped.texts])],
      };
    } else {
      joined.push(clipped);
    }
  }
  return joined;
}

export function bandAt(bands: readonly GapBand[], place: number): GapBand | null {
  return bands.find((band) => place >= band.start && place <= band.end) ?? null;
}
