// How busy the machines of trials were, as a line the size of a word for each: GPUs, or processors where there
// are none. Asked for a few trials at a time, again only where more samples came.
import { Aggregation, type QueryBucketsResponse_BucketSeries as BucketSeries } from "#gen/query_pb";
import { TrialState, type Trial } from "#gen/model_pb";
import { ask, query } from "./api";
import { Lanes } from "./core/lanes";
import { meanOf, sparkPath } from "./core/spark";
import { valueText } from "./core/units";
import { fill, h, line } from "./dom";

const columns = 40;
const height = 18;
const atOnce = 3;
/** Of a trial that runs. */
const againMs = 15_000;
const knownMax = 1000;
const wanted = [{ metricGroup: "gpu", name: "gpu_util" }, { metricGroup: "cpu", name: "cpu_util_simple" }];
const words: Readonly<Record<string, string>> = { gpu: "GPUs", cpu: "processors" };

interface Known {
  readonly place: HTMLElement;
  sampleCount: bigint;
  askedAt: number;
}

export class Utilisations {
  private readonly known = new Map<string, Known>();
  private listed = new Map<string, Trial>();
  private readonly lanes = new Lanes(atOnce, (id, signal) => this.ask(id, signal));

  /** Where a trial's line is, or will be. */
  place(trial: Trial): HTMLElement {
    return this.of(trial).place;
  }

  stop(): void {
    this.lanes.stop();
  }

  /** Asks for those of `trials` of which there is something new; of what is under way, what is no longer listed is given up. */
  look(trials: readonly Trial[]): void {
    this.listed = new Map(trials.map((trial) => [String(trial.trialId), trial]));
    const now = performance.now();
    const open = trials.filter((trial) => {
      const known = this.of(trial);
      const waits = trial.state === TrialState.RUNNING && now - known.askedAt < againMs;
      return trial.sampleCount > 0n && known.sampleCount !== trial.sampleCount && !waits;
    });
    this.lanes.want(open.map((trial) => String(trial.trialId)), new Set(this.listed.keys()));
  }

  private of(trial: Trial): Known {
    const id = String(trial.trialId);
    const there = this.known.get(id);
    if (there) return there;
    if (this.known.size >= knownMax) this.known.clear();
    const known = { place: h("span", { class: "spark", "data-spark": id, "data-key": `spark-${id}` }), sampleCount: 0n, askedAt: -Infinity };
    this.known.set(id, known);
    return known;
  }

  private async ask(id: string, signal: AbortSignal): Promise<void> {
    const trial = this.listed.get(id);
    if (!trial) return;
    const { trialId, sampleCount } = trial;
    const answer = await ask((options) => query.queryBuckets({ trial: { trialId }, selectors: wanted, aggregation: Aggregation.ACROSS, maxBuckets: columns }, options), signal);
    if (!answer?.ok) return; // The list itself tells what is wrong; it is asked again with the next one.
    const known = this.of(trial);
    known.sampleCount = sampleCount;
    known.askedAt = performance.now();
    fill(known.place, spark(answer.value.series));
  }
}

function spark(series: readonly BucketSeries[]): Element | null {
  const of = series.find((one) => one.key?.metricGroup === "gpu" && one.indexes.length > 0) ?? series.find((one) => one.indexes.length > 0);
  if (!of) return null;
  const text = `${words[of.key?.metricGroup ?? ""] ?? ""}: ${valueText(meanOf(of), "percent")} busy on average`;
  return line(sparkPath(of, columns, height, 100), columns, height, text);
}
