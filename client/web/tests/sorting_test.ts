// In which order rows of a table stand, what an address says of it, and what a CSV has.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { CompareTrialsResponseSchema } from "#gen/compare_pb";
import { SeriesKind } from "#gen/model_pb";
import { AbsenceReason, QueryBucketsResponseSchema, SummarizeTimingsResponseSchema } from "#gen/query_pb";
import { answersCsv, bucketCsv } from "../src/bucket_csv";
import { compareCsvHead, compareCsvRows, compareRow, shownSeries, type CompareOrder } from "../src/compare_rows";
import { formatSorting, parseSorting, pressed, sorted, type Sorting } from "../src/core/sorting";
import { sortedTimings, timingColumns, timingRows } from "../src/timing_rows";

test("an order stands in the address, and what is none of the table's falls back", () => {
  for (const column of timingColumns) {
    for (const up of [false, true]) assert.deepEqual(parseSorting(formatSorting({ column, up }), timingColumns), { column, up });
  }
  assert.equal(formatSorting(null), "");
  for (const text of ["", "p9", ".up", "p99.down", "p99.up.up", "P99", "constructor", "<b>"]) assert.equal(parseSorting(text, timingColumns), null, text);
});

test("presses of a head go from the order that is asked for most to the other, and back to the usual one", () => {
  const heard = (upFirst: boolean): string[] => {
    const orders: string[] = [];
    let now: Sorting<string> | null = { column: "other", up: true };
    for (let press = 0; press < 4; ++press) orders.push(formatSorting((now = pressed(now, "p99", upFirst))));
    return orders;
  };
  assert.deepEqual(heard(false), ["p99", "p99.up", "", "p99"]);
  assert.deepEqual(heard(true), ["p99.up", "p99", "", "p99.up"]);
});

test("what has no value is last in both orders, what is equal keeps its place", () => {
  const rows: readonly [string, number | string | null][] = [["a", 2], ["b", null], ["c", 10], ["d", 2], ["e", null], ["f", -1]];
  const names = (up: boolean) => sorted(rows, ([, value]) => value, up).map(([name]) => name).join("");
  assert.equal(names(false), "cadfbe");
  assert.equal(names(true), "fadcbe");
  assert.deepEqual(sorted(["b", "a", "B"], (one) => one, true), ["B", "a", "b"]);
});

test("the sections of the timings stay where they are, their rows are ordered", () => {
  const timing = (name: string, meanSeconds: number, more = {}) => ({ name, rank: 0, inStep: true, steps: 10n, count: 10n, totalSeconds: 10 * meanSeconds, meanSeconds, share: meanSeconds, selfSeconds: meanSeconds, p50Seconds: 1, p95Seconds: 5 - meanSeconds, p99Seconds: 9, ...more });
  const answer = create(SummarizeTimingsResponseSchema, {
    timings: [
      timing("step", 1), timing("forward", 0.2), timing("backward", 0.5), timing("removed", 0.1, { quantilesAbsent: AbsenceReason.RAW_REMOVED }),
      timing("forward", 0.3, { labels: { clock: "device" } }), timing("backward", 0.4, { labels: { clock: "device" } }),
      timing("checkpoint", 30, { inStep: false, steps: 0n, count: 3n }), timing("eval", 20, { inStep: false, steps: 0n, count: 7n }),
    ],
    ranks: [{ rank: 0, steps: 10n, stepSeconds: 10, unaccountedSeconds: 2, unaccountedShare: 0.2 }],
  });
  const rows = timingRows(answer, 0);
  const order = (text: string) => sortedTimings(rows, parseSorting(text, timingColumns)).map((row) => row.name);
  assert.deepEqual(order(""), rows.map((row) => row.name));
  assert.deepEqual(order("scope.up"), ["backward", "forward", "removed", "unaccounted", "step", "backward", "forward", "checkpoint", "eval"]);
  assert.deepEqual(order("mean.up"), ["removed", "forward", "backward", "unaccounted", "step", "forward", "backward", "eval", "checkpoint"]);
  assert.deepEqual(order("total"), ["backward", "forward", "unaccounted", "removed", "step", "backward", "forward", "checkpoint", "eval"]);
  // One whose quantiles are gone is by them neither fast nor slow.
  assert.deepEqual(order("p95"), ["forward", "backward", "removed", "unaccounted", "step", "forward", "backward", "eval", "checkpoint"]);
  assert.deepEqual(order("p95.up").slice(0, 4), ["backward", "forward", "removed", "unaccounted"]);
  assert.deepEqual(order("count").slice(-2), ["eval", "checkpoint"]);
  for (const column of timingColumns) assert.equal(order(column).length, rows.length, column);
});

