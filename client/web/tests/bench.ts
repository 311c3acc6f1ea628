// What tests of what asks by itself stand on.

export const settle = (): Promise<void> => new Promise((done) => setImmediate(done));

/** A clock that stands until it is told to go on, and a tab that can be hidden. */
export class Bench {
  private now = 0;
  private timers = new Map<number, { at: number; run: () => void }>();
  private next = 1;
  private readonly real = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout, now: performance.now };
  readonly tab = Object.assign(new EventTarget(), { hidden: false });

  setTimeout = (run: () => void, ms: number): number => {
    this.timers.set(this.next, { at: this.now + ms, run });
    return this.next++;
  };
  clearTimeout = (timer: number): void => void this.timers.delete(timer);

  install(): void {
    Object.assign(globalThis, { setTimeout: this.setTimeout, clearTimeout: this.clearTimeout, document: this.tab });
    this.setNow(() => this.now);
  }

  remove(): void {
    Object.assign(globalThis, { setTimeout: this.real.setTimeout, clearTimeout: this.real.clearTimeout });
    this.setNow(this.real.now);
  }

  /** Of Node 18 it takes no assignment. */
  private setNow(now: () => number): void {
    Object.defineProperty(performance, "now", { value: now, configurable: true, writable: true });
  }

  /** What has no more timers within `ms` waits for the test. */
  async pass(ms: number): Promise<void> {
    const end = this.now + ms;
    await settle();
    for (;;) {
      const [first] = [...this.timers].filter(([, { at }]) => at <= end).sort(([, a], [, b]) => a.at - b.at);
      if (!first) break;
      this.timers.delete(first[0]);
      this.now = first[1].at;
      first[1].run();
      await settle();
    }
    this.now = end;
  }

  hide(hidden: boolean): void {
    this.tab.hidden = hidden;
    this.tab.dispatchEvent(new Event("visibilitychange"));
  }
}
