// The answer of a question over batches that is asked again and again while a trial runs: kept, and its end asked for alone, on the buckets
// that the master chose (core/batch_tail.ts says from where on).
import type { QueryBucketsResponse } from "#gen/query_pb";
import { Resolution } from "#gen/query_pb";
import type { Range } from "./core/range";
import { batchTail, stillAsked, tailStart, type BatchTail, type Seen } from "./core/batch_tail";
import type { Result } from "./failure";
import { grown, seriesName } from "./live_answer";

/** So long the end alone is asked for: what came late is in the next answer about all of it. */
const wholeMs = 30_000;
/** The contract's batches are of 32 bits. */
const batchesMax = 2 ** 31 - 1;

type Asked = Promise<Result<QueryBucketsResponse> | null>;

export class LiveBatches {
  private question = "";
  private kept: QueryBucketsResponse | null = null;
  private seen: Seen[] = [];
  private askedMs = 0;
  private wholeMs = -Infinity;

  /** Asks by `bucketsOf` (null = of all) for what is new; the answer is all there is. */
  async ask(question: string, buckets: number, bucketsOf: (of: Range | null, maxBuckets: number) => Asked): Asked {
    const tail = this.plan(question, buckets);
    const answer = await (tail ? bucketsOf(tail, tail.buckets) : bucketsOf(null, buckets));
    if (!answer?.ok) return answer;
    const value = this.take(tail, answer.value);
    return value ? { ok: true, value } : this.ask(question, buckets, bucketsOf);
  }

  /** What to ask for; null = all of it. Another `question` forgets what was kept. */
  private plan(question: string, buckets: number): BatchTail | null {
    if (question !== this.question) this.forget();
    this.question = question;
    const now = (this.askedMs = performance.now());
    const { kept } = this;
    if (!kept || now - this.wholeMs >= wholeMs) return null;
    const from = tailStart(this.seen, now);
    const newestEnd = Math.max(0, ...(this.seen[this.seen.length - 1]?.ends.values() ?? []));
    const tail = from === null ? null : batchTail(Number(kept.start), Number(kept.width), newestEnd, from, buckets);
    return tail && tail.end <= batchesMax ? tail : null;
  }

  /** What is known with the answer to `plan`; null = it is not what was asked: ask for all. */
  private take(plan: BatchTail | null, answer: QueryBucketsResponse): QueryBucketsResponse | null {
    const { kept } = this;
    if (!plan) {
      this.wholeMs = this.askedMs;
      // Rollups have a grid of their own.
      const isRaw = answer.resolution === Resolution.RESOLUTION_RAW;
      if (!isRaw) this.forget();
      return isRaw ? this.keep(answer) : answer;
    }
    if (!kept || answer.resolution !== Resolution.RESOLUTION_RAW || Number(answer.start) !== plan.start || answer.width !== kept.width) {
      this.forget();
      return null;
    }
    return this.keep(grown(kept, answer, 0, Math.round((plan.start - Number(kept.start)) / Number(kept.width))));
  }

  private forget(): void {
    this.kept = null;
    this.seen = [];
    this.question = "";
    this.wholeMs = -Infinity;
  }

  private keep(answer: QueryBucketsResponse): QueryBucketsResponse {
    const ends = new Map<string, number>();
    for (const series of answer.series) {
      const last = series.indexes[series.indexes.length - 1];
      if (last !== undefined) ends.set(seriesName(series), Number(answer.start) + (last + 1) * Number(answer.width));
    }
    this.seen = stillAsked([...this.seen, { atMs: this.askedMs, ends }], this.askedMs);
    return (this.kept = answer);
  }
}
