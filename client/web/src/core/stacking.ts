// How the time of a step is divided among scopes, bucket by bucket. A scope's own time is its total without
// those of the scopes right inside it, so that the layers of a bucket add to 1.
import { aligned, type Aligned } from "./align";

export interface ScopeTotals {
  /** Path of the scope; "step" is the step itself. */
  readonly name: string;
  readonly indexes: readonly number[];
  readonly means: readonly number[];
  readonly counts: readonly number[];
}

export interface Layer {
  readonly name: string;
  /** 0 ... 1, one for each of the stack's buckets. */
  readonly shares: number[];
  /** Own seconds over all buckets. */
  readonly seconds: number;
}

export interface Stack {
  /** Buckets with steps, ascending. */
  readonly indexes: number[];
  /** Largest first; then "other", then "unaccounted". */
  readonly layers: Layer[];
  /** Mean seconds of a step in each bucket. */
  readonly stepSeconds: number[];
  /** Over all steps; NaN = there are none. */
  readonly meanStepSeconds: number;
}

export const unaccounted = "unaccounted";
export const other = "other scopes";
export const step = "step";

/** The nearest scope around `name` that was recorded, "" for the step itself. */
export function enclosing(name: string, recorded: ReadonlySet<string>): string {
  let path = name;
  for (let slash = path.lastIndexOf("/"); slash >= 0; slash = path.lastIndexOf("/")) {
    path = path.slice(0, slash);
    if (recorded.has(path)) return path;
  }
  return "";
}

/** Own seconds by scope, "" = in no scope, of one bucket's totals. Never below zero: clocks are read one
 *  after the other, so that parts may outlast their whole by a few nanoseconds. */
export function ownSeconds(totals: ReadonlyMap<string, number>, stepSeconds: number): Map<string, number> {
  const recorded = new Set(totals.keys());
  const own = new Map<string, number>([["", stepSeconds]]);
  for (const [name, seconds] of totals) own.set(name, (own.get(name) ?? 0) + seconds);
  for (const [name, seconds] of totals) {
    const around = enclosing(name, recorded);
    own.set(around, (own.get(around) ?? 0) - seconds);
  }
  for (const [name, seconds] of own) own.set(name, Math.max(0, seconds));
  return own;
}

/** `layersMax` scopes by name, the rest as one. */
export function stacked(scopes: readonly ScopeTotals[], layersMax: number): Stack {
  const steps = scopes.find((scope) => scope.name === step);
  if (!steps) return { indexes: [], layers: [], stepSeconds: [], meanStepSeconds: NaN };
  const totals = new Map<number, Map<string, number>>();
  for (const scope of scopes) {
    scope.indexes.forEach((index, i) => {
      const bucket = totals.get(index) ?? new Map<string, number>();
      totals.set(index, bucket);
      bucket.set(scope.name, (scope.means[i] ?? 0) * (scope.counts[i] ?? 0));
    });
  }
  const indexes = [...steps.indexes];
  const own = indexes.map((index) => {
    const bucket = new Map(totals.get(index) ?? []);
    const whole = bucket.get(step) ?? 0;
    bucket.delete(step);
    return ownSeconds(bucket, whole);
  });
  // What the parts really add to: a bucket is always full.
  const wholes = own.map((bucket) => [...bucket.values()].reduce((sum, value) => sum + value, 0));
  const names = new Set(own.flatMap((bucket) => [...bucket.keys()]).filter((name) => name !== ""));
  const layer = (name: string, parts: readonly string[]): Layer => {
    const seconds = own.map((bucket) => parts.reduce((sum, part) => sum + (bucket.get(part) ?? 0), 0));
    return {
      name,
      seconds: seconds.reduce((sum, part) => sum + part, 0),
      shares: seconds.map((part, i) => {
        const whole = wholes[i] ?? 0;
        return whole > 0 ? part / whole : 0;
      }),
    };
  };
  const byTime = [...names].map((name) => layer(name, [name])).sort((a, b) => b.seconds - a.seconds);
  const rest = byTime.slice(layersMax).map((one) => one.name);
  const layers = byTime.slice(0, layersMax);
  if (rest.length > 0) layers.push(layer(other, rest));
  layers.push(layer(unaccounted, [""]));
  return { indexes, layers, stepSeconds: indexes.map((_, i) => steps.means[i] ?? 0), meanStepSeconds: meanOfAll(steps) };
}

/** Of all that was counted: buckets hold different numbers of steps, the newest one perhaps a few. */
function meanOfAll(steps: ScopeTotals): number {
  let seconds = 0;
  let count = 0;
  steps.counts.forEach((of, i) => {
    seconds += (steps.means[i] ?? 0) * of;
    count += of;
  });
  return seconds / count;
}

/** Of all steps together, as a table has it: each layer's share of their time, 0 ... 1. */
export function wholeShares({ layers }: Stack): number[] {
  const whole = layers.reduce((sum, layer) => sum + layer.seconds, 0);
  return layers.map((layer) => (whole > 0 ? layer.seconds / whole : 0));
}

/** Upper edges of the layers, first layer lowest: what a stacked chart draws. */
export function edges(layers: readonly Layer[]): number[][] {
  const sums: number[] = [];
  return layers.map((layer) =>
    layer.shares.map((share, i) => {
      sums[i] = (sums[i] ?? 0) + share;
      return Math.min(1, sums[i] ?? 0);
    }),
  );
}

/** The stack as a chart draws it, on the axis of the answer: it ends where no steps came for a while, and begins anew behind that. */
export function stackAligned({ indexes, layers }: Stack, start: number, width: number): Aligned {
  return aligned(edges(layers).map((edge) => ({ indexes, means: edge, mins: edge, maxs: edge })), start, width);
}

/** Steps per second of stepping, with the same holes. Buckets of batches tell no times: what lies between steps (validation, checkpoints) is
 *  not in it, and steps of 0.1 s that begin a second apart are 10 /s. */
export function rateAligned({ indexes, stepSeconds }: Stack, start: number, width: number): Aligned {
  const rates = stepSeconds.map((seconds) => (seconds > 0 ? 1 / seconds : NaN));
  return aligned([{ indexes, means: rates, mins: rates, maxs: rates }], start, width);
}
