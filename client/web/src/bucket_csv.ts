// Buckets as rows of a CSV, as all tables of buckets have them.
import type { QueryBucketsResponse, QueryBucketsResponse_BucketSeries as BucketSeries } from "#gen/query_pb";
import { csvText, type Cell } from "./core/csv";
import type { AxisKind } from "./core/range";
import { isoText, isTellable } from "./core/time_text";

function head(axis: AxisKind): string[] {
  return ["metric_group", "name", "labels", "unit", axis === "time" ? "bucket_start" : "first_batch", "min", "max", "mean", "last", "samples", "nan"];
}

function rowsOf(answer: QueryBucketsResponse, series: readonly BucketSeries[], axis: AxisKind): Cell[][] {
  const rows: Cell[][] = [];
  for (const one of series) {
    const labels = Object.entries(one.key?.labels ?? {}).sort().map(([name, value]) => `${name}=${value}`).join(" ");
    one.indexes.forEach((index, i) => {
      const start = Number(answer.start) + index * Number(answer.width);
      rows.push([one.key?.metricGroup ?? "", one.key?.name ?? "", labels, one.unit, axis === "time" && isTellable(start) ? isoText(start) : start,
        one.mins[i] ?? null, one.maxs[i] ?? null, one.means[i] ?? null, one.lasts[i] ?? null, Number(one.counts[i] ?? 0n), Number(one.nanCounts[i] ?? 0n)]);
    });
  }
  return rows;
}

/** Of some series of an answer. */
export function bucketCsv(answer: QueryBucketsResponse, series: readonly BucketSeries[], axis: AxisKind): string {
  return csvText(head(axis), rowsOf(answer, series, axis));
}

/** Of all series of several answers. */
export function answersCsv(answers: readonly QueryBucketsResponse[], axis: AxisKind): string {
  return csvText(head(axis), answers.flatMap((answer) => rowsOf(answer, answer.series, axis)));
}
