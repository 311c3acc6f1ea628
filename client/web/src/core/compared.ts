// What a change between trials means, in words: by how much, and whether it is for the better; and how what is
// compared is named in an address.
import { clockLabel, clockOf } from "./clocks";
import { printable } from "./printable";
import { metricId } from "./series_choice";
import { countText } from "./units";

export interface Side {
  readonly count: number;
  readonly mean: number;
  readonly ratio: number;
}

/** In its own unit, which is "" where it has none, or several. */
export interface Measured extends Side {
  readonly difference: number;
  readonly unit: string;
}

/** Whether its unit and the first trial's are not one and the same: no difference of them says anything. */
export function unitDiffers(first: Measured, side: Measured): boolean {
  if (first === side || first.count === 0 || side.count === 0) return false;
  if (first.unit !== side.unit) return true;
  // Both have none, or one of them several: then the master tells no difference though there is one.
  return first.unit === "" && side.difference === 0 && side.ratio === 0 && (first.mean !== 0 || side.mean !== 0);
}

/** Whether the master tells a difference of these, and a ratio unless the first's mean is 0: else 0 stands for none. */
export function isCompared(first: Measured, side: Measured): boolean {
  return first.count > 0 && side.count > 0 && !unitDiffers(first, side);
}

export function unitText(unit: string): string {
  return unit === "" ? "none, or several" : printable(unit);
}

/** Which of them one chart draws: what has another unit than the first that has numbers has no place on its axis. */
export function drawnTogether(sides: readonly Measured[]): { readonly drawn: readonly number[]; readonly leftOut: readonly number[]; readonly unit: string } {
  const at = Math.max(0, sides.findIndex(({ count }) => count > 0));
  const first = sides[at];
  // Differences are to the first trial alone.
  const isOther = (side: Measured): boolean => first !== undefined && (at === 0 ? unitDiffers(first, side) : side.count > 0 && side.unit !== first.unit);
  const places = sides.map((_, place) => place);
  const leftOut = places.filter((place) => isOther(sides[place] as Measured));
  return { drawn: places.filter((place) => !leftOut.includes(place)), leftOut, unit: first?.unit ?? "" };
}

export interface Change {
  readonly text: string;
  /** 0 = cannot be said, or too little to say. */
  readonly tone: -1 | 0 | 1;
}

/** What a list of trials to add offers, `[value, text]` each: of those that are `listed` what is not `chosen` yet. It says where those are
 *  that it does not have (`isCut`), which have no value. */
export function offeredTrials(listed: readonly { readonly id: string; readonly name: string }[], chosen: readonly string[], isCut: boolean): [value: string | null, text: string][] {
  return [
    ["", chosen.length === 0 ? "Choose a trial …" : "Add a trial …"],
    ...listed.filter(({ id }) => !chosen.includes(id)).map(({ id, name }): [string, string] => [id, name]),
    ...(isCut ? [[null, "older ones: by their boxes in the list of trials"] as [null, string]] : []),
  ];
}

/** Less than this says nothing. */
const noticeable = 0.02;

/** From twice as much, or a half, on: "2.0×", "696× less". "" = nearer. What was seven hundred times as long is not
 *  "100 % faster". */
function timesText(ratio: number): string {
  const times = ratio > 0 && ratio < 1 ? 1 / ratio : ratio;
  return times < 2 ? "" : `${times < 100 ? times.toFixed(1) : countText(BigInt(Math.round(times)))}×${ratio < 1 ? " less" : ""}`;
}

/** Timings: shorter is better. Of other metrics nobody knows which way is good. */
export function changeOf(first: Side, side: Side, lessIsBetter: boolean): Change {
  if (first.count === 0 || side.count === 0) return { text: "", tone: 0 };
  // There is no part of nothing.
  if (first.mean === 0 && side.mean === 0) return { text: "same", tone: 0 };
  if (first.mean === 0 && Number.isFinite(side.mean)) return { text: "from 0", tone: lessIsBetter && side.mean > 0 ? -1 : 0 };
  // What is all gone is neither so many times less nor 100 % faster.
  if (side.mean === 0 && Number.isFinite(first.mean)) return { text: "to 0", tone: lessIsBetter && first.mean > 0 ? 1 : 0 };
  if (side.ratio === 0 || !Number.isFinite(side.ratio)) return { text: "", tone: 0 };
  const part = side.ratio - 1;
  const size = Math.abs(part);
  const percent = `${(size * 100).toFixed(size < 0.1 ? 1 : 0)} %`;
  if (size < 0.0005) return { text: "same", tone: 0 };
  const text = timesText(side.ratio) || `${part > 0 ? "+" : "−"}${percent}`;
  if (!lessIsBetter || size < noticeable) return { text, tone: 0 };
  return { text: `${text.replace(/^[+−]| less$/g, "")} ${part < 0 ? "faster" : "slower"}`, tone: part < 0 ? 1 : -1 };
}

/** How far sides lie from the first at most, for sorting. */
export function largestChange(first: Side, sides: readonly Side[]): number {
  return Math.max(0, ...sides.map((side) => (side.count > 0 && first.count > 0 ? Math.abs(side.mean - first.mean) : 0)));
}

/** What stays apart where trials are laid side by side: ranks and machines of one are not those of another. */
export const keptLabels = [clockLabel];
const deviceEnd = ";clock=device";

export interface ComparedKey {
  readonly metricGroup: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** "timing/forward", or "timing/forward;clock=device" of the device's clock. */
export function comparedId(key: ComparedKey): string {
  return metricId(key) + (clockOf(key.labels) === "device" ? deviceEnd : "");
}

interface Selector {
  readonly metricGroup: string;
  readonly name: string;
}

/** What is asked for to draw them, each once. */
export function comparedSelectors(ids: readonly string[]): Selector[] {
  const found = new Map<string, Selector>();
  for (const id of ids) {
    const selector = comparedSelector(id);
    if (selector) found.set(JSON.stringify(selector), selector);
  }
  return [...found.values()];
}

/** Of both clocks; null = it names nothing. */
function comparedSelector(id: string): Selector | null {
  const bare = id.endsWith(deviceEnd) ? id.slice(0, -deviceEnd.length) : id;
  const slash = bare.indexOf("/");
  if (slash < 1 || slash === bare.length - 1) return null;
  try {
    return { metricGroup: decodeURIComponent(bare.slice(0, slash)), name: bare.slice(slash + 1) };
  } catch {
    return null; // an address that somebody changed
  }
}

const usualCharts = ["timing/step", "training/loss"];
/** In an address where no chart is wanted: none at all would be the usual ones. */
const noChart = "none";

export function openedCharts(metrics: readonly string[]): readonly string[] {
  return metrics.length === 0 ? usualCharts : metrics.filter((id) => id !== noChart);
}

/** The charts of an address once `id` is opened, or closed. */
export function withChart(metrics: readonly string[], id: string, opened: boolean): string[] {
  const rest = openedCharts(metrics).filter((one) => one !== id);
  const next = opened ? [...rest, id] : rest;
  return next.length === 0 ? [noChart] : next;
}
