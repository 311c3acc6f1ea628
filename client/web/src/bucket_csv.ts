// Buckets as rows of a CSV, as all tables of buckets have them.
import type { QueryBucketsResponse, QueryBucketsResponse_BucketSeries as BucketSeries } from "#gen/query_pb";
import { csvText, type Cell } from "./core/csv";
import type { AxisKind } from "./core/range";
import { isoText } from "./core/time_text";

export function bucketCsv(answer: QueryBucketsResponse, series: readonly BucketSeries[], axis: AxisKind): string {
  const rows: Cell[][] = [];
  for (const one of series) {
    const labels = Object.entries(one.key?.labels ?? {}).sort().map(([name, value]) => `${name}=${value}`).join(" ");
    one.indexes.forEach((index, i) => {
      const start = Number(answer.start) + index * Number(answer.width);
      rows.push([one.key?.metricGroup ?? "", one.key?.name ?? "", labels, one.unit, axis === "time" ? isoText(start) : start,
        one.mins[i] ?? null, one.maxs[i] ?? null, one.means[i] ?? null, one.lasts[i] ?? null, Number(one.counts[i] ?? 0n)]);
    });
  }
  return csvText(["metric_group", "name", "labels", "unit", axis === "time" ? "bucket_start" : "first_batch", "min", "max", "mean", "last", "samples"], rows);
}
