import assert from "node:assert/strict";
import { test } from "node:test";
import { chosenClock, clockOf, clocksOf } from "../src/core/clocks";
import type { KnownGap } from "../src/core/gap_bands";
import { cellAt, cellSeen, cellsMax, heatFraction, heatGrid, heatPicture, heatPixels, heatSize, oddAt, oddRuns, samplesAt, type HeatGrid } from "../src/core/heat";
import { cellView } from "../src/core/heat_cell";
import { farRuns } from "../src/core/heat_far";
import { gapTextsAt, heatGaps } from "../src/core/heat_gaps";
import { heatScale } from "../src/core/heat_scale";
import { totalWords } from "../src/core/odd_values";
import { farPixels, heatColor, heatColors } from "../src/core/palette";
import { trialView } from "../src/core/view_state";

const far = farPixels();

function row(name: string, values: readonly number[], from = 0) {
  return { name, indexes: values.map((_, i) => i + from), values };
}

function made(grid: ReturnType<typeof heatGrid>): HeatGrid {
  assert.ok(typeof grid === "object", String(grid));
  return grid;
}

/** `rowCount` ranks that all take 1, but one at one place. */
function ranks(rowCount: number, columnCount: number, odd: { row: number; column: number; value: number }): HeatGrid {
  const rows = [...Array(rowCount).keys()].map((rank) => row(`rank ${rank}`, [...Array(columnCount).keys()].map((column) => (rank === odd.row && column === odd.column ? odd.value : 1))));
  return made(heatGrid(rows, 0, 1));
}

test("a heat map is a grid whose colours one spike does not flatten", () => {
  const values = [...Array(200).keys()].map((i) => (i === 7 ? 1e6 : i));
  const grid = made(heatGrid([row("rank 0", values, 3), { name: "rank 1", indexes: [3, 4], values: [5, Infinity] }], 100, 10));
  assert.deepEqual([grid.columnCount, grid.start, grid.width], [200, 130, 10]);
  assert.ok(grid.high < 1000);
  assert.equal(cellAt(grid, 1, 0), 5);
  assert.equal(cellAt(grid, 1, 1), Infinity);
  for (const [at, column] of [[1, 2], [2, 0]] as const) assert.ok(Number.isNaN(cellAt(grid, at, column)));
  assert.equal(heatFraction(grid, 1e6), 1);
});

test("what is looked at is shown whole, also where nothing came", () => {
  const grid = made(heatGrid([row("rank 0", [1, 2], 4)], 100, 10, { start: 105, end: 191 }));
  assert.deepEqual([grid.start, grid.columnCount], [100, 10]);
  assert.equal(cellAt(grid, 0, 4), 1);
});

test("a sample holds until the next one is due, and little longer", () => {
  const many = { name: "a", indexes: [...Array(100).keys()].map((i) => i * 4 + (i > 50 ? 40 : 0)), values: Array(100).fill(1) };
  const grid = made(heatGrid([many, { name: "b", indexes: [29], values: [7] }], 0, 1));
  assert.deepEqual([0, 3, 204, 205, 243, 244].map((column) => cellAt(grid, 0, column)), [1, 1, 1, NaN, NaN, 1]);
  assert.deepEqual([28, 29, 33, 34].map((column) => cellAt(grid, 1, column)), [NaN, 7, 7, NaN]);
});

test("a duration stands where it passed, from its begin on", () => {
  const stalled = { name: "rank 0", indexes: [...Array(20).keys()].map((i) => i * 10).concat([200, 510, 520]), values: Array(20).fill(0.1).concat([3.1, 0.1, 0.1]) };
  const columns = [11, 189, 199, 200, 300, 499, 509, 510, 520];
  // Without it: held for 1.25 usual distances, and nothing until the next one.
  const asReadings = made(heatGrid([stalled], 0, 10_000));
  assert.deepEqual(columns.map((column) => cellAt(asReadings, 0, column)), [0.1, 0.1, 0.1, 3.1, NaN, NaN, NaN, 0.1, 0.1]);
  const grid = made(heatGrid([stalled], 0, 10_000, null, (seconds) => seconds * 1e6));
  assert.deepEqual(columns.map((column) => cellAt(grid, 0, column)), [0.1, 0.1, 0.1, 3.1, 3.1, 3.1, 3.1, 0.1, 0.1]);
  // What is shorter than a column has one, and holds; what is longer than what is seen is cut.
  const short = made(heatGrid([{ name: "rank 0", indexes: [3, 13, 23], values: [9, 0.001, 0.001] }], 0, 10_000, { start: 0, end: 300_000 }, (seconds) => seconds * 1e6));
  assert.deepEqual([0, 3, 4, 12, 13, 22, 29].map((column) => cellAt(short, 0, column)), [NaN, 9, 9, 9, 0.001, 0.001, 0.001]);
});

