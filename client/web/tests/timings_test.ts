import assert from "node:assert/strict";
import { test } from "node:test";
import { rateAligned, stackAligned, stacked } from "../src/core/stacking";
import { rankSelector, shownRank } from "../src/core/timing_rank";

const series = (seriesNo: number, labels: Record<string, string>, metricGroup = "timing") => ({ seriesNo, metricGroup, name: "step", labels, unit: "seconds" });

test("a trial of ranks opens on the first of them, one without any on what it has", () => {
  assert.equal(shownRank("", [-1, 0, 1]), "0");
  assert.equal(shownRank("", [-1]), "-1");
  assert.equal(shownRank("", []), "0");
  assert.equal(shownRank("-1", [-1, 0]), "-1");
  assert.equal(shownRank("all", [0]), "all");
});

test("what is without rank is asked for by its series, where others have one", () => {
  const all = [series(1, { rank: "0" }), series(2, {}), series(3, { clock: "device" }), series(4, {}, "cpu")];
  const of = (rank: string, ranks: number[]) => rankSelector(rank, ranks, all);
  assert.deepEqual(of("-1", [-1, 0]), { metricGroup: "timing", labels: {}, seriesNos: [2, 3] });
  assert.deepEqual(of("-1", [-1]), { metricGroup: "timing", labels: {}, seriesNos: [] });
  assert.deepEqual(of("3", [-1, 3]), { metricGroup: "timing", labels: { rank: "3" }, seriesNos: [] });
  assert.deepEqual(of("all", [-1, 3]), { metricGroup: "timing", labels: {}, seriesNos: [] });
  // No series would mean all of them.
  assert.equal(rankSelector("-1", [-1, 0], []), null);
});

test("a step takes what all steps took on average, however few the newest bucket holds", () => {
  const stack = stacked([{ name: "step", indexes: [0, 1], means: [1, 9], counts: [99, 1] }], 7);
  assert.equal(stack.meanStepSeconds, 1.08);
  assert.ok(Number.isNaN(stacked([], 7).meanStepSeconds));
});

test("a thousand scopes are visited once for each bucket", () => {
  let visits = 0;
  const buckets = 20;
  const indexes = Array.from({ length: buckets }, (_, i) => i);
  const counts = indexes.map(() => 1);
  const names = Array.from({ length: 1000 }, (_, i) => `scope${i}`);
  const real = Map.prototype.values;
  Map.prototype.values = function <K, V>(this: Map<K, V>) {
    visits += this.size;
    return real.call(this) as MapIterator<V>;
  };
  try {
    const stack = stacked([{ name: "step", indexes, means: indexes.map(() => 1), counts },
      ...names.map((name) => ({ name, indexes, means: indexes.map(() => 0.0005), counts }))], 7);
    assert.equal(stack.layers.length, 9);
  } finally {
    Map.prototype.values = real;
  }
  assert.ok(visits <= 2 * buckets * names.length, `${visits} visits`);
});

test("a stack and its throughput have a hole where no steps came for a while", () => {
  const before = Array.from({ length: 40 }, (_, at) => at);
  const indexes = [...before, 60, 61];
  const of = (value: number) => ({ indexes, means: indexes.map(() => value), counts: indexes.map(() => 1) });
  const stack = stacked([{ name: "step", ...of(0.5) }, { name: "forward", ...of(0.2) }], 7);
  const shares = stackAligned(stack, 100, 10);
  assert.deepEqual(shares.places, [...before, 40, 60, 61].map((index) => 100 + (index + 0.5) * 10));
  const holed = (value: number) => [...before.map(() => value), null, value, value];
  assert.deepEqual(shares.lines.map((line) => line.means), [holed(0.4), holed(1)]);
  const rate = rateAligned(stack, 100, 10);
  assert.deepEqual(rate.places, shares.places);
  assert.deepEqual(rate.lines.map((line) => line.means), [holed(2)]);
  // What took no time at all has no rate.
  assert.deepEqual(rateAligned(stacked([{ name: "step", indexes: [0], means: [0], counts: [1] }], 7), 0, 1).lines[0]?.means, [null]);
});
