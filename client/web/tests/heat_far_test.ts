// What stands out of a heat map's noise, and the ticks below it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cellSeen, heatGrid, heatPicture, heatPixels, heatSize, type HeatGrid } from "../src/core/heat";
import { farEnds, farRuns, farSide } from "../src/core/heat_far";
import { heatScale } from "../src/core/heat_scale";
import { heatTicks } from "../src/core/heat_ticks";
import { farPixels, heatColors } from "../src/core/palette";

/** The same each time. */
function gaussians(seed: number): () => number {
  let at = seed;
  const uniform = (): number => {
    at = (Math.imul(at, 1_664_525) + 1_013_904_223) >>> 0;
    return (at + 1) / 4_294_967_297;
  };
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** Ranks whose steps take 450 ms ± 10 ms, and one that takes `odd`. */
function noisy(rankCount: number, odd: { readonly rank: number; readonly value: number } | null): HeatGrid {
  const noise = gaussians(7);
  const values = (rank: number): number[] => Array.from({ length: 100 }, () => (rank === odd?.rank ? odd.value : 0.45) + 0.01 * noise());
  const grid = heatGrid(Array.from({ length: rankCount }, (_, rank) => ({ name: `rank ${rank}`, indexes: [...Array(100).keys()], values: values(rank) })), 0, 1);
  assert.ok(typeof grid === "object");
  return grid;
}

test("a slow rank of 1,000 with noise is marked in each of its cells, and no other is", () => {
  const grid = noisy(1000, { rank: 617, value: 0.75 });
  const { rowsPerLine } = heatSize(1000, 1);
  const picture = heatPicture(grid, rowsPerLine, 1200, "largest");
  assert.deepEqual(farRuns(grid, picture), [{ line: 308, from: 0, to: 100, side: 1 }]);
  const above = farPixels()[1];
  const marked = [...heatPixels(grid, picture, heatColors(256), farPixels()).entries()].filter(([, color]) => color === above).map(([at]) => Math.floor(at / 100));
  assert.deepEqual([marked.length, new Set(marked)], [100, new Set([308])]);
  const [far] = heatScale(grid, "seconds").far;
  assert.match(far?.text ?? "", /^far above: ≥ 5[12]\d ms$/);
});

test("noise without an outlier has no far cell, and its scale tells of none", () => {
  const grid = noisy(1000, null);
  assert.deepEqual(farRuns(grid, heatPicture(grid, 2, 1200, "largest")), []);
  assert.deepEqual(heatScale(grid, "seconds").far, []);
});

test("where rows share a line the far one is seen, also one that is far too fast among the slow", () => {
  const grid = noisy(1000, { rank: 617, value: 0.2 });
  const picture = heatPicture(grid, 2, 50, "farthest");
  assert.deepEqual(farRuns(grid, picture), [{ line: 308, from: 0, to: 50, side: -1 }]);
  assert.equal(cellSeen(grid, picture, 0.5, 308.5 / 500).row, 617);
  // It is painted over its neighbours' lines, and what is pointed at is what is seen.
  for (const line of [307, 309]) assert.equal(cellSeen(grid, picture, 0.5, (line + 0.5) / 500, 1).row, 617);
  for (const line of [306, 310]) assert.notEqual(cellSeen(grid, picture, 0.5, (line + 0.5) / 500, 1).row, 617);
  assert.equal(heatScale(grid, "seconds").far[0]?.side, -1);
});

test("of the largest, one that is far below hides none that is larger", () => {
  const values = Array.from({ length: 1000 }, (_, row) => (row === 500 ? 0.001 : 0.1 + 0.001 * (row % 3)));
  const grid = heatGrid(values.map((value, row) => ({ name: `rank ${row}`, indexes: [0], values: [value] })), 0, 1);
  assert.ok(typeof grid === "object");
  assert.equal(farSide(farEnds(grid), 0.001), -1);
  const shown = (worst: "largest" | "farthest"): number => heatPicture(grid, 2, 100, worst).shown[250] ?? -1;
  assert.deepEqual([shown("largest"), shown("farthest")], [501, 500]);
  // Which of two it is, of any two.
  const both = heatPicture(grid, 2, 100, "largest");
  for (const [line, cell] of both.shown.entries()) assert.equal(values[cell], Math.max(values[2 * line] ?? NaN, values[2 * line + 1] ?? NaN));
});

test("how far is far where all are alike, where all are 0, and at the ends of numbers", () => {
  const sides = (low: number, high: number, values: number[]): number[] => values.map((value) => farSide(farEnds({ low, high }), value));
  assert.deepEqual(sides(1, 1, [1, 1.009, 1.02, 0.98]), [0, 0, 1, -1]);
  assert.deepEqual(sides(0, 0, [0, 0.001, -0.001]), [0, 1, -1]);
  assert.deepEqual(sides(-2, -1, [-3.1, 0.1, -2.9]), [-1, 1, 0]);
  assert.deepEqual(sides(0, 1, [Infinity, -Infinity, NaN]), [0, 0, 0]);
  assert.deepEqual(sides(NaN, NaN, [1, NaN]), [0, 0]);
  assert.deepEqual(sides(-1.5e308, 1.5e308, [-1.7e308, 1.7e308]), [0, 0]);
});

test("ticks below a heat map are round, as many as there is room for, and none leaves the page", () => {
  const at = Date.UTC(2026, 10, 28, 17, 52, 40) * 1000 + 525_000;
  const texts = (width: number, spanUs: number): string[] => heatTicks("time", { start: at, end: at + spanUs, width }).map((tick) => tick.text);
  assert.deepEqual(texts(1000, 100e6), ["17:52:50", "17:53:00", "17:53:10", "17:53:20", "17:53:30", "17:53:40", "17:53:50", "17:54:00", "17:54:10"]);
  assert.deepEqual(texts(300, 100e6), ["17:53:00", "17:53:30", "17:54:00"]);
  assert.deepEqual(texts(300, 3e6), ["17:52:41", "17:52:42", "17:52:43"]);
  assert.deepEqual(texts(500, 4 * 3600e6), ["18:00", "18:30", "19:00", "19:30", "20:00", "20:30", "21:00", "21:30"]);
  assert.deepEqual(texts(400, 20 * 86_400e6), ["12-03", "12-08", "12-13"]);
  // Longer texts need more room at the end: one of 12 at 185 of 225 pixels reaches beyond.
  assert.deepEqual(texts(225, 578_000), ["17:52:40.600", "17:52:40.800"]);
  const batches = heatTicks("batch", { start: 3, end: 1203, width: 400 });
  assert.deepEqual(batches.map((tick) => tick.text), ["200", "400", "600", "800", "1,000"]);
  assert.ok(Math.abs((batches[0]?.left ?? 0) - 197 / 1200) < 1e-9);
  assert.deepEqual(heatTicks("batch", { start: 0, end: 2, width: 900 }).map((tick) => tick.text), ["0", "1"]);
});

test("numbers of batches below a heat map do not touch, however long they are and however narrow it is", () => {
  // Digits are 6.7 pixels wide, commas half of that.
  const widthOf = (text: string): number => [...text].reduce((sum, one) => sum + (one === "," ? 3.4 : 6.7), 0);
  let narrow = 0;
  for (let end = 1000; end < 1e13; end *= 7) {
    for (const span of [10, 700, end / 3, end]) {
      for (let width = 100; width <= 700; width += 15) {
        const ticks = heatTicks("batch", { start: end - span, end, width });
        for (const [at, { left, text }] of ticks.entries()) {
          const before = ticks[at - 1];
          if (!before) continue;
          const free = (left - before.left) * width - (widthOf(text) + widthOf(before.text)) / 2;
          assert.ok(free >= 6, `${before.text} and ${text} at ${width} px: ${free} px between them`);
          if (free < 20) ++narrow;
        }
      }
    }
  }
  assert.ok(narrow > 100, "nor are they rarer than that asks for");
  // Short ones stand closer where there would be but one.
  assert.deepEqual(heatTicks("batch", { start: 0, end: 100, width: 100 }).map((tick) => tick.text), ["0", "50"]);
});
