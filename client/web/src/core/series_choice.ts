// Which series of a trial are shown, in which charts, and what a person can choose from.
import { naturally } from "./natural_order";
import { looksMax } from "./palette";

export interface KnownSeries {
  readonly seriesNo: number;
  readonly metricGroup: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly unit: string;
}

export interface MetricChart {
  /** "gpu/gpu_util"; a slash in the group is escaped, for names hold some of their own. */
  readonly id: string;
  readonly metricGroup: string;
  readonly name: string;
  readonly unit: string;
  readonly series: KnownSeries[];
}

/** The metrics that a profile of a trial begins with, in this order. */
export const usualMetrics = [
  "gpu/gpu_util", "gpu/gpu_free_memory", "cpu/cpu_util_simple", "memory/memory_free", "network/net_throughput_sent",
  "network/net_throughput_recv", "disk/disk_iops", "disk/disk_throughput_read", "disk/disk_throughput_write",
] as const;

/** Loss, accuracy and the like: what somebody looks for first. */
const ownGroup = "training";

/** Labels that have a selector of their own, in this order; others are told in a line's name. */
export const choosableLabels = ["agent", "device", "rank"] as const;

export function metricId(series: { metricGroup: string; name: string }): string {
  return `${encodeURIComponent(series.metricGroup)}/${series.name}`;
}

/** Timings have a page of their own, and what the agent says of itself is shown where it is asked for. */
function isMetric(series: KnownSeries): boolean {
  return series.metricGroup !== "timing";
}

/** All metrics of a trial: what the training records itself first, then the usual ones, then by group and name. */
export function metricCharts(all: readonly KnownSeries[]): MetricChart[] {
  const charts = new Map<string, MetricChart>();
  for (const series of all.filter(isMetric)) {
    const id = metricId(series);
    const chart = charts.get(id) ?? { id, metricGroup: series.metricGroup, name: series.name, unit: series.unit, series: [] };
    charts.set(id, chart);
    chart.series.push(series);
  }
  const place = (chart: MetricChart): number => {
    if (chart.metricGroup === ownGroup) return -1;
    const at = (usualMetrics as readonly string[]).indexOf(chart.id);
    return at < 0 ? usualMetrics.length : at;
  };
  return [...charts.values()].sort((a, b) => place(a) - place(b) || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
}

/** The charts to show: those asked for, else the usual ones and the training's own. */
export function chosenCharts(charts: readonly MetricChart[], metrics: readonly string[]): MetricChart[] {
  if (metrics.length > 0) return charts.filter((chart) => metrics.includes(chart.id));
  const usual = new Set<string>(usualMetrics);
  const begins = charts.filter((chart) => usual.has(chart.id) || chart.metricGroup === ownGroup);
  return begins.length > 0 ? begins : charts.slice(0, usualMetrics.length);
}

/** Values of each choosable label that occur, in a natural order ("2" before "10"). */
export function labelValues(all: readonly KnownSeries[]): Map<string, string[]> {
  const values = new Map<string, Set<string>>();
  for (const series of all.filter(isMetric)) {
    for (const name of choosableLabels) {
      const value = series.labels[name];
      if (value === undefined) continue;
      const known = values.get(name) ?? new Set<string>();
      values.set(name, known.add(value));
    }
  }
  return new Map([...values].map(([name, known]) => [name, [...known].sort(naturally)]));
}

/** A series without a label that is chosen by (a machine's memory has no GPU) stays. */
export function wanted(series: KnownSeries, labels: ReadonlyMap<string, readonly string[]>): boolean {
  for (const [name, values] of labels) {
    const value = series.labels[name];
    if (value !== undefined && values.length > 0 && !values.includes(value)) return false;
  }
  return true;
}

/** What tells the series of one chart apart: the labels in which they differ, a rank first: its agent is where it ran. */
export function lineNames(series: readonly { labels: Readonly<Record<string, string>> }[]): string[] {
  const names = [...new Set(series.flatMap((one) => Object.keys(one.labels)))].sort((a, b) => Number(b === "rank") - Number(a === "rank") || (a < b ? -1 : 1));
  const telling = names.filter((name) => new Set(series.map((one) => one.labels[name])).size > 1);
  return series.map((one) => {
    const parts = telling.filter((name) => one.labels[name] !== undefined).map((name) => `${name}=${one.labels[name]}`);
    return parts.join(" ");
  });
}

/** As many lines as an eye can tell apart in one chart; above, one line with its smallest and largest. */
export const linesMax = 16;

/** As many lines as one chart may have, as somebody chose. */
export function linesOfChart(lines: "" | "each" | "one"): number {
  return lines === "one" ? 1 : lines === "each" ? looksMax : linesMax;
}

/** `limit`: of lines of one chart; less than somebody chose where many charts are in sight (core/line_budget.ts). */
export function foldsTogether(chart: MetricChart, limit: number): boolean {
  return chart.series.length > limit;
}

/** What the master takes in one selector. */
const selectorSeriesMax = 10_000;

/** To ask for these series, however many. */
export function selectorsOf(seriesNos: readonly number[]): { seriesNos: number[] }[] {
  const selectors: { seriesNos: number[] }[] = [];
  for (let from = 0; from < seriesNos.length; from += selectorSeriesMax) selectors.push({ seriesNos: seriesNos.slice(from, from + selectorSeriesMax) });
  return selectors;
}
