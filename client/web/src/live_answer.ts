// The answer of a question that is asked again and again while a trial runs: kept, and its end asked for alone
// (core/live_grid.ts says when).
import type { QueryBucketsResponse, QueryBucketsResponse_BucketSeries } from "#gen/query_pb";
import { Resolution } from "#gen/query_pb";
import { joined, livePlan, wholeMs, type Grid, type LivePlan } from "./core/live_grid";
import { bucketsMax, bucketsOfAllMax, type Range } from "./core/range";
import type { Result } from "./failure";

/** Apart from all others of its answer. Not its numbers: a group of series may get one more. */
export function seriesName({ key }: QueryBucketsResponse_BucketSeries): string {
  return JSON.stringify([key?.metricGroup, key?.name, Object.entries(key?.labels ?? {}).sort()]);
}

/** `kept` from bucket `first` on, and from bucket `from` on what `tail` says, whose bucket 0 that is. */
export function grown(kept: QueryBucketsResponse, tail: QueryBucketsResponse, first: number, from: number): QueryBucketsResponse {
  const tails = new Map(tail.series.map((series) => [seriesName(series), series]));
  const series = kept.series.map((one) => {
    const name = seriesName(one);
    const news = tails.get(name);
    tails.delete(name);
    return { ...one, ...(news ? { seriesNos: news.seriesNos } : {}), ...joined(one, news, first, from) };
  });
  for (const one of tails.values()) series.push({ ...one, indexes: one.indexes.map((index) => index + from) });
  return { ...kept, series, end: tail.end > kept.end ? tail.end : kept.end, ...withGaps(kept, tail, Number(tail.start)) };
}

type Asked = Promise<Result<QueryBucketsResponse> | null>;

export class LiveAnswer {
  private question = "";
  private grid: Grid | null = null;
  private kept: QueryBucketsResponse | null = null;
  private keptEnd = 0;
  private wholeAt = -Infinity;
  /** The master answers with buckets of its own. */
  private isCoarse = false;

  /** Asks by `bucketsOf` for what is new of `window`, or by `all` where that is not to be had or would be over the master's limit for
   *  `seriesCount`; the answer is all there is. */
  async ask(
    question: string, window: Range, buckets: number, seriesCount: number, bucketsOf: (of: Range, maxBuckets: number) => Asked, all: () => Asked,
  ): Asked {
    const plan = this.plan(question, window, buckets);
    if (!plan || plan.buckets > bucketsMax || plan.buckets * seriesCount > bucketsOfAllMax) return all();
    const answer = await bucketsOf(plan, plan.buckets);
    if (!answer?.ok) return answer;
    const value = this.take(plan, answer.value, window.start);
    return value ? { ok: true, value } : all();
  }

  /** How to ask; null = for all of it, as of a trial that has ended. Another `question` forgets what was kept. */
  private plan(question: string, window: Range, buckets: number): LivePlan | null {
    if (question !== this.question) {
      this.forget();
      this.question = question;
    }
    if (this.isCoarse) return null;
    return livePlan(window, buckets, this.kept && this.grid ? { grid: this.grid, end: this.keptEnd } : null, performance.now() - this.wholeAt < wholeMs);
  }

  /** What is known with the answer of `plan`, from `firstUs` on; null = it is not what was asked: ask anew. */
  private take(plan: LivePlan, answer: QueryBucketsResponse, firstUs: number): QueryBucketsResponse | null {
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
    return (this.kept = grown(kept, answer, first, from));
  }

  private forget(): void {
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