test("of durations that begin in one cell the newest goes on behind it, however short the others are", () => {
  // Ten steps of 8 ms and one of 240 in the first column of 115 ms: their mean is 29 ms.
  const stalled = { name: "rank 0", indexes: [0, 3, 4], values: [0.029, 0.008, 0.008], lasts: [0.24, 0.008, 0.008] };
  const grid = made(heatGrid([stalled], 0, 115_000, null, (seconds) => seconds * 1e6));
  assert.deepEqual([0, 1, 2, 3, 4].map((column) => cellAt(grid, 0, column)), [0.029, 0.24, 0.24, 0.008, 0.008]);
});

test("a scale tells of a far colour that only what goes on behind a cell has", () => {
  // Steps of 10 to 14 ms in columns of 100 ms; in one of them 99 of 8 ms and, last, one that goes on in the five behind it.
  const scaleOf = (last: number, lengthOf: ((value: number) => number) | null) => {
    const rows = [...Array(8).keys()].map((rank) => row(`rank ${rank}`, [...Array(100).keys()].map((column) => 0.01 + 0.001 * ((rank + 3 * column) % 5))));
    const indexes = [...Array(100).keys()].filter((column) => column <= 50 || column > 55);
    const values = indexes.map((column) => (column === 50 ? (99 * 0.008 + last) / 100 : 0.012));
    const grid = made(heatGrid([...rows.slice(1), { name: "rank 0", indexes, values, lasts: values.map((value, at) => (at === 50 ? last : value)) }], 0, 100_000, null, lengthOf));
    const isFar = [...heatPixels(grid, heatPicture(grid, 1, 100, "largest"), heatColors(4), far)].some((color) => color === far[1]);
    const { beyond, far: told } = heatScale(grid, "seconds");
    assert.equal(told.length > 0, isFar, `${last}`);
    return [beyond, told.map(({ text }) => text)];
  };
  assert.deepEqual(scaleOf(0.6, (seconds) => seconds * 1e6), ["largest 600 ms", ["far above: ≥ 18.0 ms"]]);
  // One that ends where it began is drawn nowhere, nor is any where values have no length.
  assert.deepEqual(scaleOf(0.09, (seconds) => seconds * 1e6), ["smallest 8.82 ms", []]);
  assert.deepEqual(scaleOf(0.6, null), ["", []]);
});

test("a cell tells of the samples that begin in it, where they differ", () => {
  const made = heatGrid([{ name: "rank 0", indexes: [2, 4, 5], values: [20, 8, 8], mins: [5, 8, 7], maxs: [240, 8, 9] }, row("rank 1", [1])], 0, 1, { start: 0, end: 8 });
  assert.ok(typeof made !== "string");
  assert.deepEqual([0, 2, 3, 4, 5, 6].map((column) => samplesAt(made, 0, column)), [null, { min: 5, max: 240 }, null, null, { min: 7, max: 9 }, null]);
  assert.deepEqual([samplesAt(made, 1, 0), samplesAt(made, 2, 0)], [null, null]);
});

test("a scale says what its ends stand for, and what lies beyond them", () => {
  const slow = ranks(1000, 30, { row: 41, column: 3, value: 3 });
  assert.deepEqual(heatScale(slow, "seconds"), { low: "1.00 s", high: "≥ 1.00 s", beyond: "largest 3.00 s", far: [{ side: 1, text: "far above: ≥ 1.01 s" }] });
  const idle = ranks(1000, 30, { row: 41, column: 3, value: 0.5 });
  assert.deepEqual(heatScale(idle, "percent"), { low: "≤ 1.0 %", high: "1.0 %", beyond: "smallest 0.5 %", far: [{ side: -1, text: "far below: ≤ 1.0 %" }] });
  assert.deepEqual(heatScale({ low: 1, high: 2, least: 0, largest: 9 }, ""), { low: "≤ 1", high: "≥ 2", beyond: "smallest 0, largest 9", far: [{ side: -1, text: "far below: ≤ 0" }, { side: 1, text: "far above: ≥ 3" }] });
  assert.deepEqual(heatScale({ low: 1, high: 2, least: 1, largest: 2.0000001 }, "seconds"), { low: "1.00 s", high: "2.00 s", beyond: "", far: [] });
});

