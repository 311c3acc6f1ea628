// Answers of buckets as the cores know them.
import type { Completeness } from "#gen/model_pb";
import type { QueryBucketsResponse, QueryBucketsResponse_BucketSeries } from "#gen/query_pb";
import { Resolution } from "#gen/query_pb";
import type { Bucketed } from "./core/align";
import type { KnownGap } from "./core/gap_bands";
import { placeMax, type AxisKind, type Range } from "./core/range";
import { knownGap, missesNothing } from "./words";

export function bucketed(series: QueryBucketsResponse_BucketSeries): Bucketed {
  return {
    indexes: series.indexes, mins: series.mins, maxs: series.maxs, means: series.means, counts: series.counts, nanCounts: series.nanCounts,
  };
}

/** Gaps that are holes of a chart; what was never measured is told in words. */
export function holes(answer: { readonly completeness?: Completeness }): KnownGap[] {
  return (answer.completeness?.gaps ?? []).filter((gap) => !missesNothing(gap.cause)).map(knownGap);
}

/** What an answer covers, where all was asked for: to the end of its last bucket, or of the trial where that reaches over it. */
export function coveredRange(answer: QueryBucketsResponse): Range {
  const start = Number(answer.start);
  let last = 0;
  for (const series of answer.series) last = Math.max(last, series.indexes[series.indexes.length - 1] ?? 0);
  const end = start + (last + 1) * Number(answer.width);
  return { start, end: answer.end > 0n ? Math.min(end, Number(answer.end)) : end };
}

/** The axis of a question; null = all there is. */
export function axisOf(axis: AxisKind, range: Range | null) {
  if (axis === "batch") {
    return { case: "batchRange" as const, value: { startBatch: range?.start ?? 0, endBatch: range?.end ?? 0 } };
  }
  const [startTimeUs, endTimeUs] = [range?.start ?? 0, range?.end ?? 0].map((us) => BigInt(Math.min(placeMax.time, us)));
  return { case: "timeRange" as const, value: { startTimeUs, endTimeUs } };
}

export function resolutionWords(resolution: Resolution): string {
  switch (resolution) {
    case Resolution.RESOLUTION_RAW: return "single samples";
    case Resolution.RESOLUTION_10_SECONDS: return "rollups of 10 s";
    case Resolution.RESOLUTION_60_SECONDS: return "rollups of 60 s";
    case Resolution.RESOLUTION_UNSPECIFIED: return "nothing";
  }
}
