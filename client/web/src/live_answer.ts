// The answer of a question that is asked again and again while a trial runs: kept, and its end asked for alone
// (core/live_grid.ts says when).
import type { QueryBucketsResponse, QueryBucketsResponse_BucketSeries } from "#gen/query_pb";
import { Resolution } from "#gen/query_pb";
import { joined, livePlan, wholeMs, type Grid, type LivePlan } from "./core/live_grid";
import type { Range } from "./core/range";

function nameOf(series: QueryBucketsResponse_BucketSeries): string {
  return series.seriesNos.join(",");
}

export class LiveAnswer {
  private question = "";
  private grid: Grid | null = null;
  private kept: QueryBucketsResponse | null = null;
  private keptEnd = 0;
  private wholeAt = -Infinity;
  /** The master answers with buckets of its own. */
  private isCoarse = false;

  /** How to ask; null = for all of it, as of a trial that has ended. Another `question` forgets what was kept. */
  plan(question: string, window: Range, buckets: number): LivePlan | null {
    if (question !== this.question) {
      this.forget();
      this.question = question;
    }
    if (this.isCoarse) return null;
    return livePlan(window, buckets, this.kept && this.grid ? { grid: this.grid, end: this.keptEnd } : null, performance.now() - this.wholeAt < wholeMs);
  }

  /** What is known with the answer of `plan`, from `firstUs` on; null = it is not what was asked: ask anew. */
  take(plan: LivePlan, answer: QueryBucketsResponse, firstUs: number): QueryBucketsResponse | null {
    const { grid, start, isWhole } = plan;
    const isOnGrid = answer.resolution === Resolution.RESOLUTION_RAW && Number(answer.start) === start && Number(answer.width) === grid.width;
    this.keptEnd = plan.windowEnd;
    if (isWhole) {
      this.wholeAt = performance.now();
      this.isCoarse = !isOnGrid;
      this.grid = isOnGrid ? grid : null;
      return (this.kept = answer);
    }
    const kept = this.kept;
    if (!isOnGrid || !kept) {
      this.forget();
      return null;
    }
    const first = Math.floor((firstUs - grid.start) / grid.width);
    const from = Math.round((start - grid.start) / grid.width);
    const tails = new Map(answer.series.map((series) => [nameOf(series), series]));
    const series = kept.series.map((one) => ({ ...one, ...joined(one, tails.get(nameOf(one)), first, from) }));
    const known = new Set(kept.series.map(nameOf));
    for (const one of answer.series) {
      if (!known.has(nameOf(one))) series.push({ ...one, indexes: one.indexes.map((index) => index + from) });
    }
    return (this.kept = { ...kept, series, ...withGaps(kept, answer, start) });
  }

  forget(): void {
    this.grid = this.kept = null;
    this.isCoarse = false;
    this.question = "";
    this.wholeAt = -Infinity;
  }
}

/** What is held is as of the answer; gaps that ended before it are those that were known. */
function withGaps(kept: QueryBucketsResponse, answer: QueryBucketsResponse, startUs: number): Pick<QueryBucketsResponse, "completeness"> {
  if (!answer.completeness) return {};
  const before = (kept.completeness?.gaps ?? []).filter((gap) => gap.lastTimeUs > 0n && Number(gap.lastTimeUs) < startUs);
  return { completeness: { ...answer.completeness, gaps: [...before, ...answer.completeness.gaps] } };
}