test("a comparison says what is NaN, in its table and its CSV", () => {
  const side = (count: bigint, nanCount: bigint, mean: number, meanRatio: number) => ({ count, nanCount, mean, min: mean, max: mean, last: mean, meanRatio });
  const answer = create(CompareTrialsResponseSchema, { series: [{
    key: { metricGroup: "training", name: "loss" }, kind: SeriesKind.GAUGE,
    sides: [side(120n, 0n, 0.7, 1), side(60n, 60n, 0.77, 1.1), side(0n, 120n, 0, 0), side(0n, 0n, 0, 0), side(5n, 0n, Infinity, Infinity), { ...side(2n, 0n, Infinity, Infinity), min: 1e308, max: 1e308 }],
  }] });
  const [series] = answer.series;
  assert.ok(series);
  assert.deepEqual(compareRow(series).sides.map(({ text, change, nans, isOdd }) => [text, change.text, nans, isOdd]), [
    ["0.7", "", "", false], ["0.77", "+10 %", "60 of 120 are NaN", false], ["NaN", "", "120 of 120 are NaN", true], ["", "", "", false], ["+infinity", "", "", true], ["overflow", "", "", true],
  ]);
  const rows = compareCsvRows(answer, ["a", "b", "c", "d", "e", "f"]);
  const of = (row: readonly unknown[], name: string) => row[compareCsvHead.indexOf(name)];
  assert.deepEqual(rows.map((row) => ["trial", "samples", "nan", "mean", "last"].map((name) => of(row, name))), [
    ["a", 120, 0, 0.7, 0.7], ["b", 60, 60, 0.77, 0.77], ["c", 0, 120, NaN, NaN], ["e", 5, 0, Infinity, Infinity], ["f", 2, 0, Infinity, Infinity],
  ]);
  for (const row of rows) assert.equal(row.length, compareCsvHead.length);
});

test("a trial with another unit has its value in that, and no change; the others have theirs", () => {
  const side = (mean: number, unit: string, meanRatio: number, meanDifference = 0) => ({ count: 5n, mean, min: mean, max: mean, last: mean, unit, meanRatio, meanDifference });
  const answer = create(CompareTrialsResponseSchema, { series: [
    { key: { metricGroup: "timing", name: "load" }, kind: SeriesKind.DURATION, sides: [side(0.2, "seconds", 1), side(300, "ms", 0), side(0.4, "seconds", 2, 0.2)] },
    { key: { metricGroup: "timing", name: "step" }, kind: SeriesKind.DURATION, unit: "seconds", sides: [side(1, "seconds", 1), side(4, "seconds", 4, 3), side(1, "seconds", 1)] },
    { key: { metricGroup: "training", name: "loss" }, unit: "nats", sides: [side(2, "nats", 1), side(3, "nats", 1.5, 1)] },
  ] });
  const [load] = answer.series;
  assert.ok(load);
  assert.deepEqual(compareRow(load).sides.map(({ text, change, units }) => [text, change.text, units]), [
    ["200 ms", "", ""], ["300 ms", "", "Unit: ms. The first trial's: seconds."], ["400 ms", "2.0× slower", ""],
  ]);
  assert.deepEqual(shownSeries(answer, "").map((one) => one.key?.name), ["step", "load", "loss"], "300 of another unit are not 300 seconds more");
  const rows = compareCsvRows(answer, ["a", "b", "c"]).filter((row) => row[1] === "load");
  assert.deepEqual(rows.map((row) => ["unit", "trial", "mean", "mean_difference", "mean_ratio"].map((name) => row[compareCsvHead.indexOf(name)])), [
    ["seconds", "a", 0.2, null, null], ["ms", "b", 300, null, null], ["seconds", "c", 0.4, 0.2, 2],
  ]);
});

test("buckets in a CSV say how many of their samples are NaN", () => {
  const of = (nanCounts: bigint[]) => ({ key: { metricGroup: "training", name: "loss" }, indexes: [0, 1], mins: [1, NaN], maxs: [1, NaN], means: [1, NaN], lasts: [1, NaN], counts: [2n, 0n], nanCounts });
  const answer = create(QueryBucketsResponseSchema, { start: 10n, width: 5n, series: [of([0n, 3n]), of([])] });
  const [head, ...lines] = bucketCsv(answer, answer.series, "batch").trim().split("\r\n");
  assert.match(head ?? "", /,last,samples,nan$/);
  assert.deepEqual(lines.map((line) => line.split(",").slice(4).join()), ["10,1,1,1,1,2,0", "15,NaN,NaN,NaN,NaN,0,3", "10,1,1,1,1,2,0", "15,NaN,NaN,NaN,NaN,0,0"]);
  assert.equal(answersCsv([answer, answer], "batch").split("\r\n").length, 1 + 8 + 1);
});

