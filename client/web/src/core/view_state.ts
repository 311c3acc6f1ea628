// What the page shows, as the part of its address behind "#", and back: a link restores the view. What
// cannot be read falls back to the default, but a page that there is none of is told; nothing an address says is trusted further.

import { allTrials, type Place } from "./cap_place";
import type { Clock } from "./clocks";
import { formatNumbers, parseNumbers } from "./number_ranges";
import { placeMax, type AxisKind } from "./range";

export const tabs = ["timings", "metrics", "heat", "traces", "completeness"] as const;
export type Tab = (typeof tabs)[number];

export interface TrialsView {
  readonly page: "trials";
  readonly search: string;
  readonly state: string;
  readonly project: string;
  /** From 1. */
  readonly pageNo: number;
  /** The master's token of that page; "" = the first one. */
  readonly pageToken: string;
}

export interface TrialView {
  readonly page: "trial";
  readonly trial: string;
  readonly tab: Tab;
  readonly axis: AxisKind;
  /** Null = all there is. Microseconds or batches. */
  readonly start: number | null;
  readonly end: number | null;
  /** Span of the window that follows a running trial; 0 = it stands still. */
  readonly liveUs: number;
  /** "group/name" of the charts; empty = the usual ones. */
  readonly metrics: readonly string[];
  /** Label name → values that are wanted; a name that is absent = any. */
  readonly labels: ReadonlyMap<string, readonly string[]>;
  /** "" = the first, "all" = all together, else the rank. */
  readonly rank: string;
  /** Of the heat map, where a scope has timings of both; "" = the host's, where there are any. */
  readonly clock: Clock | "";
  /** One line for each series, or all of a chart in one; "" = as many as can be told apart. */
  readonly lines: "" | "each" | "one";
  /** Numbers of chosen traces; empty = all that can be merged. Of the tab of traces, as those below. */
  readonly traces: readonly number[];
  /** How they are placed; "" = by their clocks. */
  readonly placed: "" | "start";
  /** The trace whose steps are looked at; 0 = none. */
  readonly steps: number;
  /** What the traces that are listed contain; "" = all are. */
  readonly filter: string;
  /** By which column of the timings their table is ordered (core/sorting.ts); "" = by share. */
  readonly sort: string;
}

export interface CompareView {
  readonly page: "compare";
  readonly trials: readonly string[];
  readonly axis: AxisKind;
  /** Null = all there is. Batches, or microseconds since each began. */
  readonly start: number | null;
  readonly end: number | null;
  /** What has a chart (core/compared.ts); empty = the usual ones. */
  readonly metrics: readonly string[];
  /** What the rows of the table contain; "" = all are listed. */
  readonly filter: string;
  /** How they are ordered (compare_rows.ts); "" = timings first, what differs most before others. */
  readonly sort: string;
}

export interface AdminView {
  readonly page: "admin";
  /** Whose caps are shown. */
  readonly place: Place;
}

/** An address that names none of them. */
export interface MissingView {
  readonly page: "missing";
  /** What stands behind "#". */
  readonly address: string;
}

export type View = TrialsView | TrialView | CompareView | AdminView | MissingView;

export const trialsView: TrialsView = { page: "trials", search: "", state: "", project: "", pageNo: 1, pageToken: "" };

export const compareView: CompareView = { page: "compare", trials: [], axis: "batch", start: null, end: null, metrics: [], filter: "", sort: "" };

export const adminView: AdminView = { page: "admin", place: allTrials };

export function trialView(trial: string): TrialView {
  return {
    page: "trial", trial, tab: "timings", axis: "time", start: null, end: null, liveUs: 0,
    metrics: [], labels: new Map(), rank: "", clock: "", lines: "", traces: [], placed: "", steps: 0, filter: "", sort: "",
  };
}

const states = ["running", "completed", "failed", "lost"];
const liveUsMax = 86_400_000_000;
/** Boxes that are ticked: of labels, a cluster's GPUs. */
const listMax = 1024;
/** Of a comparison: what the master takes in one question. */
const comparedMax = 1000;
/** As many as the master merges. */
const tracesMax = 4096;
const labelPrefix = "l.";
/** Of a filter; and of names, in which the contract has no more. */
const textMax = 256;
const sortMax = 24;
const owners = ["project", "trial"] as const;

function whole(text: string | null): number | null {
  if (text === null || !/^\d{1,16}$/.test(text)) return null;
  return Number(text);
}

function textOf(query: URLSearchParams, name: string): string {
  return (query.get(name) ?? "").slice(0, textMax);
}

function sortOf(query: URLSearchParams): string {
  return (query.get("sort") ?? "").slice(0, sortMax);
}

function parsePlace(query: URLSearchParams): Place {
  const [owner, name] = [owners.find((one) => one === query.get("of")), textOf(query, "name")];
  const metricGroup = textOf(query, "group");
  const project = owner === "trial" ? textOf(query, "project") : "";
  return owner && name !== "" ? { owner, name, ...(project === "" ? {} : { project }), metricGroup } : { ...allTrials, metricGroup };
}

/** A page is one by its token: without it, the first. */
function parsePage(query: URLSearchParams): Pick<TrialsView, "pageNo" | "pageToken"> {
  const [pageNo, pageToken] = [whole(query.get("page")) ?? 1, query.get("after") ?? ""];
  return pageNo > 1 && /^[\w.~+/=-]{1,256}$/.test(pageToken) ? { pageNo, pageToken } : { pageNo: 1, pageToken: "" };
}

/** Of its axis, as far as a question can name it. */
function placeIn(query: URLSearchParams, name: string, axis: AxisKind): number | null {
  const text = query.get(name) ?? "";
  return /^\d{1,19}$/.test(text) ? Math.min(placeMax[axis], Number(text)) : null;
}

