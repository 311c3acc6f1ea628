// What all tabs of a trial's page know of it: the trial, its writers, its series. Asked for by TrialPage.
import type { Completeness, Series, Trial, TrialProfiling } from "#gen/model_pb";
import { TrialState } from "#gen/model_pb";
import type { Writer } from "#gen/query_pb";
import { absenceWords } from "./absence_words";
import { ask, query } from "./api";
import type { KnownSeries } from "./core/series_choice";
import type { Range } from "./core/range";
import { formatView, trialView, type TrialView } from "./core/view_state";
import { h, type Part } from "./dom";
import type { Failure, Result } from "./failure";
import { stateBox } from "./state_box";

export interface TrialInfo {
  readonly trial: Trial;
  readonly writers: readonly Writer[];
  readonly completeness: Completeness | undefined;
  readonly profiling: TrialProfiling | undefined;
  readonly series: readonly KnownSeries[];
  /** There are more series than this page lists. */
  readonly seriesTruncated: boolean;
}

/** One tab of a trial's page. */
export interface TrialTab {
  readonly element: HTMLElement;
  update(view: TrialView, info: TrialInfo): void;
  destroy(): void;
}

/** Hears of an answer that did not come, from the tab that asked: what concerns all of the trial's page is more than its own. */
export type Learnt = (failure: Failure) => void;

const seriesMax = 50_000;

export function known(series: Series): KnownSeries {
  return {
    seriesNo: series.seriesNo, metricGroup: series.key?.metricGroup ?? "", name: series.key?.name ?? "",
    labels: series.key?.labels ?? {}, unit: series.unit,
  };
}

/** All series of a trial, page by page. null = given up. */
export async function readSeries(trialId: bigint, signal: AbortSignal): Promise<Result<{ series: KnownSeries[]; truncated: boolean }> | null> {
  const series: KnownSeries[] = [];
  let pageToken = "";
  do {
    const token: string = pageToken;
    const answer = await ask((options) => query.listSeries({ trial: { trialId }, pageSize: 10_000, pageToken: token }, options), signal);
    if (!answer || !answer.ok) return answer;
    series.push(...answer.value.series.map(known));
    pageToken = answer.value.nextPageToken;
  } while (pageToken !== "" && series.length < seriesMax);
  return { ok: true, value: { series, truncated: pageToken !== "" } };
}

export function isRunning(info: TrialInfo): boolean {
  return info.trial.state === TrialState.RUNNING;
}

/** Of a trial that does not run: that it ended, or that nobody knows. */
export function endedWords(info: TrialInfo | null): string {
  return info?.trial.state === TrialState.LOST ? "not heard of for a minute" : "trial has ended";
}

/** From its first sample to its newest, half-open. */
export function timeBounds(trial: Trial): Range {
  const start = Number(trial.firstSampleTimeUs);
  return { start, end: Math.max(start, Number(trial.lastSampleTimeUs)) + 1 };
}

/** What the machine is asked for; timings and what a training records itself are no sensor's. */
export const sampled = "system metrics";

/** The only groups that sensors of a trial that runs are asked to sample; empty = all. What of a trial that does not run is
 *  missing may have been so before anybody asked. */
export function askedGroups(info: TrialInfo): readonly string[] {
  return isRunning(info) ? info.profiling?.metricGroups ?? [] : [];
}

/** Why there is nothing to draw of a trial, when there is nothing at all; `what`: "timings", "steps", "series", or `sampled`. */
export function absenceBox(info: TrialInfo, what: string): HTMLElement {
  const { trial, profiling, series } = info;
  const { absence, title, advice, command, leadsElsewhere } = absenceWords({
    what, trialId: trial.trialId, state: trial.state, isOff: profiling !== undefined && !profiling.on,
    groups: what === sampled ? askedGroups(info) : [], sampleCount: trial.sampleCount, hasOthers: series.length > 0,
  });
  const actions: Part[] = [command !== undefined && h("code", {}, command), leadsElsewhere === true && elsewhere(info, what)];
  return stateBox(absence, title, advice, ...actions.filter((one) => one !== false && one !== null));
}

/** The tab where there is something. */
function elsewhere(info: TrialInfo, what: string): HTMLElement | null {
  const isTiming = info.series.map((series) => series.metricGroup === "timing");
  // Timings without steps stand below what says so.
  const tab = what !== "steps" && isTiming.includes(true) ? "timings" : isTiming.includes(false) ? "metrics" : null;
  return tab && h("a", { href: formatView({ ...trialView(String(info.trial.trialId)), tab }) }, tab === "timings" ? "They are under Timings" : "They are under System metrics");
}
