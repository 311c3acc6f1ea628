// One answer drawn in slices, wholly: that the next is asked for does not stop it. Nobody knows when that one is answered, or whether,
// and until then charts of two answers would stand beside each other.
import { drawInSlices, type Drawing, type DrawingClock, type Pace } from "./drawing";

interface Work {
  readonly left: ReadonlySet<unknown>;
  finish(): void;
}

export class Drawer {
  private work: Work | null = null;

  constructor(private readonly clock?: DrawingClock) {}

  /** Whether all of what was drawn last is there. */
  get isWhole(): boolean {
    return this.work?.left.size === 0;
  }

  /** `draw` of each, in order; what was drawn before and is not through is given up. */
  async draw<T>(items: readonly T[], draw: (item: T) => void, pace: Pace): Promise<Drawing> {
    const left = new Set(items);
    const one = (item: T): void => {
      if (!left.has(item)) return;
      draw(item);
      left.delete(item);
    };
    const work: Work = { left, finish: () => left.forEach(one) };
    this.work = work;
    const isGone = (): boolean => this.work !== work;
    const { isWhole, busyMs } = await drawInSlices(items, one, isGone, pace, this.clock);
    return { isWhole: isWhole && !isGone(), busyMs };
  }

  /** What is left at once, in one task: before it is saved, or stays for nobody knows how long. */
  finish(): void {
    this.work?.finish();
  }

  /** Nothing more is drawn. */
  giveUp(): void {
    this.work = null;
  }
}
