import assert from "node:assert/strict";
import { test } from "node:test";
import { aligned, extentOf, usualDistance } from "../src/core/align";
import { batchSpace, batchSteps, endSpace, sideWidth, sincePlace, sinceSteps, sinceTexts, tickSpace, timeTick, yRange } from "../src/core/chart_axes";
import { drawInSlices, type Drawing, type Pace } from "../src/core/drawing";
import { bandAt, gapBands, gapCauses, gapsWithoutPlace, sideBands, type KnownGap } from "../src/core/gap_bands";
import { bucketWords, loneRows, oddBands, totalWords } from "../src/core/odd_values";
import { bucketsOfLine, cardHeight, lineLimit, valuesMax, type Sight } from "../src/core/line_budget";
import { livePlan, type Kept } from "../src/core/live_grid";
import { contrast, heatColor, lineLook } from "../src/core/palette";
import { paceMs, tookMs, untilNextMs } from "../src/core/pulse_pace";
import { bucketCount, fit, inSight, liveRange, panned, sameRange, zoomed } from "../src/core/range";
import { edges, enclosing, other, ownSeconds, stacked, unaccounted } from "../src/core/stacking";
import { countText } from "../src/core/units";

const bounds = { start: 1000, end: 11_000 };

test("ranges are the same where both ends are, and all there is is no range", () => {
  assert.ok(sameRange({ start: 1, end: 2 }, { start: 1, end: 2 }));
  assert.ok(sameRange(null, null));
  assert.ok(!sameRange({ start: 1, end: 2 }, { start: 1, end: 3 }));
  assert.ok(!sameRange({ start: 0, end: 2 }, { start: 1, end: 2 }));
  assert.ok(!sameRange(null, { start: 0, end: 2 }));
});

test("zooming keeps its center and stays within what there is", () => {
  assert.deepEqual(zoomed({ start: 2000, end: 6000 }, 0.5, bounds, "batch", 3000), { start: 2500, end: 4500 });
  assert.deepEqual(zoomed({ start: 2000, end: 6000 }, 100, bounds, "batch"), bounds);
  assert.deepEqual(zoomed({ start: 2000, end: 2002 }, 0.1, bounds, "batch"), { start: 2000, end: 2002 });
  assert.deepEqual(panned({ start: 9000, end: 11_000 }, 0.5, bounds, "batch"), { start: 9000, end: 11_000 });
  assert.deepEqual(panned({ start: 1500, end: 3500 }, -0.5, bounds, "batch"), { start: 1000, end: 3000 });
  assert.deepEqual(fit({ start: 5000.4, end: 5000.5 }, bounds, "time"), { start: 5000, end: 6000 });
});