test("nothing there and too much are told apart", () => {
  assert.equal(heatGrid([], 0, 1), "empty");
  assert.equal(heatGrid([{ name: "rank 0", indexes: [0, cellsMax], values: [1, 1] }], 0, 1), "too many");
});

/** As a master answers: `samples` in each bucket, of which so many are NaN. */
function withNans(name: string, values: readonly number[], nans: readonly number[], samples = 2, every = 1) {
  return { name, indexes: values.map((_, i) => i * every), values, counts: nans.map((count) => BigInt(samples - count)), nanCounts: nans.some((count) => count > 0) ? nans.map(BigInt) : [] };
}

test("NaN and infinities are cells of their own, and no place without samples", () => {
  const grid = made(heatGrid([withNans("rank 0", [1, 2, NaN, 4], [0, 1, 2, 0]), withNans("rank 1", [1, Infinity, 3, 9], [0, 0, 0, 0])], 0, 1));
  assert.deepEqual([0, 1, 2, 3].map((column) => oddAt(grid, 0, column)), [null, { nans: 1, counted: 1, isOverflow: false }, { nans: 2, counted: 0, isOverflow: false }, null]);
  assert.deepEqual([0, 1, 2, 3].map((column) => oddAt(grid, 1, column)), [null, { nans: 0, counted: 2, isOverflow: false }, null, null]);
  assert.equal(grid.odd && totalWords(grid.odd.total), "3 of 16 samples are NaN; some are +infinity");
  assert.deepEqual([grid.least, grid.largest], [1, 9]);
  const picture = heatPicture(grid, 1, 4, "farthest");
  assert.deepEqual(oddRuns(grid, picture), [{ line: 0, from: 1, to: 3 }, { line: 1, from: 1, to: 2 }]);
  const colors = heatColors(4);
  assert.deepEqual([...heatPixels(grid, picture, colors, far)].map((pixel) => pixel !== 0), [true, false, false, true, true, false, true, true]);
  // They stand out before all that shares their pixel.
  assert.deepEqual(oddRuns(grid, heatPicture(grid, 2, 2, "largest")), [{ line: 0, from: 0, to: 2 }]);
  assert.equal(made(heatGrid([row("rank 0", [1, 2])], 0, 1)).odd, null);
});

test("a cell whose mean overflows is told apart from one with infinite samples", () => {
  const two = (name: string, values: number[], mins: number[], maxs: number[]) => ({ ...withNans(name, values, [0, 0, 0], 2, 2), mins, maxs });
  const grid = made(heatGrid([two("rank 0", [1, Infinity, NaN], [1, 1e308, -1e308], [1, 1e308, 1e308])], 0, 1));
  // The second holds until the third is due.
  assert.deepEqual([0, 2, 3, 4].map((column) => oddAt(grid, 0, column)?.isOverflow), [undefined, true, true, true]);
  assert.equal(grid.odd && totalWords(grid.odd.total), "some means overflow: sums of samples beyond what a number holds");
  const infinite = made(heatGrid([two("rank 0", [1, Infinity, NaN], [1, 5, -Infinity], [1, Infinity, Infinity])], 0, 1));
  assert.deepEqual([0, 2, 4].map((column) => oddAt(infinite, 0, column)?.isOverflow), [undefined, false, false]);
  assert.equal(infinite.odd && totalWords(infinite.odd.total), "some samples are +infinity and −infinity");
});

test("where all is NaN there is a map of it, which says so", () => {
  const grid = made(heatGrid([withNans("rank 0", [NaN, NaN], [2, 2])], 0, 1));
  assert.equal(grid.odd && totalWords(grid.odd.total), "all 4 samples are NaN");
  assert.deepEqual(heatScale(grid, "seconds"), { low: "", high: "no finite values", beyond: "", far: [] });
  assert.deepEqual(oddRuns(grid, heatPicture(grid, 1, 9, "farthest")), [{ line: 0, from: 0, to: 2 }]);
});

