// Where the axis below a heat map has ticks, and what each says: as round as those of a chart.
import { tickSpace, timeTick } from "./chart_axes";
import { distanceAt } from "./drawable";
import type { AxisKind } from "./range";
import { countText } from "./units";

export interface HeatTick {
  /** From the left of the cells, 0 ... 1. */
  readonly left: number;
  readonly text: string;
}

export interface HeatSpan {
  /** On the axis, of all that the cells show. */
  readonly start: number;
  readonly end: number;
  /** In pixels. */
  readonly width: number;
}

/** In seconds, beyond the decimals. */
const clockSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 14_400, 21_600, 43_200, 86_400];
const daySeconds = 86_400;
/** Half of a text reaches beyond its tick: so much for each of its characters, at most. */
const sidePixels = 3.8;
/** As wide as a digit, and what stays free between two texts. */
const [digitPixels, gapPixels] = [7, 8];

/** 1, 2 or 5 times a power of ten that is `least` or more. */
function decimalStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return ([1, 2, 5, 10].find((times) => times * power >= least * (1 - 1e-9)) ?? 10) * power;
}

/** Of a clock, in seconds. */
function clockStep(least: number): number {
  if (least <= 1) return Math.max(1e-6, decimalStep(least));
  return clockSteps.find((step) => step >= least) ?? decimalStep(least / daySeconds) * daySeconds;
}

function ticksOf(axis: AxisKind, { start, end, width }: HeatSpan, space: number): HeatTick[] {
  const scale = axis === "time" ? 1e6 : 1;
  const span = (end - start) / scale;
  const least = (span * space) / width;
  const step = axis === "time" ? clockStep(least) : Math.round(decimalStep(Math.max(1, least)));
  // By a whole number of steps: sums of 0.1 are no multiples of it.
  const placeOf = (at: number): number => (step < 1 ? at / Math.round(1 / step) : at * step);
  const first = Math.ceil(start / scale / step - 1e-9);
  const ticks: HeatTick[] = [];
  // Where numbers lie farther apart than steps the next place is no other one.
  if (step < 2 * distanceAt(end / scale)) return ticks;
  for (let count = 0; count <= width / space; ++count) {
    const place = placeOf(first + count);
    if (place >= end / scale) break;
    const left = (place - start / scale) / span;
    const text = axis === "time" ? timeTick(place, step) : countText(place);
    if (left * width + sidePixels * text.length > width) break;
    ticks.push({ left: Math.max(0, left), text });
  }
  return ticks;
}

/** One tick alone tells no distance: where there is but one they stand closer, as far as numbers of batches, which are of any length, leave room. */
export function heatTicks(axis: AxisKind, span: HeatSpan): HeatTick[] {
  if (!(span.end > span.start) || !(span.width > 0)) return [];
  const space = tickSpace(axis, (span.end - span.start) / (axis === "time" ? 1e6 : 1), span.width);
  const least = axis === "batch" ? digitPixels * countText(Math.floor(span.end)).length + gapPixels : 0;
  const usual = ticksOf(axis, span, Math.max(space, least));
  return usual.length > 1 ? usual : ticksOf(axis, span, Math.max(space / 1.5, least));
}
