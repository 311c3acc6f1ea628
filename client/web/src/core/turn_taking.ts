// Of all tabs of a browser that would do the same, one does it at a time, the next when that one gives up.

/** What is needed of the browser's Web Locks. */
export interface Locks {
  request(name: string, options: { signal: AbortSignal }, run: () => Promise<void>): Promise<void>;
}

/**
 * Runs `run` when it is this tab's turn, and keeps the turn until `run` ends; gives up waiting at `signal`.
 * `locks` are missing outside of secure contexts (http to another machine): then it runs at once.
 */
export async function inTurn(locks: Locks | undefined, name: string, signal: AbortSignal, run: () => Promise<void>): Promise<void> {
  if (!locks) return run();
  let began = false;
  try {
    await locks.request(name, { signal }, () => {
      began = true;
      return run();
    });
  } catch (thrown) {
    if (began) throw thrown;
    if (!signal.aborted) await run(); // A browser that keeps nothing of this origin refuses locks, too.
  }
}
