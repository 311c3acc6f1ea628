// Asks again and again while somebody looks: each `intervalMs`, later and later while it fails (with
// jitter), not at all while the tab is hidden. One question at a time.
import { brokenPage, type Failure } from "./failure";

export type Outcome = "fine" | "failed" | "stop";

export interface Loop {
  /** Asks now, for the question has changed, when who says so is done: an answer under way is given up. */
  now(): void;
  /** Asks the same anew, for the answer may have changed: once the one under way is there. What fails keeps
   * its distance, what has stopped stays so. */
  soon(): void;
  stop(): void;
}

const failedMsMax = 15_000;

/** `broke` shows what `look` threw: a mistake of the page's own, which must not end the asking. */
export function loop(intervalMs: () => number, look: (signal: AbortSignal) => Promise<Outcome>, broke: (failure: Failure) => void): Loop {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let under: AbortController | undefined;
  let askedAgain = false;
  let stopped = false;
  let rests = false;
  let failures = 0;
  let newest: object | undefined;

  const wait = (ms: number): void => {
    clearTimeout(timer);
    if (!stopped) timer = setTimeout(() => void turn(), ms);
  };
  const looked = async (controller: AbortController): Promise<Outcome> => {
    try {
      return await look(controller.signal);
    } catch (thrown) {
      if (under !== controller || stopped) return "failed"; // Nobody waits for it.
      console.error(thrown);
      try {
        broke(brokenPage(thrown));
      } catch (again) {
        console.error(again);
      }
      return "failed";
    }
  };
  const turn = async (): Promise<void> => {
    if (document.hidden) return;
    const controller = new AbortController();
    under = controller;
    askedAgain = false;
    rests = false;
    const outcome = await looked(controller);
    if (under !== controller || stopped) return;
    under = undefined;
    rests = outcome === "stop";
    if (rests) return;
    failures = outcome === "failed" ? failures + 1 : 0;
    const backedOff = Math.min(failedMsMax, 1000 * 2 ** Math.min(failures - 1, 4));
    if (failures > 0) wait(backedOff * (0.75 + Math.random() / 2));
    else wait(askedAgain ? 0 : intervalMs());
  };
  // Once whoever wants it has done all else, and before the browser paints that: a timer's turn comes behind it.
  const now = (): void => {
    under?.abort();
    under = undefined;
    rests = false;
    const asked = (newest = {});
    queueMicrotask(() => {
      if (asked !== newest || stopped || under) return;
      clearTimeout(timer);
      void turn();
    });
  };
  const soon = (): void => {
    if (under) askedAgain = true;
    else if (failures === 0 && !rests) wait(0);
  };
  const shown = (): void => {
    if (!document.hidden && !under && !rests) wait(0);
  };
  document.addEventListener("visibilitychange", shown);
  wait(0);
  return {
    now,
    soon,
    stop: () => {
      stopped = true;
      clearTimeout(timer);
      under?.abort();
      document.removeEventListener("visibilitychange", shown);
    },
  };
}
