import assert from "node:assert/strict";
import { test } from "node:test";
import { aligned, type Bucketed } from "../src/core/align";
import { bandColumns } from "../src/core/band_columns";
import { batchTail, stillAsked, tailStart, type Seen } from "../src/core/batch_tail";
import { bandRuns } from "../src/core/band_runs";
import { joined, livePlan, type Columns, type Kept } from "../src/core/live_grid";

const second = 1_000_000;

function randomOf(): () => number {
  const seed = Number(process.env["STEPWELL_TEST_SEED"] ?? Date.now() % 1_000_000);
  console.log(`seed ${seed}`);
  let state = seed + 1;
  return () => ((state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648);
}

test("a window that moves keeps its grid, and only its end is asked for", () => {
  const start = 1_700_000_000 * second;
  const first = livePlan({ start, end: start + 60 * second }, 100, null, false);
  assert.ok(first);
  assert.deepEqual([first.isWhole, first.grid.width, first.grid.start % first.grid.width], [true, 600_000, 0]);
  assert.ok(first.start <= start && first.end > start + 60 * second);
  const moved = { start: start + second, end: start + 61 * second };
  const kept = { grid: first.grid, end: start + 60 * second };
  const next = livePlan(moved, 100, kept, true);
  assert.ok(next);
  assert.equal(next.isWhole, false);
  assert.equal(next.grid, first.grid);
  assert.ok(next.start <= moved.end - 5 * second && next.start > moved.end - 7 * second);
  assert.equal(next.end - next.start, next.buckets * next.grid.width);
  const late = livePlan({ start: start + 30 * second, end: start + 90 * second }, 100, kept, true);
  assert.ok(late && !late.isWhole && late.start <= start + 55 * second, "what came since the last answer, however long that is ago");
  assert.equal(livePlan(moved, 100, kept, false)?.isWhole, true, "what is old is asked for anew");
  assert.equal(livePlan({ start: start - 10 * second, end: moved.end }, 100, kept, true)?.isWhole, true, "the window grew to the left");
  assert.equal(livePlan({ start, end: start + 90 * second }, 100, kept, true)?.isWhole, true, "buckets are too fine");
  assert.equal(livePlan({ start, end: start + 2000 * second }, 100, null, false), null, "rollups have a grid of their own");
});

test("a grid stays while a window grows by less than a quarter", () => {
  const start = 1_000 * second;
  let kept: Kept | null = null;
  let wholes = 0;
  for (let span = 10; span < 100; ++span) {
    const plan = livePlan({ start, end: start + span * second }, 100, kept, true);
    assert.ok(plan);
    assert.ok(plan.start % plan.grid.width === 0 && plan.end > start + span * second);
    if (plan.isWhole) ++wholes;
    kept = { grid: plan.grid, end: plan.windowEnd };
  }
  assert.ok(wholes >= 9 && wholes <= 12, `${wholes}`);
});

interface Sample {
  readonly us: number;
  readonly value: number;
}

/** As the master folds them. */
function folded(samples: readonly Sample[], start: number, end: number, width: number): Columns {
  const buckets = new Map<number, Sample[]>();
  for (const one of samples) {
    if (one.us < start || one.us >= end) continue;
    const index = Math.floor((one.us - start) / width);
    buckets.set(index, [...(buckets.get(index) ?? []), one]);
  }
  const all = [...buckets].sort(([a], [b]) => a - b);
  const numbers = (of: (those: readonly number[]) => number): number[] => all.map(([, those]) => of(those.map((one) => one.value).filter((value) => !Number.isNaN(value))));
  const counts = (isNan: boolean): bigint[] => all.map(([, those]) => BigInt(those.filter((one) => Number.isNaN(one.value) === isNan).length));
  const nanCounts = counts(true);
  return {
    indexes: all.map(([index]) => index), mins: numbers((those) => Math.min(...those)), maxs: numbers((those) => Math.max(...those)),
    means: numbers((those) => those.reduce((sum, value) => sum + value, 0) / those.length), lasts: numbers((those) => those[those.length - 1] ?? NaN),
    counts: counts(false), nanCounts: nanCounts.some((count) => count > 0n) ? nanCounts : [],
  };
}

test("an answer that grows by its ends is the one that all of it would give", () => {
  const random = randomOf();
  for (let round = 0; round < 60; ++round) {
    const begin = Math.floor(random() * 1e9);
    const samples: Sample[] = [];
    let now = begin;
    let before: Kept | null = null;
    let kept: Columns | null = null;
    const windowUs = (5 + random() * 60) * second;
    const buckets = 20 + Math.floor(random() * 100);
    for (let turn = 0; turn < 40; ++turn) {
      const news = Math.floor(random() * 30);
      for (let i = 0; i < news; ++i) {
        now += Math.floor(random() * 0.3 * second);
        // Up to four seconds late.
        const us = Math.max(begin, now - (random() < 0.2 ? Math.floor(random() * 4 * second) : 0));
        samples.push({ us, value: random() < 0.05 ? NaN : random() });
      }
      if (samples.length === 0) continue;
      samples.sort((a, b) => a.us - b.us);
      const newest = Math.max(...samples.map((one) => one.us));
      const window = { start: Math.max(begin, newest + 1 - windowUs), end: newest + 1 };
      const plan = livePlan(window, buckets, kept && before, random() < 0.9);
      assert.ok(plan);
      const answer = folded(samples, plan.start, plan.end, plan.grid.width);
      assert.ok(!plan.isWhole || plan.grid.start <= window.start);
      const first = Math.floor((window.start - plan.grid.start) / plan.grid.width);
      kept = plan.isWhole || !kept ? answer : joined(kept, answer, first, Math.round((plan.start - plan.grid.start) / plan.grid.width));
      before = { grid: plan.grid, end: plan.windowEnd };
      const whole = folded(samples, plan.grid.start, plan.end, plan.grid.width);
      const seen = (one: Columns): number[] => one.indexes.filter((index) => index >= first);
      assert.deepEqual(seen(kept), seen(whole), `round ${round}, turn ${turn}`);
      const inWindow = joined(whole, undefined, Math.max(0, first), Infinity);
      assert.deepEqual(joined(kept, undefined, Math.max(0, first), Infinity), inWindow, `round ${round}, turn ${turn}`);
    }
  }
});

/** Each place looked for in each series. */
function slowlyAligned(series: readonly Bucketed[], breaks: readonly number[][], start: number, width: number) {
  const indexes = [...new Set([...series.flatMap((one) => one.indexes), ...breaks.flat()])].sort((a, b) => a - b);
  return {
    width, hasMeans: false,
    places: indexes.map((index) => start + (index + 0.5) * width),
    lines: series.map((one, which) => {
      const of = (column: readonly number[]) => indexes.map((index) => {
        const at = one.indexes.indexOf(index);
        const value = column[at];
        if (at >= 0) return value !== undefined && Number.isFinite(value) ? value : null;
        const hole = breaks[which]?.[0];
        return hole !== undefined && index >= hole && index < (one.indexes[one.indexes.length - 1] ?? 0) ? null : undefined;
      });
      const last = indexes.indexOf(one.indexes.filter((_, at) => Number.isFinite(one.means[at])).pop() ?? -1);
      return { means: of(one.means), mins: of(one.mins), maxs: of(one.maxs), last, odd: new Map(), total: null };
    }),
  };
}

test("series lie on one axis, whatever buckets each has", () => {
  const random = randomOf();
  for (let round = 0; round < 200; ++round) {
    const series = Array.from({ length: Math.floor(random() * 5) }, () => {
      const indexes: number[] = [];
      for (let index = Math.floor(random() * 4); index < 60; index += 1 + Math.floor(random() * 3)) indexes.push(index);
      // Some end with a hole that breaks the line: its neighbours are at most three apart.
      const hole = random() < 0.5 && indexes.length > 0;
      if (hole) indexes.push((indexes[indexes.length - 1] ?? 0) + 40);
      const values = indexes.map(() => (random() < 0.1 ? NaN : random()));
      return { one: { indexes, mins: values, maxs: values.map((value) => value + 1), means: values.map((value) => value + 0.5) }, hole };
    });
    const breaks = series.map(({ one, hole }) => (hole && one.indexes.length > 21 ? [(one.indexes[one.indexes.length - 2] ?? 0) + 1] : []));
    if (series.some(({ one, hole }) => hole && one.indexes.length <= 21)) continue;
    assert.deepEqual(aligned(series.map(({ one }) => one), 1000, 10), slowlyAligned(series.map(({ one }) => one), breaks, 1000, 10), `round ${round}`);
  }
});

test("a band is where smallest and largest differ", () => {
  const none = undefined;
  assert.deepEqual(bandRuns([], []), []);
  assert.deepEqual(bandRuns([1, 1, 1], [1, 1, 1]), []);
  assert.deepEqual(bandRuns([1, 1, 1], [2, 2, 2]), [[0, 1, 2]]);
  assert.deepEqual(bandRuns([1, 1, 1, 1, 1], [1, 1, 2, 1, 1]), [[1, 2, 3]], "from its neighbours, to its neighbours");
  assert.deepEqual(bandRuns([1, none, 1], [2, none, 2]), [[0, 2]], "over places of others");
  assert.deepEqual(bandRuns([1, null, 1, 1], [2, null, 2, 2]), [[2, 3]], "not over a hole");
  assert.deepEqual(bandRuns([1, 1, 1, 1, 1, 1], [2, 1, 1, 1, 1, 3]), [[0, 1], [4, 5]]);
});

test("a band of a bucket for each pixel is of columns that touch and lie nowhere twice", () => {
  assert.deepEqual(bandColumns([], [], []), []);
  assert.deepEqual(bandColumns([10, 12, 14], [5, 4, 6], [8, 9, 9]), [
    { left: 10, top: 5, width: 1, height: 3 }, { left: 11, top: 4, width: 2, height: 5 }, { left: 13, top: 6, width: 1, height: 3 },
  ], "each from the middle between its neighbours to the next");
  assert.deepEqual(bandColumns([10.1, 10.2, 10.3, 11.4], [5, 2, 7, 6], [6, 6, 9, 8]).map(({ left, top, width, height }) => [left, top, width, height]),
    [[10, 2, 1, 7], [11, 6, 1, 2]], "several of one pixel: the smallest and the largest of them");
  assert.deepEqual(bandColumns([10, 11, 12], [5, 5, 5], [5.3, 5.3, 9]).map(({ height }) => height), [4], "none that a line hides");
});

test("columns of a band cover all of its pixels once, whatever its pitch", () => {
  for (const pitch of [0.1, 0.3, 0.9, 1, 1.1, 1.7, 2.4]) {
    const middles = Array.from({ length: 200 }, (_, i) => 76.25 + i * pitch);
    const columns = bandColumns(middles, middles.map(() => 3), middles.map(() => 9));
    columns.forEach((column, at) => assert.equal(column.left, at === 0 ? 76 : (columns[at - 1]?.left ?? 0) + (columns[at - 1]?.width ?? 0), `${pitch}`));
    const last = columns[columns.length - 1];
    assert.ok(last && Math.abs(last.left + last.width - (middles[199] ?? 0)) <= 2, `${pitch}`);
  }
});

test("of batches the end is asked for from where each rank was", () => {
  const seen = (atMs: number, ends: Record<string, number>): Seen => ({ atMs, ends: new Map(Object.entries(ends)) });
  const early = seen(0, { a: 100, b: 90, rare: 10 });
  assert.equal(tailStart([], 9000), null);
  assert.equal(tailStart([early], 4000), null, "what came late is not known yet");
  assert.equal(tailStart([early], 5000), 99);
  assert.equal(tailStart([early, seen(3000, { a: 130, b: 90, rare: 10 })], 6000), 99);
  assert.equal(tailStart([early, seen(3000, { a: 130, b: 95, rare: 10 })], 6000), 89, "one that is behind goes on from where it was");
  assert.equal(tailStart([early, seen(3000, { a: 130, b: 95, rare: 10, late: 40 })], 6000), 39, "one that is new is where it is");
  const later = [early, seen(3000, { a: 130 }), seen(6000, { a: 160 }), seen(9000, { a: 190 })];
  assert.equal(tailStart(later, 9500), 129, "as of five seconds ago");
  assert.deepEqual(stillAsked(later, 9500).map((one) => one.atMs), [3000, 6000, 9000]);
  assert.equal(tailStart(stillAsked(later, 9500), 9500), 129);
});

test("a question for the end of batches lies on the buckets that are kept", () => {
  assert.deepEqual(batchTail(0, 3, 300, 250, 100), { start: 249, end: 249 + 81 * 3, buckets: 81 });
  assert.deepEqual(batchTail(7, 10, 1007, 900, 100), { start: 897, end: 897 + 75 * 10, buckets: 75 });
  assert.equal(batchTail(0, 1, 300, 0, 400), null, "that is all of it");
  assert.equal(batchTail(0, 1, 500, 400, 400)?.start, 400, "a quarter finer than wanted");
  assert.equal(batchTail(0, 1, 501, 400, 400), null, "too fine by now");
});