function wholeRange(query: URLSearchParams, axis: AxisKind): Pick<TrialView, "start" | "end"> {
  const [start, end] = [placeIn(query, "from", axis), placeIn(query, "to", axis)];
  return start !== null && end !== null && start < end ? { start, end } : { start: null, end: null };
}

function parseTrial(trial: string, tab: string, query: URLSearchParams): TrialView {
  const labels = new Map<string, string[]>();
  for (const name of new Set(query.keys())) {
    if (name.startsWith(labelPrefix)) labels.set(name.slice(labelPrefix.length), query.getAll(name).slice(0, listMax));
  }
  const lines = query.get("lines");
  const axis = query.get("axis") === "batch" ? "batch" : "time";
  return {
    page: "trial",
    trial,
    tab: tabs.find((one) => one === tab) ?? "timings",
    axis,
    ...wholeRange(query, axis),
    liveUs: Math.min(liveUsMax, whole(query.get("live")) ?? 0),
    metrics: query.getAll("m").slice(0, listMax),
    labels,
    rank: /^(all|-?\d{1,9})$/.test(query.get("rank") ?? "") ? (query.get("rank") ?? "") : "",
    clock: query.get("clock") === "device" ? "device" : "",
    lines: lines === "each" || lines === "one" ? lines : "",
    traces: parseNumbers(query.get("traces") ?? "", tracesMax),
    placed: query.get("placed") === "start" ? "start" : "",
    steps: parseNumbers(query.get("steps") ?? "", 1)[0] ?? 0,
    filter: textOf(query, "q"),
    sort: sortOf(query),
  };
}

export function parseView(hash: string): View {
  const [path = "", search = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  const query = new URLSearchParams(search);
  const [page, ...rest] = path.split("/");
  if (page === "trial" && /^\d{1,18}$/.test(rest[0] ?? "")) return parseTrial(rest[0] ?? "", rest[1] ?? "", query);
  if (page === "compare") {
    const trials = [...new Set(query.getAll("t"))].filter((id) => /^\d{1,18}$/.test(id)).slice(0, 16);
    const axis = query.get("axis") === "time" ? "time" : "batch";
    return { page: "compare", trials, axis, ...wholeRange(query, axis), metrics: query.getAll("m").slice(0, comparedMax), filter: textOf(query, "q"), sort: sortOf(query) };
  }
  if (page === "admin") return { page: "admin", place: parsePlace(query) };
  if (page !== "" && page !== "trials") return { page: "missing", address: hash.replace(/^#/, "") };
  const state = query.get("state") ?? "";
  return {
    page: "trials",
    search: query.get("q") ?? "",
    state: states.includes(state) ? state : "",
    project: query.get("project") ?? "",
    ...parsePage(query),
  };
}

function setRange(query: URLSearchParams, { start, end }: Pick<TrialView, "start" | "end">): void {
  if (start === null || end === null) return;
  query.set("from", String(start));
  query.set("to", String(end));
}

function trialQuery(view: TrialView): URLSearchParams {
  const query = new URLSearchParams();
  if (view.axis !== "time") query.set("axis", view.axis);
  setRange(query, view);
  if (view.liveUs > 0) query.set("live", String(view.liveUs));
  for (const metric of view.metrics) query.append("m", metric);
  for (const [name, values] of view.labels) for (const value of values) query.append(labelPrefix + name, value);
  if (view.rank !== "") query.set("rank", view.rank);
  if (view.lines !== "") query.set("lines", view.lines);
  if (view.tab === "heat" && view.clock !== "") query.set("clock", view.clock);
  if (view.tab === "timings" && view.sort !== "") query.set("sort", view.sort);
  if (view.tab !== "traces") return query;
  if (view.traces.length > 0) query.set("traces", formatNumbers(view.traces));
  if (view.placed !== "") query.set("placed", view.placed);
  if (view.steps > 0) query.set("steps", String(view.steps));
  if (view.filter !== "") query.set("q", view.filter);
  return query;
}

function withQuery(path: string, query: URLSearchParams): string {
  const text = query.toString();
  return text === "" ? path : `${path}?${text}`;
}

export function formatView(view: View): string {
  switch (view.page) {
    case "trial":
      return withQuery(`#/trial/${view.trial}/${view.tab}`, trialQuery(view));
    case "compare": {
      const query = new URLSearchParams();
      for (const trial of view.trials) query.append("t", trial);
      if (view.axis !== "batch") query.set("axis", view.axis);
      setRange(query, view);
      for (const metric of view.metrics) query.append("m", metric);
      if (view.filter !== "") query.set("q", view.filter);
      if (view.sort !== "") query.set("sort", view.sort);
      return withQuery("#/compare", query);
    }
    case "admin": {
      const query = new URLSearchParams();
      const { owner, name, project, metricGroup } = view.place;
      if (owner !== "all") query.set("of", owner);
      if (owner !== "all") query.set("name", name);
      if (project !== undefined) query.set("project", project);
      if (metricGroup !== "") query.set("group", metricGroup);
      return withQuery("#/admin", query);
    }
    case "missing":
      return `#${view.address}`;
    case "trials": {
      const query = new URLSearchParams();
      if (view.search !== "") query.set("q", view.search);
      if (view.state !== "") query.set("state", view.state);
      if (view.project !== "") query.set("project", view.project);
      if (view.pageNo > 1) query.set("page", String(view.pageNo));
      if (view.pageNo > 1) query.set("after", view.pageToken);
      return withQuery("#/trials", query);
    }
  }
}
