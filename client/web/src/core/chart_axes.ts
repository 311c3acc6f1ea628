// How the axes of a chart are divided and written: room for ticks, what each says, from where to where values reach.
import type { Extent } from "./align";
import type { AxisKind } from "./range";
import { isoText } from "./time_text";
import { countText } from "./units";

/** Steps of an axis of bytes: powers of two, as its units are. */
export const byteSteps = Array.from({ length: 60 }, (_, power) => 2 ** power);

/** Steps of an axis of batches: there is none between two. */
export const batchSteps = Array.from({ length: 10 }, (_, power) => [1, 2, 2.5, 5].map((times) => times * 10 ** power)).flat().filter(Number.isInteger);

const [minute, hour, day] = [60, 3600, 86_400];

/** Steps of an axis of times since a start, in seconds: those of a clock, and days. */
export const sinceSteps = [
  ...[0.001, 0.01, 0.1].flatMap((unit) => [1, 2, 5].map((count) => Number((unit * count).toFixed(3)))),
  ...[1, minute].flatMap((unit) => [1, 2, 5, 10, 15, 30].map((count) => unit * count)),
  ...[1, 2, 3, 6, 12].map((count) => hour * count),
  ...[1, 10, 100, 1000].flatMap((tens) => [1, 2, 5].map((count) => day * tens * count)),
];

/** "22:07". */
const minuteSpace = 52;
/** "22:07:15.123", "22:07:15.123456". */
const [millisecondSpace, microsecondSpace] = [104, 160];

/** So many pixels of `width` at least for a tick: "22:07:15" does not touch its neighbour, nor do milliseconds. Whole
 *  minutes of the clock need less: on a phone they are two or three then, rather than one; times since a start (`width` is
 *  infinite) have texts of any length. */
export function tickSpace(axis: AxisKind, span: number, width: number): number {
  if (axis !== "time") return usualSpace;
  if ((span * minuteSpace) / width > 30) return minuteSpace;
  // Also where ticks stand closer (heat_ticks.ts) their step is a millisecond or more, or there is room for its microseconds.
  if (width < Infinity && (span * millisecondSpace) / width <= 0.00075) return microsecondSpace;
  return span < 10 ? millisecondSpace : 76;
}

const usualSpace = 60;
/** A plot that is narrower is a phone's, or one of several beside each other. */
const narrowPlot = 400;
const ticksWanted = { least: 3, most: 5 };

/** Of an axis of batches from `start` to `end`: as in tickSpace. In a narrow plot the step is chosen by how many ticks it gives, as far as
 *  their texts do not touch: a step that has two is one too far, the one before it often has five. */
export function batchSpace(start: number, end: number, width: number): number {
  const span = end - start;
  if (width >= narrowPlot || width <= 0 || span <= 0) return usualSpace;
  const textWidth = 7 * countText(Math.floor(end)).length + 14;
  const ticks = (step: number): number => Math.floor(end / step) - Math.ceil(start / step) + 1;
  const fitting = batchSteps.filter((step) => (step * width) / span >= textWidth);
  const enough = fitting.filter((step) => ticks(step) >= ticksWanted.least);
  const step = enough.find((one) => ticks(one) <= ticksWanted.most) ?? enough[enough.length - 1] ?? fitting[0];
  // Rounding must not take it for one that is too near.
  return step === undefined ? usualSpace : ((step * width) / span) * 0.999;
}

/** So much stays free at the right for the half of a tick's text that reaches beyond the last place: "21:04:05", "21:04:05.123". */
export function endSpace(axis: AxisKind, span: number): number {
  return axis === "time" && span < 10 ? 40 : 28;
}

/** Of the axis of values: alike in most charts, wider where its texts are ("18.875 GiB"). */
export function sideWidth(shown: readonly string[] | null): number {
  return Math.max(76, 16 + 7 * Math.max(0, ...(shown ?? []).map((text) => text.length)));
}

/** "17:55", as fine as the step to the next tick (both in seconds). */
export function timeTick(seconds: number, step: number): string {
  const iso = isoText(seconds * 1e6);
  if (step >= 86_400) return iso.slice(5, 10);
  if (seconds % 86_400 === 0) return iso.slice(5, 10);
  if (step >= 60) return iso.slice(11, 16);
  return iso.slice(11, step >= 1 ? 19 : step >= 0.001 * (1 - 1e-9) ? 23 : 26);
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}

/** Times since a start, as fine as `step` (all in seconds), in the units that the largest asks for: "30 s", "2:30 min", "5 min", "1:15 h",
 *  "1:15:30 h", "1 d 12 h". */
export function sinceTexts(times: readonly number[], step: number): string[] {
  const largest = Math.max(...times.map(Math.abs), 0);
  return times.map((time) => sinceText(time, largest, step));
}

/** One of a range that is `span` seconds long, as fine as neighbours in it are told apart. */
export function sincePlace(time: number, span: number): string {
  return sinceText(time, Math.abs(time), span < 10 ? 0.001 : span < 600 ? 0.1 : 1);
}

function sinceText(time: number, largest: number, step: number): string {
  const decimals = step >= 1 ? 0 : step >= 0.1 ? 1 : step >= 0.01 ? 2 : 3;
  // First to what is shown: 59.96 s are a minute.
  const units = Math.round(Math.abs(time) * 10 ** decimals);
  if (units === 0) return "0";
  const whole = Math.floor(units / 10 ** decimals);
  const rest = decimals > 0 ? `.${String(units % 10 ** decimals).padStart(decimals, "0")}` : "";
  const [days, hours, minutes, seconds] = [Math.floor(whole / day), Math.floor((whole % day) / hour), Math.floor((whole % hour) / minute), whole % minute];
  const sign = time < 0 ? "−" : "";
  if (largest < minute && whole < minute) return `${sign}${whole}${rest} s`;
  if (largest < hour) {
    const all = Math.floor(whole / minute);
    return step % minute === 0 ? `${sign}${all} min` : `${sign}${all}:${two(seconds)}${rest} min`;
  }
  const clock = step % hour === 0 ? `${hours}` : step % minute === 0 ? `${hours}:${two(minutes)}` : `${hours}:${two(minutes)}:${two(seconds)}${rest}`;
  if (largest < day || days === 0) return `${sign}${clock} h`;
  return step % day === 0 || (step % hour === 0 && hours === 0) ? `${sign}${days} d` : `${sign}${days} d ${clock} h`;
}

/** From zero where values are of one sign, to 100 for percents; never of no height. */
export function yRange(extent: Extent | null, unit: string): [number, number] {
  if (!extent) return [0, 1];
  const { min, max } = extent;
  if (unit === "percent" && min >= 0 && max <= 100) return [0, 102]; // a line at 100 is seen whole
  const near = min >= 0 && (min < max * 0.6 || min === max);
  const pad = (max - min) * 0.08 || Math.abs(max) * 0.1 || 1;
  // Of the largest of numbers there is none beyond.
  return [near ? 0 : Math.max(-Number.MAX_VALUE, min - pad), Math.min(Number.MAX_VALUE, max + pad)];
}
