// Rows of the table of timings, in the order of the report: what divides the step by its share, what is on
// the device's clock, what lies outside of steps.
import type { SummarizeTimingsResponse, SummarizeTimingsResponse_Timing as Timing } from "#gen/query_pb";
import { AbsenceReason } from "#gen/query_pb";
import type { Cell } from "./core/csv";
import { sorted, type Sorting } from "./core/sorting";
import { percentTexts, secondsText } from "./core/units";
import { labelsText } from "./words";

export interface TimingRow {
  readonly name: string;
  readonly labels: string;
  readonly rank: number;
  readonly kind: "scope" | "unaccounted" | "step" | "device" | "outside";
  /** Null = has none. */
  readonly share: number | null;
  readonly shareText: string;
  readonly selfSeconds: number | null;
  readonly totalSeconds: number;
  readonly timing: Timing | null;
}

export function onDeviceClock(timing: Timing): boolean {
  return timing.labels["clock"] === "device";
}

function row(timing: Timing, kind: TimingRow["kind"], shareText = ""): TimingRow {
  const { clock, ...labels } = timing.labels;
  void clock;
  const shares = kind === "scope";
  return {
    name: timing.name, labels: labelsText(labels), rank: timing.rank, kind, timing,
    share: shares ? timing.share : null, shareText: kind === "step" ? "100.0 %" : shareText,
    selfSeconds: shares ? timing.selfSeconds : null, totalSeconds: timing.totalSeconds,
  };
}

export const timingColumns = ["scope", "share", "own", "total", "mean", "p50", "p95", "p99", "steps", "count"] as const;
export type TimingColumn = (typeof timingColumns)[number];

/** Null = that cell holds no number. */
function valueOf(row: TimingRow, column: TimingColumn): number | string | null {
  const timing = row.timing;
  switch (column) {
    case "scope": return row.name;
    case "share": return row.share;
    case "own": return row.selfSeconds;
    case "total": return row.totalSeconds;
    case "mean": return timing?.meanSeconds ?? null;
    case "steps": return timing && timing.steps > 0n ? Number(timing.steps) : null;
    case "count": return timing ? Number(timing.count) : null;
    case "p50": case "p95": case "p99":
      if (timing === null || timing.quantilesAbsent !== AbsenceReason.UNSPECIFIED) return null;
      return { p50: timing.p50Seconds, p95: timing.p95Seconds, p99: timing.p99Seconds }[column];
  }
}

/** Rows of one rank in another order. What divides the step stays before its whole, as do the sections behind that. */
export function sortedTimings(rows: readonly TimingRow[], sorting: Sorting<TimingColumn> | null): readonly TimingRow[] {
  if (sorting === null) return rows;
  const sections: readonly (readonly TimingRow["kind"][])[] = [["scope", "unaccounted"], ["step"], ["device"], ["outside"]];
  return sections.flatMap((kinds) =>
    sorted(rows.filter((one) => kinds.includes(one.kind)), (one) => valueOf(one, sorting.column), sorting.up));
}

/** All rows of one rank. */
export function timingRows(answer: SummarizeTimingsResponse, rank: number): TimingRow[] {
  const ours = answer.timings.filter((timing) => timing.rank === rank);
  const summary = answer.ranks.find((one) => one.rank === rank);
  const scopes = ours.filter((timing) => timing.inStep && !onDeviceClock(timing) && timing.name !== "step");
  scopes.sort((a, b) => b.share - a.share);
  const percents = percentTexts([...scopes.map((timing) => timing.share), ...(summary ? [summary.unaccountedShare] : [])]);
  const rows = scopes.map((timing, at) => row(timing, "scope", percents[at]));
  if (summary) {
    rows.push({
      name: "unaccounted", labels: "", rank, kind: "unaccounted", share: summary.unaccountedShare, timing: null,
      shareText: percents[scopes.length] ?? "", selfSeconds: summary.unaccountedSeconds, totalSeconds: summary.unaccountedSeconds,
    });
  }
  const step = ours.find((timing) => timing.inStep && timing.name === "step" && !onDeviceClock(timing));
  if (step) rows.push(row(step, "step"));
  rows.push(...ours.filter((timing) => timing.inStep && onDeviceClock(timing)).map((timing) => row(timing, "device")));
  rows.push(...ours.filter((timing) => !timing.inStep).map((timing) => row(timing, "outside")));
  return rows;
}

export function ranksOf(answer: SummarizeTimingsResponse): number[] {
  const ranks = new Set([...answer.ranks.map((one) => one.rank), ...answer.timings.map((one) => one.rank)]);
  return [...ranks].sort((a, b) => a - b);
}

export function rankText(rank: number): string {
  return rank < 0 ? "without rank" : `rank ${rank}`;
}

/** p50, p95, p99, or why they are not there. */
export function quantileTexts(timing: Timing): string[] {
  if (timing.quantilesAbsent === AbsenceReason.RAW_REMOVED) return ["removed", "removed", "removed"];
  const about = timing.quantilesExact ? "" : "~";
  return [timing.p50Seconds, timing.p95Seconds, timing.p99Seconds].map((seconds) => about + secondsText(seconds));
}

export const csvHead = ["rank", "scope", "labels", "kind", "share", "self_seconds", "total_seconds", "mean_seconds", "p50_seconds", "p95_seconds", "p99_seconds", "max_seconds", "steps", "count"];

export function csvRow(one: TimingRow): Cell[] {
  const timing = one.timing;
  const there = timing !== null && timing.quantilesAbsent === AbsenceReason.UNSPECIFIED;
  return [one.rank, one.name, one.labels, one.kind, one.share, one.selfSeconds, one.totalSeconds, timing?.meanSeconds ?? null,
    there ? timing.p50Seconds : null, there ? timing.p95Seconds : null, there ? timing.p99Seconds : null, timing?.maxSeconds ?? null,
    timing ? Number(timing.steps) : null, timing ? Number(timing.count) : null];
}
