// What a tab that follows hears of a running trial: a stream tells that something new was acked, and the tab's loop asks
// anew, no sooner than what its questions take allows, and no later than a few seconds without any stream.
import { paceMs, untilNextMs } from "./core/pulse_pace";
import type { follow, Follow, FollowState } from "./follow";
import type { Outcome } from "./loop";

/** They come together: some tell of all. */
const seriesMax = 16;
/** At least so often. */
const runningMs = 3000;

export class News {
  private stream: { readonly key: string; readonly follow: Follow } | null = null;
  private known: FollowState | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private begun = 0;
  private took = 0;
  private asking = false;

  /** `open` begins to follow, `soon` asks, `changed` shows how the stream is. */
  constructor(private readonly open: typeof follow, private readonly soon: () => void, private readonly changed: () => void) {}

  /** null = nothing is followed: its tab asks by itself. */
  get state(): FollowState | null {
    return this.known;
  }

  /** Without a stream the questions tell whether the master is there. */
  get polls(): boolean {
    return this.known === "polling" || this.known === "refused";
  }

  /** From one question to the next where nothing is heard. */
  get intervalMs(): number {
    return Math.max(runningMs, paceMs(this.took));
  }

  /** Hears of these series from now on; of none of them nothing. */
  of(trialId: bigint, seriesNos: readonly number[]): void {
    const some = seriesNos.slice(0, seriesMax);
    const key = some.length === 0 ? "" : [trialId, ...some].join(",");
    // A trial that ended may run again before anybody looked.
    if ((this.stream?.key ?? "") === key && this.known !== "ended") return;
    this.stop();
    if (key === "") return;
    this.stream = {
      key, follow: this.open(trialId, some, {
        pulse: () => this.asksSoon(),
        state: (state) => {
          if (state === this.known) return;
          this.known = state;
          this.changed();
        },
      }),
    };
  }

  /** Asks by `look`; `took` says what of it counts for the pace. */
  async timed(look: () => Promise<Outcome>, took: (begunMs: number) => number): Promise<Outcome> {
    const begun = (this.begun = performance.now());
    this.asking = true;
    try {
      return await look();
    } finally {
      // Unless another has begun meanwhile.
      if (this.begun === begun) {
        this.asking = false;
        this.took = took(begun);
        this.timeAnew();
      }
    }
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.stream?.follow.stop();
    this.stream = null;
    this.known = null;
  }

  /** News that came meanwhile were timed by how long it had been under way: now is known what of that counts. */
  private timeAnew(): void {
    if (this.timer === undefined) return;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.asksSoon();
  }

  private asksSoon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      // One under way for longer than its pace: news go to the one after it.
      if (this.asking) this.asksSoon();
      else this.soon();
    }, untilNextMs(performance.now(), this.begun, this.asking ? performance.now() - this.begun : this.took));
  }
}
