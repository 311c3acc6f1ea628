// Which rank's timings are shown, and which series are its: what is without a rank (-1) has no label to be asked by.
import type { KnownSeries } from "./series_choice";

/** The rank of the address, "all" among them, else the first; what has none comes after all that have one. */
export function shownRank(wanted: string, ranks: readonly number[]): string {
  return wanted !== "" ? wanted : String(ranks.find((rank) => rank >= 0) ?? ranks[0] ?? 0);
}

export interface RankSelector {
  readonly metricGroup: string;
  readonly labels: Record<string, string>;
  readonly seriesNos: number[];
}

/** What asks for the timings of `rank`; null = none of its series is known. */
export function rankSelector(rank: string, ranks: readonly number[], series: readonly KnownSeries[]): RankSelector | null {
  const metricGroup = "timing";
  if (rank !== "all" && rank !== "-1") return { metricGroup, labels: { rank }, seriesNos: [] };
  if (rank === "all" || ranks.every((one) => one < 0)) return { metricGroup, labels: {}, seriesNos: [] };
  const seriesNos = series.filter((one) => one.metricGroup === metricGroup && one.labels["rank"] === undefined).map((one) => one.seriesNo);
  return seriesNos.length === 0 ? null : { metricGroup, labels: {}, seriesNos };
}