test("NaN holds until the next one is due, as any sample, and ends what held before", () => {
  const held = made(heatGrid([withNans("rank 0", [1, NaN, 3], [0, 2, 0], 2, 4)], 0, 1));
  assert.deepEqual([3, 4, 7, 8].map((column) => [cellAt(held, 0, column), oddAt(held, 0, column)?.nans ?? 0]), [[1, 0], [NaN, 2], [NaN, 2], [3, 0]]);
  const drawn = made(heatGrid([withNans("rank 0", [9, NaN, 1], [0, 2, 0], 2, 4)], 0, 1, { start: 0, end: 10 }, (value) => value));
  assert.deepEqual([3, 4, 8].map((column) => [cellAt(drawn, 0, column), oddAt(drawn, 0, column)?.nans ?? 0]), [[9, 0], [NaN, 2], [1, 0]]);
});

test("colours of many values are those of all of them, nearly", () => {
  const rows = [...Array(100).keys()].map((rank) => row(`rank ${rank}`, [...Array(1000).keys()].map((i) => rank * 1000 + i)));
  const grid = made(heatGrid(rows, 0, 1));
  for (const [value, wanted] of [[grid.low, 1000], [grid.middle, 50_000], [grid.high, 99_000]] as const) assert.ok(Math.abs(value - wanted) < 1500, `${value} for ${wanted}`);
});

test("each of few rows has pixels of its own, as many as its neighbours", () => {
  assert.deepEqual(heatSize(1, 1), { lineCount: 1, rowsPerLine: 1, height: 28 });
  assert.deepEqual(heatSize(16, 1), { lineCount: 16, rowsPerLine: 1, height: 224 });
  for (const ratio of [1, 1.25, 1.5, 2, 3]) {
    for (const count of [2, 100, 213, 214, 500, 640, 641, 1000, 1280, 1281, 4096, 50_000]) {
      const { lineCount, rowsPerLine, height } = heatSize(count, ratio);
      assert.ok(height * ratio >= lineCount - 1e-9, `${count} rows at ${ratio}: ${height} px for ${lineCount} lines`);
      assert.ok(height <= 641, `${count} rows at ${ratio}: ${height} px`);
      assert.ok(lineCount * rowsPerLine >= count && (lineCount - 1) * rowsPerLine < count);
    }
  }
});

test("of 1,000 ranks none is out of sight, wherever it is slow", () => {
  const { rowsPerLine, lineCount } = heatSize(1000, 1);
  assert.deepEqual([rowsPerLine, lineCount], [2, 500]);
  const colors = heatColors(256);
  for (const odd of [0, 1, 2, 499, 500, 998, 999]) {
    const grid = ranks(1000, 400, { row: odd, column: 399, value: 9 });
    const picture = heatPicture(grid, rowsPerLine, 1200, "largest");
    assert.deepEqual([picture.lineCount, picture.pixelCount], [500, 400]);
    assert.deepEqual(farRuns(grid, picture), [{ line: Math.floor(odd / 2), from: 399, to: 400, side: 1 }], `rank ${odd}`);
    assert.deepEqual([...heatPixels(grid, picture, colors, far).entries()].filter(([, color]) => color === far[1]).map(([at]) => at), [Math.floor(odd / 2) * 400 + 399]);
    assert.deepEqual(cellSeen(grid, picture, 0.9999, (Math.floor(odd / 2) + 0.5) / 500), { row: odd, column: 399 }, `rank ${odd} is what is pointed at`);
  }
});

test("columns that share a pixel show the worst, too: the largest of timings, the most unusual of others", () => {
  const idle = ranks(10, 1000, { row: 3, column: 777, value: 0.995 });
  const picture = heatPicture(idle, 1, 300, "farthest");
  assert.deepEqual([picture.columnsPerPixel, picture.pixelCount], [4, 250]);
  assert.equal(picture.shown[3 * 250 + Math.floor(777 / 4)], 3777);
  assert.notEqual(heatPicture(idle, 1, 300, "largest").shown[3 * 250 + Math.floor(777 / 4)], 3777);
});

