// A live stream of a trial as a pulse: says when something new was acked, and when the trial has ended.
// Charts then ask for their buckets; so what is shown is always what the master holds. The stream goes on
// from its cursor after a cut; one that is silent for too long counts as cut. A browser opens six connections
// to a host for all its tabs, and a stream holds one: hidden tabs have none, and of those that are seen one.
import { TrialState } from "#gen/model_pb";
import { query } from "./api";
import { afterFailure } from "./core/follow_state";
import { inTurn } from "./core/turn_taking";
import { isPlaceLost, toFailure, type Failure } from "./failure";

/** "polling": another tab has the stream, or the master has no place for one more; this one waits for its turn. */
export type FollowState = "connecting" | "live" | "polling" | "lost" | "ended" | "refused";

export interface Follow {
  stop(): void;
}

/** The master says something each second. */
const silentMsMax = 6000;
const retryMsMax = 10_000;
/** A turn that is free comes sooner than this. */
const turnMs = 500;

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      done();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}

export function follow(
  trialId: bigint, seriesNos: readonly number[],
  on: { pulse(): void; state(state: FollowState, failure: Failure | null): void },
): Follow {
  /** While this tab is seen; each time another. */
  let under: AbortController | null = null;
  let over = false;
  let cursor = "";
  let failures = 0;

  const finish = (state: FollowState, failure: Failure | null): void => {
    over = true;
    on.state(state, failure);
  };
  /** One stream, until it is cut or all is said. */
  const listen = async (seen: AbortSignal): Promise<void> => {
    const cut = new AbortController();
    const hide = (): void => cut.abort();
    seen.addEventListener("abort", hide, { once: true });
    let watch: ReturnType<typeof setTimeout> | undefined;
    const alive = (): void => {
      clearTimeout(watch);
      watch = setTimeout(hide, silentMsMax);
    };
    try {
      alive();
      const stream = query.followSamples({ trial: { trialId }, selectors: [{ seriesNos: [...seriesNos] }], cursor }, { signal: cut.signal });
      for await (const message of stream) {
        if (seen.aborted) return;
        alive();
        failures = 0;
        cursor = message.cursor;
        on.state("live", null);
        if (message.samples.length > 0) on.pulse();
        if (message.state !== TrialState.RUNNING) return finish("ended", null);
      }
      ++failures; // Ended without a last message: the master stops.
      on.state("lost", null);
    } catch (thrown) {
      if (seen.aborted) return;
      if (isPlaceLost(thrown)) cursor = "";
      const failure = toFailure(thrown);
      ++failures;
      const { state, final } = afterFailure(failure.kind);
      if (final) finish(state, failure);
      else on.state(state, failure);
    } finally {
      clearTimeout(watch);
      seen.removeEventListener("abort", hide);
    }
  };
  const listenOn = async (seen: AbortSignal): Promise<void> => {
    while (!seen.aborted && !over) {
      await listen(seen).catch((thrown: unknown) => {
        ++failures; // Of who hears: it does not end the following.
        console.error(thrown);
      });
      if (seen.aborted || over) return;
      await pause(Math.min(retryMsMax, 500 * 2 ** Math.min(failures, 5)) * (0.75 + Math.random() / 2), seen);
    }
  };
  const begin = (): void => {
    if (under || over || document.hidden) return;
    const controller = new AbortController();
    under = controller;
    const waiting = setTimeout(() => on.state("polling", null), turnMs);
    const locks = (navigator as Partial<Navigator>).locks;
    void inTurn(locks, "stepwell follow", controller.signal, () => {
      clearTimeout(waiting);
      return listenOn(controller.signal);
    }).finally(() => clearTimeout(waiting));
  };
  const seenOrHidden = (): void => {
    if (!document.hidden) return begin();
    under?.abort();
    under = null;
  };
  document.addEventListener("visibilitychange", seenOrHidden);
  on.state("connecting", null);
  begin();
  return {
    stop: () => {
      over = true;
      document.removeEventListener("visibilitychange", seenOrHidden);
      under?.abort();
    },
  };
}
