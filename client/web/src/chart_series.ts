// What answers of buckets hold of each chart.
import type { QueryBucketsResponse, QueryBucketsResponse_BucketSeries } from "#gen/query_pb";
import { naturally } from "./core/natural_order";
import { metricId } from "./core/series_choice";
import { labelsText } from "./words";

export interface ChartSeries {
  readonly answer: QueryBucketsResponse;
  readonly series: QueryBucketsResponse_BucketSeries[];
}

/** By the ids of charts. */
export function seriesOfCharts(answers: readonly QueryBucketsResponse[]): Map<string, ChartSeries> {
  const found = new Map<string, ChartSeries>();
  for (const answer of answers) {
    for (const one of answer.series) {
      if (!one.key) continue;
      const id = metricId(one.key);
      const known = found.get(id);
      if (!known) found.set(id, { answer, series: [one] });
      else if (known.answer === answer) known.series.push(one);
    }
  }
  // In an order of their own, that of their names, ranks first: each answer's may be another, and a line keeps its colour.
  for (const { series } of found.values()) {
    if (series.length < 2) continue;
    const texts = new Map(series.map((one) => [one, `${one.key?.labels["rank"] ?? ""} ${labelsText(one.key?.labels ?? {})}`]));
    series.sort((a, b) => naturally(texts.get(a) ?? "", texts.get(b) ?? ""));
  }
  return found;
}
