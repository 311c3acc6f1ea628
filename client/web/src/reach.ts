// Asks the master whether it lives where the page has nothing else to ask: of a trial that has ended all is shown, and
// yet a download or a zoom needs who holds it. The answer is told as that of any other question (api.ts).
import { askWhetherAlive, untoldMs } from "./api";
import { loop, type Loop } from "./loop";

const reachMs = 5000;

/** While the tab is seen, from now on. */
export function keepAsking(): Loop {
  return loop(() => Math.max(0, reachMs - untoldMs()), async (signal) => {
    if (untoldMs() >= reachMs) await askWhetherAlive(signal);
    return "fine";
  }, () => {});
}
