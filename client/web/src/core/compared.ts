// What a change between trials means, in words: by how much, and whether it is for the better.

export interface Side {
  readonly count: number;
  readonly mean: number;
  readonly ratio: number;
}

export interface Change {
  readonly text: string;
  /** 0 = cannot be said, or too little to say. */
  readonly tone: -1 | 0 | 1;
}

/** Less than this says nothing. */
const noticeable = 0.02;

/** Timings: shorter is better. Of other metrics nobody knows which way is good. */
export function changeOf(first: Side, side: Side, lessIsBetter: boolean): Change {
  if (first.count === 0 || side.count === 0 || side.ratio === 0 || !Number.isFinite(side.ratio)) return { text: "", tone: 0 };
  const part = side.ratio - 1;
  const size = Math.abs(part);
  const percent = `${(size * 100).toFixed(size < 0.1 ? 1 : 0)} %`;
  if (size < 0.0005) return { text: "same", tone: 0 };
  const text = side.ratio >= 2 ? `${side.ratio.toFixed(1)}×` : `${part > 0 ? "+" : "−"}${percent}`;
  if (!lessIsBetter || size < noticeable) return { text, tone: 0 };
  return { text: `${text.replace(/^[+−]/, "")} ${part < 0 ? "faster" : "slower"}`, tone: part < 0 ? 1 : -1 };
}

/** How far sides lie from the first at most, for sorting. */
export function largestChange(first: Side, sides: readonly Side[]): number {
  return Math.max(0, ...sides.map((side) => (side.count > 0 && first.count > 0 ? Math.abs(side.mean - first.mean) : 0)));
}