test("where nothing came nothing is painted, and a place there still has a row and a column", () => {
  const grid = made(heatGrid([row("rank 0", [1]), row("rank 1", [2], 2)], 0, 1));
  const picture = heatPicture(grid, 1, 100, "largest");
  const colors = heatColors(4);
  assert.deepEqual([...heatPixels(grid, picture, colors, far)], [colors[0], 0, 0, 0, 0, colors[3]]);
  assert.deepEqual(cellSeen(grid, picture, 0.5, 0.9), { row: 1, column: 1 });
  assert.deepEqual(cellSeen(grid, picture, 7, -3), { row: 0, column: 2 });
});

test("colours of pixels are those of the palette, byte after byte", () => {
  const bytes = new Uint8Array(heatColors(3).buffer);
  [0, 0.5, 1].forEach((part, at) => {
    assert.equal(`rgb(${bytes.slice(at * 4, at * 4 + 3).join(",")})`, heatColor(part));
    assert.equal(bytes[at * 4 + 3], 255);
  });
});

function gap(writerNo: number, firstUs: number, lastUs: number, reason = ""): KnownGap {
  return { cause: "late", metricGroup: "timing", writerNo, missing: 3, firstUs, lastUs, batchBefore: null, batchAfter: null, reason };
}

test("a gap of a rank is in its row, one of a machine in all of its rows, any other everywhere", () => {
  const range = { start: 0, end: 1000 };
  const owners = new Map([[1, { rank: 0, agent: "a" }], [2, { rank: 7, agent: "b" }], [3, { rank: -1, agent: "b" }]]);
  const byRank = heatGaps([gap(2, 100, 200, "full"), gap(9, 500, 600), gap(3, 800, 900)], owners, [{ rank: "0" }, { rank: "7" }], range, "timing", 5, "time");
  assert.deepEqual([...byRank.ofRow.keys()], [1]);
  assert.deepEqual(byRank.everywhere.map((band) => band.start), [500, 800]);
  assert.match(gapTextsAt(byRank, 1, 150, 0).join(), /late.*full/);
  assert.deepEqual(gapTextsAt(byRank, 0, 150, 0), []);
  assert.equal(gapTextsAt(byRank, 0, 495, 10).length, 1);
  const byGpu = heatGaps([gap(3, 100, 200)], owners, [{ agent: "a", device: "0" }, { agent: "b", device: "0" }, { agent: "b", device: "1" }], range, "timing", 5, "time");
  assert.deepEqual([...byGpu.ofRow.keys()], [1, 2]);
  assert.deepEqual(byGpu.everywhere, []);
  const byBatch = heatGaps([{ ...gap(2, 100, 200), batchBefore: 30, batchAfter: 40 }, gap(2, 300, 400)], owners, [{ rank: "0" }, { rank: "7" }], range, "timing", 5, "batch");
  assert.deepEqual(byBatch.ofRow.get(1)?.map(({ start, end }) => [start, end]), [[30, 40]]);
});

test("a scope without a label is the host's, and the host's comes first", () => {
  const both = [{ labels: { clock: "device" } }, { labels: {} }, { labels: { clock: "host" } }];
  assert.equal(clockOf({ rank: "0" }), "host");
  assert.deepEqual(clocksOf(both), ["host", "device"]);
  assert.equal(chosenClock(["host", "device"], ""), "host");
  assert.equal(chosenClock(["host", "device"], "device"), "device");
  assert.equal(chosenClock(["device"], ""), "device");
  assert.equal(chosenClock(["host"], "device"), "host");
});

test("a cell leads to its rank's timings, or to its own chart", () => {
  const view = { ...trialView("7"), tab: "heat" as const, metrics: ["timing/step"], clock: "device" as const };
  const cell = { metric: "timing/step", isTiming: true, labels: { rank: "3" }, range: { start: 40, end: 41 } };
  assert.deepEqual(cellView({ ...view, axis: "batch" }, cell), { ...trialView("7"), axis: "batch", rank: "3", start: 40, end: 42 });
  assert.deepEqual(cellView({ ...view, start: 5, end: 9 }, cell), { ...trialView("7"), axis: "batch", rank: "3" });
  assert.deepEqual(cellView({ ...view, start: 5, end: 9 }, { ...cell, metric: "gpu/gpu_util", isTiming: false, labels: { agent: "a", device: "1" } }),
    { ...trialView("7"), tab: "metrics", start: 5, end: 9, metrics: ["gpu/gpu_util"], labels: new Map([["agent", ["a"]], ["device", ["1"]]]) });
});