test("zoom and pan never leave their bounds, whatever is asked", () => {
  const seed = Number(process.env["STEPWELL_TEST_SEED"] ?? Date.now() % 1_000_000);
  console.log(`seed ${seed}`);
  let state = seed + 1;
  const random = (): number => ((state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648);
  for (let round = 0; round < 5000; ++round) {
    const whole = { start: Math.floor(random() * 1e6), end: 0 };
    whole.end = whole.start + 2000 + Math.floor(random() * 1e6);
    let range = whole;
    for (let move = 0; move < 6; ++move) {
      range = random() < 0.5 ? zoomed(range, random() * 4, whole, "time", range.start + random() * (range.end - range.start)) : panned(range, random() * 4 - 2, whole, "time");
      assert.ok(range.start >= whole.start && range.end <= whole.end && range.end > range.start, JSON.stringify([whole, range]));
      assert.ok(Number.isInteger(range.start) && Number.isInteger(range.end));
    }
  }
});

/** Of `charts` charts with so many lines each. */
const many = (charts: number, lines: number): number[] => new Array<number>(charts).fill(lines);

const desk: Sight = { height: 1440, chartHeight: 190 };

test("a page of many lines draws no more values than a person sees", () => {
  assert.equal(bucketsOfLine(800, 9, many(9, 1), desk, null), 800);
  assert.equal(bucketsOfLine(800, 1065, many(110, 1), desk, null), 181);
  assert.equal(bucketsOfLine(800, 1000, many(100, 10), desk, null), 60, "what is out of sight costs what is in sight no shape");
  assert.equal(bucketsOfLine(800, 480, many(15, 32), desk, null), 41);
  assert.equal(bucketsOfLine(800, 9, many(1000, 1), desk, { start: 10, end: 20 }), 10);
});

test("charts whose lines would be too many beside each other have one each", () => {
  const wall: Sight = { height: 2160, chartHeight: 190 };
  assert.equal(lineLimit(many(15, 32), 32, wall), 32);
  assert.equal(lineLimit(many(100, 32), 32, desk), 32, "not all of them are seen");
  assert.equal(lineLimit(many(27, 32), 32, wall), 31);
  assert.equal(lineLimit([...many(20, 20), ...many(20, 32)], 32, wall), 31, "those of twenty keep theirs");
  assert.equal(lineLimit(many(9, 5), 1, desk), 1);
});

test("whatever is chosen, wherever somebody scrolls to, the values in sight are as few", () => {
  const seed = Number(process.env["STEPWELL_TEST_SEED"] ?? Date.now() % 1_000_000);
  console.log(`seed ${seed}`);
  let state = seed + 1;
  const random = (): number => ((state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648);
  for (let round = 0; round < 2000; ++round) {
    const most = 1 + Math.floor(random() * 60);
    const series = Array.from({ length: 1 + Math.floor(random() * 300) }, () => 1 + Math.floor(random() * most));
    const sight: Sight = { height: Math.floor(400 + random() * 4000), chartHeight: 190 };
    const limit = lineLimit(series, random() < 0.5 ? 16 : 32, sight);
    const lines = series.map((count) => (count > limit ? 1 : count));
    const buckets = bucketsOfLine(1200, series.reduce((sum, count) => sum + count, 0), lines, sight, null);
    assert.ok(buckets >= 40, String(buckets));
    // In rows as they are chosen, each as high as its highest card, seen from each of them on by a pixel.
    const rows = Array.from({ length: Math.ceil(lines.length / 3) }, (_, row) => lines.slice(3 * row, 3 * row + 3));
    rows.forEach((_, first) => {
      let [seen, left] = [0, sight.height - 1];
      for (let row = first; row < rows.length && left > 0; ++row) {
        seen += (rows[row] ?? []).reduce((sum, count) => sum + count, 0);
        left -= row === first ? 1 : cardHeight(Math.max(...(rows[row] ?? [])), sight);
      }
      assert.ok(buckets * seen <= valuesMax, JSON.stringify({ buckets, seen, limit, sight }));
    });
  }
});

test("a window that grows while it is followed stays within them, too", () => {
  const lines = many(15, 32);
  let kept: Kept | null = null;
  for (let end = 10_000_000; end < 500_000_000; end = Math.ceil(end * 1.01)) {
    const window = { start: 0, end };
    const plan = livePlan(window, bucketsOfLine(1200, 480, lines, desk, window, true), kept, kept !== null);
    assert.ok(plan);
    kept = { grid: plan.grid, end };
    const inWindow = Math.ceil((end - plan.grid.start) / plan.grid.width);
    assert.ok(inWindow * 480 <= valuesMax, `${inWindow} buckets of ${end} us`);
  }
});

test("a live chart asks as often as its questions are cheap, and leaves no news out", () => {
  assert.deepEqual([0, 10, 30, 100, 5000].map(paceMs), [100, 100, 200, 900, 49_900]);
  assert.equal(untilNextMs(5000, 4980, 22), 100);
  assert.deepEqual([tookMs(12, 8), tookMs(12, 30)], [20, 122]);
  assert.equal(untilNextMs(5000, 4980, 0), 80);
  assert.equal(untilNextMs(5000, 1000, 12), 0);
});

/** A clock that goes on by `costMs` where something is drawn, also where that comes after: and how often it rested. */
async function drawn(costs: number[], goneAfter = Infinity, pace: Pace = "tasks"): Promise<Drawing & { items: number[]; rests: number }> {
  let now = 0;
  let rests = 0;
  const items: number[] = [];
  const draw = (cost: number): void => {
    items.push(cost);
    queueMicrotask(() => (now += cost));
  };
  const rest = async (how: Pace): Promise<void> => {
    assert.equal(how, pace);
    ++rests;
    now += 16;
  };
  return { ...await drawInSlices(costs, draw, () => rests >= goneAfter, pace, { now: () => now, rest }), items, rests };
}

test("many charts are drawn in slices, and no longer than somebody wants them", async () => {
  assert.deepEqual(await drawn([]), { items: [], rests: 0, isWhole: true, busyMs: 0 });
  assert.deepEqual(await drawn([1, 2, 3]), { items: [1, 2, 3], rests: 0, isWhole: true, busyMs: 6 });
  assert.deepEqual(await drawn([20, 20, 20, 20]), { items: [20, 20, 20, 20], rests: 1, isWhole: true, busyMs: 80 });
  assert.deepEqual(await drawn([80, 80, 80]), { items: [80, 80, 80], rests: 2, isWhole: true, busyMs: 240 });
  assert.deepEqual(await drawn([50, 50, 50], 1), { items: [50], rests: 1, isWhole: false, busyMs: 50 });
  assert.deepEqual(await drawn([4, 4, 4, 4], Infinity, "frames"), { items: [4, 4, 4, 4], rests: 4, isWhole: true, busyMs: 16 });
  assert.deepEqual(await drawn([1, 1, 1, 1, 1, 1], Infinity, "frames"), { items: [1, 1, 1, 1, 1, 1], rests: 2, isWhole: true, busyMs: 6 });
});

test("buckets are as many as pixels, within what the master answers", () => {
  assert.equal(bucketCount(800, 1, null), 800);
  assert.equal(bucketCount(50_000, 1, null), 10_000);
  assert.equal(bucketCount(2000, 5000, null), 200);
  assert.equal(bucketCount(800, 1, { start: 10, end: 20 }), 10);
  assert.equal(bucketCount(800, 2_000_000, null), 1);
});

test("a live window ends behind the newest sample", () => {
  assert.deepEqual(liveRange(9000, 3000, bounds), { start: 6001, end: 9001 });
  assert.deepEqual(liveRange(1500, 3000, bounds), { start: 1000, end: 1501 });
});

function series(indexes: number[], value = 1) {
  return { indexes, means: indexes.map(() => value), mins: indexes.map(() => value - 1), maxs: indexes.map(() => value + 1), counts: indexes.map(() => 1) };
}

test("a line goes on over places of other series and breaks at holes of its own", () => {
  const ticks = [...Array(20).keys()].map((i) => i * 2);
  const { places, lines } = aligned([series([...ticks, 60, 62]), series([1, 3, 5, 7, 9, 11])], 100, 10);
  const first = new Map(places.map((place, i) => [(place - 105) / 10, lines[0]?.means[i]]));
  assert.equal(first.get(1), undefined);
  assert.equal(first.get(39), null);
  assert.equal(first.get(60), 1);
  assert.ok(!lines[1]?.means.includes(null));
  assert.deepEqual([...places].sort((a, b) => a - b), places);
  assert.equal(usualDistance([...ticks, 60, 62]), 2);
  // A neighbour that goes on: its places within the hole are in it, all of them.
  const beside = aligned([series([...ticks, 60, 62]), series([...ticks, 40, 42, 44, 50, 58, 60, 62])], 0, 1);
  const held = new Map(beside.places.map((place, i) => [place - 0.5, beside.lines[0]?.means[i]]));
  assert.deepEqual([38, 39, 40, 42, 44, 50, 58, 60].map((index) => held.get(index)), [1, null, null, null, null, null, null, 1]);
  // Steps that take now one, now five times as long are no holes.
  const uneven = aligned([series([0, 1, 2, 7, 8, 13, 14, 15, 20])], 0, 1);
  assert.ok(!uneven.lines[0]?.means.includes(null));
});

/** As a master answers: a sample in each bucket, or `counts` and `nans` of them. */
function answered(means: readonly number[], counts = means.map((mean) => (Number.isNaN(mean) ? 0n : 1n)), nans = means.map((mean) => (Number.isNaN(mean) ? 1n : 0n))) {
  return { indexes: means.map((_, i) => 2 * i), means, mins: means, maxs: means, counts, nanCounts: nans.some((count) => count > 0n) ? nans : [] };
}

test("lines break at NaN and infinities, which extents leave out", () => {
  const { lines } = aligned([answered([1, NaN, 3, Infinity])], 0, 1);
  assert.deepEqual(lines[0]?.means, [1, null, 3, null]);
  assert.deepEqual(extentOf(lines), { min: 1, max: 3 });
  assert.equal(extentOf([]), null);
});

test("a chart is of means where some bucket holds several samples, NaN or not", () => {
  const of = (counts: readonly bigint[], nans: readonly bigint[]) => aligned([answered([1, 2]), answered([1, 2], [...counts], [...nans])], 0, 1).hasMeans;
  assert.deepEqual([of([1n, 1n], [0n, 0n]), of([1n, 2n], [0n, 0n]), of([1n, 1n], [0n, 1n])], [false, true, true]);
  assert.ok(!aligned([{ indexes: [0], means: [1], mins: [1], maxs: [1] }], 0, 1).hasMeans);
});

test("a line whose newest samples are NaN or infinite has these as its newest, not the number before", () => {
  const newest = (means: number[], counts?: bigint[], nans?: bigint[]) => {
    const [line] = aligned([answered(means, counts, nans)], 0, 1).lines;
    assert.ok(line);
    const odd = line.odd.get(line.last);
    return [line.last, odd ? bucketWords(odd, "") : line.means[line.last], line.total ? totalWords(line.total) : ""];
  };
  assert.deepEqual(newest([0.5, 0.41]), [1, 0.41, ""]);
  assert.deepEqual(newest([0.5, 0.41, NaN, NaN]), [3, { value: "NaN", range: "" }, "2 of 4 samples are NaN"]);
  assert.deepEqual(newest([NaN, 7]), [1, 7, "1 of 2 samples is NaN"]);
  assert.deepEqual(newest([58, 59, Infinity]), [2, { value: "+infinity", range: "" }, "some samples are +infinity"]);
  assert.deepEqual(newest([58, -Infinity, NaN]), [2, { value: "NaN", range: "" }, "1 of 3 samples is NaN; some are −infinity"]);
  assert.deepEqual(newest([4, 5], [2n, 1n], [0n, 1n]), [1, { value: "5", range: "1 of 2 is NaN" }, "1 of 4 samples is NaN"]);
  assert.deepEqual(newest([NaN, NaN]), [1, { value: "NaN", range: "" }, "all 2 samples are NaN"]);
  assert.deepEqual(newest([NaN]), [0, { value: "NaN", range: "" }, "the only sample is NaN"]);
  assert.deepEqual(newest([]), [-1, undefined, ""]);
  // Infinities of both signs in one bucket have no mean.
  const [both] = aligned([{ indexes: [0], means: [NaN], mins: [-Infinity], maxs: [Infinity], counts: [2n], nanCounts: [] }], 0, 1).lines;
  assert.deepEqual(both && bucketWords(both.odd.get(0)!, ""), { value: "NaN", range: "−infinity … +infinity" });
  assert.deepEqual(both?.total && totalWords(both.total), "some samples are +infinity and −infinity");
  // Values of our own are none of this.
  const [own] = aligned([{ indexes: [0, 1, 2], means: [1, 2, NaN], mins: [1, 2, NaN], maxs: [1, 2, NaN] }], 0, 1).lines;
  assert.deepEqual([own?.last, own?.odd.size, own?.total], [1, 0, null]);
});

test("finite samples whose mean overflows are told as such, in words and in a band", () => {
  const of = (mean: number, min: number, max: number, nans = 0n) => {
    const chart = aligned([{ indexes: [0, 1], means: [3, mean], mins: [3, min], maxs: [3, max], counts: [2n, 2n], nanCounts: nans > 0n ? [0n, nans] : [] }], 0, 1);
    const [line] = chart.lines;
    assert.ok(line?.total);
    return [bucketWords(line.odd.get(line.last)!, ""), totalWords(line.total), oddBands(chart).map(({ text }) => text)];
  };
  const words = "some means overflow: sums of samples beyond what a number holds";
  assert.deepEqual(of(Infinity, 1e308, 1e308), [{ value: "overflow", range: "1e+308" }, words, ["overflow"]]);
  assert.deepEqual(of(-Infinity, -1.5e308, -1e308), [{ value: "overflow", range: "-1.5e+308 … -1e+308" }, words, ["overflow"]]);
  // Both signs, one after the other.
  assert.deepEqual(of(NaN, -1e308, 1e308), [{ value: "overflow", range: "-1e+308 … 1e+308" }, words, ["overflow"]]);
  assert.deepEqual(of(Infinity, 1e308, 1e308, 1n), [{ value: "overflow", range: "1e+308, 1 of 3 is NaN" }, `1 of 5 samples is NaN; ${words}`, ["NaN", "overflow"]]);
  assert.deepEqual(of(Infinity, 1, Infinity), [{ value: "+infinity", range: "1 … +infinity" }, "some samples are +infinity", ["+∞"]]);
  for (const extent of [{ min: 1e308, max: 1.7e308 }, { min: -1.7e308, max: 1.7e308 }, { min: 1.7e308, max: 1.7e308 }]) assert.ok(yRange(extent, "").every(Number.isFinite), JSON.stringify(extent));
});

test("where a line is NaN or infinite there are bands, of all lines together, and numbers between them are seen", () => {
  const chart = aligned([answered([1, NaN, NaN, 2, Infinity, 3]), answered([1, 1, 1, 1, 1, 1])], 100, 10);
  assert.deepEqual(oddBands(chart), [{ start: 120, end: 150, text: "NaN", row: 0 }, { start: 180, end: 190, text: "+∞", row: 0 }]);
  assert.deepEqual(oddBands(aligned([answered([NaN, NaN, 1, 1]), { ...answered([NaN, NaN]), indexes: [1, 3] }], 0, 1)), [{ start: 0, end: 4, text: "NaN", row: 0 }]);
  assert.deepEqual(oddBands(aligned([answered([1, 2])], 0, 1)), []);
  assert.deepEqual(chart.lines.map(loneRows), [[0, 3, 5], []]);
});

test("the words of bands that overlap stand in rows of their own", () => {
  const of = (...lines: (readonly number[])[]) => oddBands(aligned(lines.map((means) => answered(means)), 0, 0.5));
  const band = (start: number, end: number, text: string, row: number) => ({ start, end, text, row });
  // Buckets of half a unit, two apart: the first is 0 to 0.5, the next 1 to 1.5.
  assert.deepEqual(of([1, NaN, NaN, NaN], [1, 1, Infinity, Infinity]), [band(1, 3.5, "NaN", 0), band(2, 3.5, "+∞", 1)]);
  assert.deepEqual(of([NaN, NaN, 1, NaN], [1, -Infinity, -Infinity, 1]), [band(0, 1.5, "NaN", 0), band(1, 2.5, "−∞", 1), band(3, 3.5, "NaN", 0)]);
  assert.deepEqual(of([NaN, NaN, Infinity, Infinity], [1, 1, 1, 1]), [band(0, 1.5, "NaN", 0), band(2, 3.5, "+∞", 0)]);
  assert.deepEqual(of([NaN], [Infinity], [-Infinity]), [band(0, 0.5, "NaN", 0), band(0, 0.5, "+∞", 1), band(0, 0.5, "−∞", 2)]);
  // Of one line, where both are.
  assert.deepEqual(oddBands(aligned([{ indexes: [0, 1, 2], means: [NaN, Infinity, NaN], mins: [NaN, 5, NaN], maxs: [NaN, Infinity, NaN], counts: [0n, 1n, 0n], nanCounts: [2n, 1n, 2n] }], 0, 1)),
    [band(0, 3, "NaN", 0), band(1, 2, "+∞", 1)]);
});

function scope(name: string, means: number[], counts?: number[]) {
  return { name, indexes: means.map((_, i) => i), means, counts: counts ?? means.map(() => 2) };
}

test("layers are own times and fill each bucket", () => {
  const stack = stacked([scope("step", [10, 20]), scope("train", [6, 12]), scope("train/forward", [4, 4]), scope("load", [1, 2])], 8);
  const share = (name: string): number[] => stack.layers.find((layer) => layer.name === name)?.shares.map((part) => Math.round(part * 1000) / 1000) ?? [];
  assert.deepEqual(share("train"), [0.2, 0.4]);
  assert.deepEqual(share("train/forward"), [0.4, 0.2]);
  assert.deepEqual(share("load"), [0.1, 0.1]);
  assert.deepEqual(share(unaccounted), [0.3, 0.3]);
  assert.deepEqual(edges(stack.layers).at(-1)?.map((edge) => Math.round(edge * 1e9) / 1e9), [1, 1]);
  assert.deepEqual(stack.stepSeconds, [10, 20]);
});

test("scopes beyond the last layer are one layer, and no step is no stack", () => {
  const stack = stacked([scope("step", [10]), scope("a", [4]), scope("b", [3]), scope("c", [2]), scope("d", [1])], 2);
  assert.deepEqual(stack.layers.map((layer) => layer.name), ["a", "b", other, unaccounted]);
  assert.deepEqual(stacked([scope("a", [1])], 2), { indexes: [], layers: [], stepSeconds: [], meanStepSeconds: NaN });
});

test("a scope whose parent was not recorded counts in the step, and parts that outlast it leave nothing below zero", () => {
  assert.equal(enclosing("a/b/c", new Set(["a", "a/b/c"])), "a");
  assert.equal(enclosing("a/b", new Set(["a/b"])), "");
  const own = ownSeconds(new Map([["a", 1], ["a/b", 1.0000001]]), 1);
  assert.equal(own.get("a"), 0);
  assert.equal(own.get(""), 0);
});

function gap(firstUs: number, lastUs: number, cause = "late", metricGroup = "gpu"): KnownGap {
  return { cause, metricGroup, writerNo: 1, missing: 3, firstUs, lastUs, batchBefore: null, batchAfter: null, reason: "" };
}

test("gaps are bands: clipped, joined, of their group, and wide enough to be seen", () => {
  const range = { start: 100, end: 200 };
  const bands = gapBands([gap(50, 110), gap(105, 120, "ring full"), gap(150, 150), gap(0, 0), gap(300, 400), gap(160, 170, "late", "cpu")], range, "gpu", 4, "time");
  assert.deepEqual(bands.map((band) => [band.start, band.end]), [[100, 120], [148, 152]]);
  assert.match(bands[0]?.texts.join() ?? "", /late.*ring full/);
  assert.equal(bandAt(bands, 119)?.texts.length, 2);
  assert.equal(bandAt(bands, 130), null);
  assert.equal(bandAt(bands, 122, 3)?.end, 120);
  assert.deepEqual(gapBands([gap(199, 199)], range, "gpu", 4, "time").map((band) => [band.start, band.end]), [[196, 200]]);
  assert.deepEqual(gapBands([gap(100, 100)], range, "gpu", 4, "time").map((band) => [band.start, band.end]), [[100, 104]]);
});

test("over batches a gap lies between those that are known, or at the one that is, or nowhere", () => {
  const range = { start: 100, end: 200 };
  const at = (batchBefore: number | null, batchAfter: number | null): KnownGap => ({ ...gap(5, 6), batchBefore, batchAfter });
  const rows: readonly [string, KnownGap, [number, number] | null][] = [
    ["within", at(120, 140), [120, 140]],
    ["one batch", at(120, 121), [118.5, 122.5]],
    ["in the middle of a batch", at(120, 120), [118, 122]],
    ["only what is before", at(120, null), [118, 122]],
    ["only what is behind", at(null, 120), [118, 122]],
    ["batch 0", at(null, 0), null],
    ["reaches in", at(50, 110), [100, 110]],
    ["reaches out", at(190, 300), [190, 200]],
    ["ends where it begins", at(50, 100), null],
    ["begins behind its last", at(199, 300), null],
    ["nothing is known", at(null, null), null],
  ];
  for (const [name, one, wanted] of rows) {
    assert.deepEqual(gapBands([one], range, "gpu", 4, "batch").map(({ start, end }) => [start, end]), wanted ? [wanted] : [], name);
    assert.deepEqual(gapBands([one], range, "cpu", 4, "batch"), [], name);
  }
  assert.deepEqual(gapsWithoutPlace(rows.map(([, one]) => one), "batch"), [at(null, null)]);
  assert.deepEqual(gapsWithoutPlace([gap(0, 0), gap(5, 6)], "time"), [gap(0, 0)]);
  // By batch all trials begin at 0.
  assert.deepEqual(sideBands([{ name: "a", startUs: 1_000_000, gaps: [at(120, 140)] }], range, "gpu", 4, "batch"),
    [{ start: 120, end: 140, texts: ["a: late (3 samples missing, group gpu)"] }]);
});

test("gaps of trials side by side lie at the time since each began, and tell whose they are", () => {
  const gap = (firstUs: number, lastUs: number, metricGroup = ""): KnownGap => ({ cause: "ring full", metricGroup, writerNo: 1, missing: 5, firstUs, lastUs, batchBefore: null, batchAfter: null, reason: "" });
  const sides = [
    { name: "a", startUs: 1_000_000, gaps: [gap(1_000_100, 1_000_200), gap(1_000_800, 1_000_900, "cpu")] },
    { name: "b", startUs: 5_000_000, gaps: [gap(5_000_150, 5_000_300), gap(4_999_900, 5_000_010)] },
  ];
  assert.deepEqual(sideBands(sides, { start: 0, end: 1000 }, "disk", 0, "time"), [
    { start: 0, end: 10, texts: ["b: ring full (5 samples missing)"] },
    { start: 100, end: 300, texts: ["a: ring full (5 samples missing)", "b: ring full (5 samples missing)"] },
  ]);
  assert.deepEqual(sideBands(sides, { start: 500, end: 1000 }, "cpu", 0, "time").map(({ start, end }) => [start, end]), [[800, 900]]);
});

test("what is missing is told by its causes", () => {
  const gap = (cause: string, missing: number): KnownGap => ({ cause, metricGroup: "", writerNo: 1, missing, firstUs: 0, lastUs: 0, batchBefore: null, batchAfter: null, reason: "" });
  assert.equal(gapCauses([gap("ring full", 1000), gap("cut off", 0), gap("ring full", 234)]), "ring full 1,234; cut off, number unknown");
});

test("each colour of a line can be seen on the ground of its theme", () => {
  for (let i = 0; i < 32; ++i) {
    assert.ok(contrast(lineLook(i, "light").color, "#ffffff") >= 3, lineLook(i, "light").color);
    assert.ok(contrast(lineLook(i, "dark").color, "#18202a") >= 3, lineLook(i, "dark").color);
  }
  assert.equal(heatColor(0), "rgb(0,34,78)");
  assert.equal(heatColor(7), "rgb(254,232,56)");
});

test("a bucket that begins in sight is in sight", () => {
  assert.deepEqual(inSight([5, 15, 25], 22), [5, 15, 22]);
  assert.deepEqual(inSight([5, 15, 25], 26), [5, 15, 25]);
  assert.deepEqual(inSight([5, 15, 25, 35], 18), [5, 15, 25, 35], "they begin behind the end");
  assert.deepEqual(inSight([], 1), []);
});

test("an axis is divided and written as its range needs", () => {
  const evening = Date.UTC(2026, 10, 22, 21, 4, 5) / 1000;
  assert.deepEqual([86_400, 3600, 60, 10, 0.5].map((step) => timeTick(evening, step)), ["11-22", "21:04", "21:04", "21:04:05", "21:04:05.000"]);
  assert.equal(timeTick(Date.UTC(2026, 10, 23) / 1000, 60), "11-23", "midnight is a day");
  assert.deepEqual(yRange(null, "percent"), [0, 1]);
  assert.deepEqual(yRange({ min: 20, max: 90 }, "percent"), [0, 102]);
  assert.deepEqual(yRange({ min: 5, max: 5 }, "seconds"), [0, 5.5]);
  const [low, high] = yRange({ min: 90, max: 100 }, "bytes");
  assert.ok(low > 80 && low < 90 && high > 100, `${low} to ${high}`);
  assert.ok(sideWidth(["18.875 GiB/s"]) > sideWidth(["1"]) && sideWidth(null) === sideWidth(["1"]));
  // Half of "21:04:05" and of "21:04:05.123", of 12 px: more than 24 and 36.
  assert.ok(endSpace("time", 60) > 24 && endSpace("time", 5) > 36 && endSpace("batch", 5) > 24);
});

test("ticks of whole minutes stand nearer to each other than those that tell seconds", () => {
  const rows: [string, Parameters<typeof tickSpace>, number][] = [
    ["three minutes on a phone", ["time", 180, 208], 52], ["three minutes at a desk", ["time", 180, 800], 76], ["milliseconds", ["time", 5, 800], 104],
    ["since a start", ["time", 7200, Infinity], 76], ["batches", ["batch", 360, 208], 60],
  ];
  for (const [name, asked, space] of rows) assert.equal(tickSpace(...asked), space, name);
});

test("an axis of batches has three to five ticks on a phone, wherever it begins, and whole ones", () => {
  // As uPlot chooses: the smallest step that leaves a tick its room.
  const axis = (start: number, end: number, width: number): number[] => {
    const step = batchSteps.find((one) => (one * width) / (end - start) >= batchSpace(start, end, width)) ?? 0;
    const ticks: number[] = [];
    for (let tick = Math.ceil(start / step) * step; tick <= end; tick += step) ticks.push(tick);
    return ticks;
  };
  assert.deepEqual(axis(0, 940, 210), [0, 200, 400, 600, 800]);
  assert.deepEqual(axis(0, 9.5, 240), [0, 2, 4, 6, 8], "2.5 is no batch");
  for (const [start, end] of [[0, 100], [0, 999], [0, 1000], [0, 1001], [0, 12_345], [0, 1_234_567], [17, 90], [1001, 1999], [960, 1040]] as const) {
    for (const width of [205, 225, 245]) {
      const ticks = axis(start, end, width);
      assert.ok(ticks.length >= 3 && ticks.length <= 5, `${start} to ${end} in ${width}: ${ticks}`);
      const textWidth = Math.max(...ticks.map((tick) => countText(tick).length)) * 7;
      assert.ok((((ticks[1] ?? 0) - (ticks[0] ?? 0)) * width) / (end - start) > textWidth + 10, `${start} to ${end} in ${width}: ${ticks} touch`);
    }
  }
  assert.deepEqual(axis(99_990, 100_090, 205), [100_000, 100_050], "three would touch");
  assert.equal(batchSpace(0, 1000, 800), 60, "at a desk there is room");
  assert.deepEqual([...batchSteps].sort((a, b) => a - b), batchSteps);
  for (const odd of [axis(3, 4, 220), axis(0, 1, 220)]) assert.ok(odd.length >= 1 && odd.every(Number.isInteger), String(odd));
});

test("an axis of times since a start has the steps of a clock, and texts that name their units", () => {
  // As uPlot chooses: the smallest step that leaves a tick its room on 600 pixels.
  const axis = (span: number, from = 0): string[] => {
    const step = sinceSteps.find((one) => (one * 600) / span >= tickSpace("time", span, Infinity)) ?? 0;
    const ticks: number[] = [];
    for (let tick = Math.ceil(from / step) * step; tick <= from + span; tick += step) ticks.push(tick);
    return sinceTexts(ticks, step);
  };
  assert.deepEqual(axis(40), ["0", "10 s", "20 s", "30 s", "40 s"]);
  assert.deepEqual(axis(180), ["0", "0:30 min", "1:00 min", "1:30 min", "2:00 min", "2:30 min", "3:00 min"]);
  assert.deepEqual(axis(300), ["0", "1 min", "2 min", "3 min", "4 min", "5 min"]);
  assert.deepEqual(axis(5000), ["0", "0:15 h", "0:30 h", "0:45 h", "1:00 h", "1:15 h"]);
  assert.deepEqual(axis(3 * 86_400), ["0", "12 h", "1 d", "1 d 12 h", "2 d", "2 d 12 h", "3 d"]);
  assert.deepEqual(axis(60, 4500), ["1:15:00 h", "1:15:10 h", "1:15:20 h", "1:15:30 h", "1:15:40 h", "1:15:50 h", "1:16:00 h"]);
  assert.deepEqual(axis(4, 58), ["0:58 min", "0:59 min", "1:00 min", "1:01 min", "1:02 min"]);
  assert.deepEqual(axis(1, 1).slice(0, 3), ["1.0 s", "1.2 s", "1.4 s"]);
  assert.deepEqual(axis(300 * 86_400).slice(0, 3), ["0", "50 d", "100 d"]);
  assert.deepEqual([...sinceSteps].sort((a, b) => a - b), sinceSteps);
  const places: [number, number, string][] = [[12.345, 40, "12.3 s"], [59.96, 40, "1:00.0 min"], [97.52, 180, "1:37.5 min"], [4503.2, 5000, "1:15:03 h"], [90_061, 259_200, "1 d 1:01:01 h"], [0, 40, "0"]];
  for (const [time, span, text] of places) assert.equal(sincePlace(time, span), text);
});
