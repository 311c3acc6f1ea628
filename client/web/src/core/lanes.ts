// Work by key, a few at a time: what is asked for anew waits for its turn, and what is under way goes on for as
// long as somebody wants it. Who was served longest ago comes first, so that slow ones starve nobody.

export class Lanes {
  private waiting: string[] = [];
  private readonly under = new Map<string, AbortController>();
  /** Turns, by who had them last; those that never had one are not in it. */
  private readonly turns = new Map<string, number>();
  private turn = 0;

  /** `work` throws nothing, and ends soon after its signal. */
  constructor(private readonly atOnce: number, private readonly work: (key: string, signal: AbortSignal) => Promise<void>) {}

  /** `wanted` are worked on, if they are not yet; of what is under way, only what is among `listed` goes on. */
  want(wanted: readonly string[], listed: ReadonlySet<string>): void {
    for (const [key, controller] of this.under) {
      if (listed.has(key)) continue;
      this.under.delete(key);
      controller.abort();
    }
    for (const key of this.turns.keys()) if (!listed.has(key)) this.turns.delete(key);
    const last = (key: string): number => this.turns.get(key) ?? 0;
    this.waiting = wanted.filter((key) => !this.under.has(key)).sort((a, b) => last(a) - last(b));
    this.begin();
  }

  stop(): void {
    this.want([], new Set());
  }

  private begin(): void {
    while (this.under.size < this.atOnce) {
      const key = this.waiting.shift();
      if (key === undefined) return;
      const controller = new AbortController();
      this.under.set(key, controller);
      this.turns.set(key, ++this.turn);
      void this.work(key, controller.signal).finally(() => {
        if (this.under.get(key) === controller) this.under.delete(key);
        this.begin();
      });
    }
  }
}
