// Asks again and again while somebody looks: each `intervalMs`, later and later while it fails (with
// jitter), not at all while the tab is hidden. One question at a time.

export type Outcome = "fine" | "failed" | "stop";

export interface Loop {
  /** Asks now, whatever it waited for; an answer under way is given up. */
  now(): void;
  stop(): void;
}

const failedMsMax = 15_000;

export function loop(intervalMs: () => number, look: (signal: AbortSignal) => Promise<Outcome>): Loop {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let under: AbortController | undefined;
  let stopped = false;
  let failures = 0;

  const wait = (ms: number): void => {
    clearTimeout(timer);
    if (!stopped) timer = setTimeout(() => void turn(), ms);
  };
  const turn = async (): Promise<void> => {
    if (document.hidden) return;
    const controller = new AbortController();
    under = controller;
    const outcome = await look(controller.signal);
    if (under !== controller || stopped) return;
    under = undefined;
    if (outcome === "stop") return;
    failures = outcome === "failed" ? failures + 1 : 0;
    const backedOff = Math.min(failedMsMax, 1000 * 2 ** Math.min(failures - 1, 4));
    wait(failures > 0 ? backedOff * (0.75 + Math.random() / 2) : intervalMs());
  };
  const now = (): void => {
    under?.abort();
    under = undefined;
    wait(0);
  };
  const shown = (): void => {
    if (!document.hidden) now();
  };
  document.addEventListener("visibilitychange", shown);
  wait(0);
  return {
    now,
    stop: () => {
      stopped = true;
      clearTimeout(timer);
      under?.abort();
      document.removeEventListener("visibilitychange", shown);
    },
  };
}
