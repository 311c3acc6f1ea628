// Cells so far beyond the ends of a heat map's scale that they are none of its noise: they have a colour of their own,
// for one slow rank of a thousand lies beyond the 99th of 100 values and would look as the largest of the noise.
import type { HeatGrid, HeatPicture, PixelRun } from "./heat";

export interface FarEnds {
  /** What lies at or below is far below; −infinity = nothing is. */
  readonly below: number;
  readonly above: number;
}

/** 1 = far above, −1 = far below, 0 = neither. */
export type FarSide = -1 | 0 | 1;

/** Where all are alike, so much of their value is as far as the width of a scale: what differs by less reads alike. */
const alikePart = 0.01;

/** As far beyond an end as the ends are apart: of noise (Gaussian) none of many millions is there. */
export function farEnds({ low, high }: Pick<HeatGrid, "low" | "high">): FarEnds {
  const width = Math.max(high - low, alikePart * Math.max(Math.abs(low), Math.abs(high)));
  // Of nothing, or of values near the largest there are: nothing is far.
  if (!Number.isFinite(width)) return { below: -Infinity, above: Infinity };
  return { below: low - width, above: high + width };
}

/** What is not finite is on no side: it has a look of its own already. Of values that are all 0 anything else is far. */
export function farSide({ below, above }: FarEnds, value: number): FarSide {
  if (!Number.isFinite(value) || below === above && value === below) return 0;
  return value >= above ? 1 : value <= below ? -1 : 0;
}

export interface FarRun extends PixelRun {
  readonly side: FarSide;
}

/** Where the picture shows far cells; those above last, for what is painted later is what is seen. */
export function farRuns(grid: HeatGrid, picture: HeatPicture): FarRun[] {
  const ends = farEnds(grid);
  const runs: FarRun[] = [];
  for (let line = 0; line < picture.lineCount; ++line) {
    let [from, open]: [number, FarSide] = [0, 0];
    for (let pixel = 0; pixel <= picture.pixelCount; ++pixel) {
      const cell = pixel < picture.pixelCount ? picture.shown[line * picture.pixelCount + pixel] ?? -1 : -1;
      const side = cell < 0 ? 0 : farSide(ends, grid.cells[cell] ?? NaN);
      if (side === open) continue;
      if (open !== 0) runs.push({ line, from, to: pixel, side: open });
      [from, open] = [pixel, side];
    }
  }
  return runs.sort((a, b) => a.side - b.side);
}
