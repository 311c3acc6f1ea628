// A live stream of a trial as a pulse: says when something new was acked, and when the trial has ended.
// Charts then ask for their buckets; so what is shown is always what the master holds. The stream goes on
// from its cursor after a cut; one that is silent for too long counts as cut.
import { TrialState } from "#gen/model_pb";
import { query } from "./api";
import { isOutOfRange, toFailure, type Failure } from "./failure";

export type FollowState = "connecting" | "live" | "lost" | "ended" | "refused";

export interface Follow {
  stop(): void;
}

/** The master says something each second. */
const silentMsMax = 6000;
const retryMsMax = 10_000;

export function follow(
  trialId: bigint, seriesNos: readonly number[],
  on: { pulse(): void; state(state: FollowState, failure: Failure | null): void },
): Follow {
  let stopped = false;
  let under: AbortController | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let cursor = "";
  let failures = 0;

  const again = (): void => {
    const ms = Math.min(retryMsMax, 500 * 2 ** Math.min(failures, 5)) * (0.75 + Math.random() / 2);
    timer = setTimeout(() => void connect(), ms);
  };
  const connect = async (): Promise<void> => {
    const controller = new AbortController();
    under = controller;
    let watch: ReturnType<typeof setTimeout> | undefined;
    const alive = (): void => {
      clearTimeout(watch);
      watch = setTimeout(() => controller.abort(), silentMsMax);
    };
    try {
      alive();
      const stream = query.followSamples({ trial: { trialId }, selectors: [{ seriesNos: [...seriesNos] }], cursor }, { signal: controller.signal });
      for await (const message of stream) {
        if (stopped) return;
        alive();
        failures = 0;
        cursor = message.cursor;
        on.state("live", null);
        if (message.samples.length > 0) on.pulse();
        if (message.state !== TrialState.RUNNING) {
          on.state("ended", null);
          return;
        }
      }
      ++failures; // Ended without a last message: the master stops.
      on.state("lost", null);
      again();
    } catch (thrown) {
      if (stopped) return;
      if (isOutOfRange(thrown)) cursor = "";
      const failure = toFailure(thrown);
      ++failures;
      const final = failure.kind === "refused" || failure.kind === "missing" || failure.kind === "notFound";
      on.state(final ? "refused" : "lost", failure);
      if (!final) again();
    } finally {
      clearTimeout(watch);
    }
  };
  on.state("connecting", null);
  void connect();
  return {
    stop: () => {
      stopped = true;
      clearTimeout(timer);
      under?.abort();
    },
  };
}
