// Rows of the table that compares trials: timings first, those that differ most before others.
import type { CompareTrialsResponse, CompareTrialsResponse_ComparedSeries as Compared, CompareTrialsResponse_Side as WireSide } from "#gen/compare_pb";
import { SeriesKind } from "#gen/model_pb";
import { clockOf } from "./core/clocks";
import { changeOf, comparedId, isCompared, largestChange, unitDiffers, unitText, type Change, type Measured } from "./core/compared";
import type { Cell } from "./core/csv";
import { sorted } from "./core/sorting";
import { meanText, nanPart, overflows } from "./core/odd_values";
import { printable } from "./core/printable";

export interface CompareRow {
  readonly id: string;
  readonly name: string;
  /** Its group, and its clock where that is not the host's. */
  readonly of: string;
  /** One for each trial. "" = none. */
  readonly sides: readonly {
    readonly text: string;
    readonly change: Change;
    /** "60 of 120 are NaN"; "" = none is. */
    readonly nans: string;
    /** What `text` says is no finite number. */
    readonly isOdd: boolean;
    /** Where its unit is not the first trial's, so that there is no change: which they are. "" = it is. */
    readonly units: string;
  }[];
}

const nothing: Change = { text: "", tone: 0 };

function measured(series: Compared, of: WireSide): Measured {
  return { count: Number(of.count), mean: of.mean, ratio: of.meanRatio, difference: of.meanDifference, unit: series.unit || of.unit };
}

/** Of each trial, in its own unit. */
export function measuredSides(series: Compared): Measured[] {
  return series.sides.map((one) => measured(series, one));
}

function isTiming(series: Compared): boolean {
  return series.kind === SeriesKind.DURATION && series.key?.metricGroup === "timing";
}

function sizeOf(series: Compared): number {
  if (!isTiming(series)) return 0;
  const sides = measuredSides(series);
  const [first] = sides;
  return first ? largestChange(first, sides.filter((one) => !unitDiffers(first, one))) : 0;
}

export const compareOrders = ["", "rise", "fall", "name"] as const;
export type CompareOrder = (typeof compareOrders)[number];

/** The largest or smallest of its means, as a part of the first trial's; null = cannot be said. */
function ratioOf(series: Compared, pick: (...ratios: number[]) => number): number | null {
  const [first, ...others] = measuredSides(series);
  if (!first || first.mean === 0 || !Number.isFinite(first.mean)) return null;
  const ratios = others.filter((one) => isCompared(first, one) && one.ratio >= 0 && Number.isFinite(one.ratio)).map((one) => one.ratio);
  return ratios.length === 0 ? null : pick(...ratios);
}

/** Without how often scopes occurred; of those whose name or group has `filter` (lower case) in it. */
export function shownSeries(answer: CompareTrialsResponse, filter: string, order: CompareOrder = ""): Compared[] {
  const shown = answer.series
    .filter((series) => series.key && !(series.key.metricGroup === "timing" && series.kind !== SeriesKind.DURATION))
    .filter((series) => filter === "" || (series.key && comparedId(series.key).toLowerCase().includes(filter)));
  switch (order) {
    case "rise": return sorted(shown, (series) => ratioOf(series, Math.max), false);
    case "fall": return sorted(shown, (series) => ratioOf(series, Math.min), true);
    case "name": return sorted(shown, (series) => `${series.key?.name ?? ""}\0${series.key ? comparedId(series.key) : ""}`, true);
    case "": break;
  }
  return shown
    .map((series) => ({ series, timing: isTiming(series), size: sizeOf(series) }))
    .sort((a, b) => Number(b.timing) - Number(a.timing) || b.size - a.size)
    .map(({ series }) => series);
}

export function compareRow(series: Compared): CompareRow {
  const key = series.key ?? { metricGroup: "", name: "", labels: {} };
  const sides = measuredSides(series);
  const first = sides[0];
  return {
    id: comparedId(key), name: printable(key.name), of: printable(key.metricGroup) + (clockOf(key.labels) === "device" ? ", device clock" : ""),
    sides: series.sides.map((one, at) => {
      const ours = sides[at];
      const differs = first !== undefined && ours !== undefined && unitDiffers(first, ours);
      return {
        text: one.count > 0n ? meanText(one.mean, ours?.unit ?? "", overflows(one)) : one.nanCount > 0n ? "NaN" : "",
        nans: nanPart(Number(one.nanCount), Number(one.count + one.nanCount)),
        isOdd: one.count > 0n ? !Number.isFinite(one.mean) : one.nanCount > 0n,
        change: at === 0 || differs || !first || !ours ? nothing : changeOf(first, ours, isTiming(series)),
        units: differs ? `Unit: ${unitText(ours.unit)}. The first trial's: ${unitText(first.unit)}.` : "",
      };
    }),
  };
}

export const compareCsvHead = ["metric_group", "name", "clock", "unit", "trial", "trial_id", "samples", "nan", "mean", "min", "max", "last", "mean_difference", "mean_ratio"];

/** A row for each trial that has samples of it; `names` of the trials, in their order. */
export function compareCsvRows(answer: CompareTrialsResponse, names: readonly string[]): Cell[][] {
  return shownSeries(answer, "").flatMap((series) => series.sides.flatMap((one, at, [first]): Cell[][] => {
    if ((one.count === 0n && one.nanCount === 0n) || !series.key || !first) return [];
    const { metricGroup, name, labels } = series.key;
    const compares = at > 0 && isCompared(measured(series, first), measured(series, one));
    const numbers = one.count === 0n ? [NaN, NaN, NaN, NaN] : [one.mean, one.min, one.max, one.last];
    return [[metricGroup, name, clockOf(labels), series.unit || one.unit, names[at] ?? "", String(answer.trials[at]?.trial?.trialId ?? ""), Number(one.count), Number(one.nanCount),
      ...numbers, compares ? one.meanDifference : null, compares && first.mean !== 0 ? one.meanRatio : null]];
  }));
}