test("a comparison is ordered by what rose or fell most, as a part of what it was", () => {
  const side = (mean: number, meanRatio: number, count = 5n) => ({ mean, meanRatio, count });
  const series = (metricGroup: string, name: string, kind: SeriesKind, ...sides: ReturnType<typeof side>[]) => ({ key: { metricGroup, name }, kind, sides });
  const answer = create(CompareTrialsResponseSchema, { series: [
    series("cpu", "idle", SeriesKind.GAUGE, side(10, 1), side(40, 4), side(5, 0.5)),
    series("timing", "forward", SeriesKind.DURATION, side(2, 1), side(3, 1.5), side(1.8, 0.9)),
    series("timing", "backward", SeriesKind.DURATION, side(1, 1), side(3, 3), side(1, 1)),
    series("gpu", "none", SeriesKind.GAUGE, side(0, 0, 0n), side(3, 0), side(4, 0)),
    series("gpu", "from_zero", SeriesKind.GAUGE, side(0, 1), side(3, 0), side(4, 0)),
  ] });
  const order = (by: CompareOrder) => shownSeries(answer, "", by).map((one) => one.key?.name);
  assert.deepEqual(order(""), ["backward", "forward", "idle", "none", "from_zero"]);
  assert.deepEqual(order("rise"), ["idle", "backward", "forward", "none", "from_zero"]);
  assert.deepEqual(order("fall"), ["idle", "forward", "backward", "none", "from_zero"]);
  assert.deepEqual(order("name"), ["backward", "forward", "from_zero", "idle", "none"]);
  assert.deepEqual(shownSeries(answer, "timing", "name").map((one) => one.key?.name), ["backward", "forward"]);
});

test("a fall to 0 is the deepest, and a CSV has each difference that is known", () => {
  const side = (mean: number, meanDifference: number, meanRatio: number, unit = "percent") => ({ count: 5n, mean, min: mean, max: mean, last: mean, unit, meanDifference, meanRatio });
  const answer = create(CompareTrialsResponseSchema, { series: [
    { key: { metricGroup: "cpu", name: "half" }, sides: [side(10, 0, 1), side(5, -5, 0.5), side(20, 10, 2)] },
    { key: { metricGroup: "gpu", name: "to_zero" }, sides: [side(60, 0, 1), side(0, -60, 0), side(54, -6, 0.9)] },
    { key: { metricGroup: "gpu", name: "from_zero" }, sides: [side(0, 0, 1), side(5, 5, 0), side(0, 0, 0)] },
    // Of a unit for each, and of several: what is not told is 0, too.
    { key: { metricGroup: "gpu", name: "units" }, sides: [side(60, 0, 1), side(0, 0, 0, "W"), side(6, 0, 0, "W")] },
    { key: { metricGroup: "gpu", name: "several" }, sides: [side(60, 0, 1, ""), side(0, 0, 0, ""), side(0, -60, 0, "")] },
    { key: { metricGroup: "gpu", name: "infinite" }, sides: [side(Infinity, 0, 1), side(0, -Infinity, 0), side(1, -Infinity, 0)] },
  ] });
  const order = (by: CompareOrder) => shownSeries(answer, "", by).map((one) => one.key?.name);
  assert.deepEqual(order("fall"), ["to_zero", "several", "half", "from_zero", "units", "infinite"]);
  assert.deepEqual(order("rise"), ["half", "to_zero", "several", "from_zero", "units", "infinite"]);
  assert.deepEqual(answer.series.map((series) => compareRow(series).sides.map(({ change }) => change.text).join()), [",2.0× less,2.0×", ",to 0,−10.0 %", ",from 0,same", ",,", ",,to 0", ",,"]);
  const rows = compareCsvRows(answer, ["a", "b", "c"]);
  const told = (name: string) => rows.filter((row) => row[1] === name).map((row) => row.slice(-2));
  assert.deepEqual(told("half"), [[null, null], [-5, 0.5], [10, 2]]);
  assert.deepEqual(told("to_zero"), [[null, null], [-60, 0], [-6, 0.9]]);
  assert.deepEqual(told("from_zero"), [[null, null], [5, null], [0, null]]);
  assert.deepEqual(told("units"), [[null, null], [null, null], [null, null]]);
  assert.deepEqual(told("several"), [[null, null], [null, null], [-60, 0]]);
});
