import assert from "node:assert/strict";
import { test } from "node:test";
import { changeOf, comparedSelectors, drawnTogether, isCompared, largestChange, offeredTrials, unitDiffers, type Measured } from "../src/core/compared";
import { looksMax } from "../src/core/palette";
import { formatNumbers, parseNumbers } from "../src/core/number_ranges";
import { chosenCharts, foldsTogether, labelValues, lineNames, linesOfChart, metricCharts, selectorsOf, wanted, type KnownSeries } from "../src/core/series_choice";
import { adminView, compareView, formatView, parseView, trialsView, trialView, type View } from "../src/core/view_state";

test("a link restores the view", () => {
  const views: View[] = [
    trialsView,
    { page: "trials", search: "a&b=c #?/ %", state: "failed", project: "עברית", pageNo: 3, pageToken: "AbC_-9.x" },
    trialView("1000000000"),
    {
      ...trialView("7"), tab: "metrics", axis: "batch", start: 3, end: 99, metrics: ["gpu/gpu_util", "own%2Fgroup/a/b?c&d"],
      labels: new Map([["agent", ["vm", "<script>"]], ["device", ["GPU-1"]]]), rank: "all", lines: "one",
    },
    { ...trialView("7"), tab: "metrics", liveUs: 60_000_000 },
    {
      ...trialView("7"), tab: "metrics", metrics: Array.from({ length: 100 }, (_, i) => `training/metric ${i}`),
      labels: new Map([["device", Array.from({ length: 1000 }, (_, i) => `GPU-${i}`)]]),
    },
    { ...trialView("7"), tab: "traces", traces: [1, 2, 3, 7], placed: "start", steps: 7, filter: "rank 1 & <b>" },
    { ...trialView("7"), tab: "heat", clock: "device", metrics: ["timing/forward"] },
    { ...compareView, trials: ["1", "2"], axis: "time", metrics: ["timing/step"] },
    { ...compareView, trials: ["1", "2"], start: 0, end: 40, filter: "back ward/ü" },
    { ...compareView, trials: ["1", "2"], sort: "rise" },
    { ...trialView("7"), sort: "p99.up" },
    adminView,
    { page: "admin", place: { owner: "project", name: "vision & co", metricGroup: "" } },
    { page: "admin", place: { owner: "trial", name: "1000000001", metricGroup: "gpu" } },
    { page: "admin", place: { owner: "trial", name: "7", project: "vision", metricGroup: "gpu" } },
    { page: "admin", place: { owner: "all", name: "", metricGroup: "cpu" } },
    { page: "missing", address: "/nonsense?a=b#c" },
  ];
  for (const view of views) assert.deepEqual(parseView(formatView(view)), view);
});

test("chosen traces stand in the address as ranges", () => {
  assert.equal(formatView({ ...trialView("7"), tab: "traces", traces: [3, 1, 2, 9] }), "#/trial/7/traces?traces=1-3.9");
  // Of another tab they say nothing.
  assert.equal(formatView({ ...trialView("7"), tab: "heat", traces: [1], placed: "start", steps: 1 }), "#/trial/7/heat");
  const rows: [string, number[]][] = [
    ["", []], ["5", [5]], ["2-4.1", [1, 2, 3, 4]], ["4-2", []], ["1.x.-3.3-.7", [1, 7]], ["1-9999999999", [1, 2, 3, 4, 5, 6]], ["9999999999", []], ["3.3.3-4", [3, 4]],
  ];
  for (const [text, numbers] of rows) assert.deepEqual(parseNumbers(text, 6), numbers, text);
  assert.equal(formatNumbers([]), "");
  assert.equal(formatNumbers([8, 6, 5, 5]), "5-6.8");
});

test("what cannot be read falls back", () => {
  assert.deepEqual(parseView(""), trialsView);
  assert.deepEqual(parseView("#/"), trialsView);
  for (const address of ["/nowhere/at/all", "/trial/abc/metrics?m=a", "/trial", "nonsense"]) assert.deepEqual(parseView(`#${address}`), { page: "missing", address });
  assert.deepEqual(parseView("#/trial/7/nothing?from=9&to=3&axis=x&rank=;drop&live=-1&lines=9"), trialView("7"));
  assert.deepEqual(parseView("#/trials?state=weird"), trialsView);
  // A page has a number and a token, or is the first.
  for (const page of ["page=3", "after=abc", "page=1&after=abc", "page=x&after=abc", "page=2&after=%3Cb%3E"]) assert.deepEqual(parseView(`#/trials?${page}`), trialsView, page);
  for (const place of ["of=project", "of=all&name=x", "of=nobody&name=x", "name=x", "of=trial&name="]) assert.deepEqual(parseView(`#/admin?${place}`), adminView, place);
  assert.equal((parseView(`#/compare?q=${"x".repeat(999)}`) as { filter: string }).filter.length, 256);
  // A filter of traces is of no other tab, nor is the order of the timings.
  assert.equal(formatView({ ...trialView("7"), tab: "heat", sort: "p99" }), "#/trial/7/heat");
  assert.equal((parseView(`#/compare?sort=${"x".repeat(999)}`) as { sort: string }).sort.length, 24);
  assert.equal(formatView({ ...trialView("7"), tab: "metrics", filter: "x" }), "#/trial/7/metrics");
  // A comparison asks for its charts in one question.
  assert.equal((parseView(`#/compare?${[...Array(1500).keys()].map((i) => `m=a/${i}`).join("&")}`) as { metrics: string[] }).metrics.length, 1000);
  assert.equal((parseView(`#/compare?${[...Array(40).keys()].map((i) => `t=${i + 1}`).join("&")}`) as { trials: string[] }).trials.length, 16);
});

function series(seriesNo: number, metricGroup: string, name: string, labels: Record<string, string> = {}, unit = "percent"): KnownSeries {
  return { seriesNo, metricGroup, name, labels, unit };
}

const all = [
  series(1, "disk", "disk_iops", { agent: "a" }), series(2, "gpu", "gpu_util", { agent: "a", device: "GPU-2" }), series(3, "gpu", "gpu_util", { agent: "a", device: "GPU-10" }),
  series(4, "training", "loss", { rank: "0" }), series(5, "timing", "step", { rank: "0" }), series(6, "agent", "clock_offset", { agent: "a" }),
];

test("the training's own charts come first, then the usual ones, timings have a page of their own", () => {
  const charts = metricCharts(all);
  assert.deepEqual(charts.map((chart) => chart.id), ["training/loss", "gpu/gpu_util", "disk/disk_iops", "agent/clock_offset"]);
  assert.deepEqual(chosenCharts(charts, []).map((chart) => chart.id), ["training/loss", "gpu/gpu_util", "disk/disk_iops"]);
  assert.deepEqual(chosenCharts(charts, ["agent/clock_offset", "gone/away"]).map((chart) => chart.id), ["agent/clock_offset"]);
  assert.deepEqual(chosenCharts(metricCharts([series(1, "own", "x")]), []).map((chart) => chart.id), ["own/x"]);
});

test("labels choose, in a natural order, and what lacks a label stays", () => {
  assert.deepEqual(labelValues(all).get("device"), ["GPU-2", "GPU-10"]);
  const chosen = new Map([["device", ["GPU-10"]]]);
  assert.deepEqual(all.filter((one) => wanted(one, chosen)).map((one) => one.seriesNo), [1, 3, 4, 5, 6]);
  assert.ok(wanted(all[1] as KnownSeries, new Map([["device", []]])));
});

test("lines are named by what tells them apart", () => {
  assert.deepEqual(lineNames([all[1] as KnownSeries, all[2] as KnownSeries]), ["device=GPU-2", "device=GPU-10"]);
  assert.deepEqual(lineNames([all[0] as KnownSeries]), [""]);
  // A rank before the agent that it ran on.
  assert.deepEqual(lineNames(["0", "1"].map((rank) => ({ labels: { agent: `node-${rank}`, rank } }))), ["rank=0 agent=node-0", "rank=1 agent=node-1"]);
});

test("more lines than an eye can tell apart become one", () => {
  const chart = { id: "a/b", metricGroup: "a", name: "b", unit: "1", series: [...Array(20).keys()].map((i) => series(i + 1, "a", "b", { rank: String(i) })) };
  assert.ok(foldsTogether(chart, linesOfChart("")));
  assert.ok(!foldsTogether(chart, linesOfChart("each")));
  assert.ok(!foldsTogether({ ...chart, series: chart.series.slice(0, 1) }, linesOfChart("one")));
  // Also where a line each is asked for: more than there are looks.
  const crowd = (count: number) => ({ ...chart, series: [...Array(count).keys()].map((i) => series(i + 1, "a", "b", { rank: String(i) })) });
  assert.ok(!foldsTogether(crowd(looksMax), linesOfChart("each")));
  assert.ok(foldsTogether(crowd(looksMax + 1), linesOfChart("each")));
});

test("a change says how much, and which way only where it is known", () => {
  const first = { count: 5, mean: 2, ratio: 1 };
  assert.deepEqual(changeOf(first, { count: 5, mean: 1, ratio: 0.5 }, true), { text: "2.0× faster", tone: 1 });
  assert.deepEqual(changeOf(first, { count: 5, mean: 1.2, ratio: 0.6 }, true), { text: "40 % faster", tone: 1 });
  assert.deepEqual(changeOf(first, { count: 5, mean: 0.003, ratio: 1 / 696.3 }, true), { text: "696× faster", tone: 1 });
  assert.deepEqual(changeOf(first, { count: 5, mean: 0.4, ratio: 0.2 }, false), { text: "5.0× less", tone: 0 });
  assert.deepEqual(changeOf(first, { count: 5, mean: -1, ratio: -0.5 }, false), { text: "−150 %", tone: 0 });
  assert.deepEqual(changeOf(first, { count: 5, mean: 4e9, ratio: 2e9 }, false), { text: "2,000,000,000×", tone: 0 });
  assert.deepEqual(changeOf(first, { count: 5, mean: 6, ratio: 3 }, true), { text: "3.0× slower", tone: -1 });
  assert.deepEqual(changeOf(first, { count: 5, mean: 2.02, ratio: 1.01 }, true), { text: "+1.0 %", tone: 0 });
  const none = { count: 5, mean: 0, ratio: 0 };
  assert.deepEqual(changeOf(none, { count: 5, mean: 0.3, ratio: 0 }, true), { text: "from 0", tone: -1 });
  assert.deepEqual(changeOf(none, { count: 5, mean: 0.3, ratio: 0 }, false), { text: "from 0", tone: 0 });
  assert.deepEqual(changeOf(none, none, true), { text: "same", tone: 0 });
  assert.deepEqual(changeOf(first, none, true), { text: "to 0", tone: 1 });
  assert.deepEqual(changeOf(first, none, false), { text: "to 0", tone: 0 });
  assert.deepEqual(changeOf({ count: 5, mean: -2, ratio: 1 }, none, true), { text: "to 0", tone: 0 });
  assert.deepEqual(changeOf({ count: 5, mean: Infinity, ratio: 1 }, none, true), { text: "", tone: 0 });
  assert.deepEqual(changeOf(none, { count: 5, mean: NaN, ratio: 0 }, true), { text: "", tone: 0 });
  assert.deepEqual(changeOf(first, { count: 5, mean: 6, ratio: 3 }, false), { text: "3.0×", tone: 0 });
  assert.deepEqual(changeOf(first, { count: 0, mean: 0, ratio: 0 }, true), { text: "", tone: 0 });
  assert.equal(largestChange(first, [first, { count: 1, mean: 5, ratio: 2.5 }]), 3);
});

const one = (mean: number, unit: string, ratio = 0, difference = 0, count = 5): Measured => ({ mean, unit, ratio, difference, count });
const none = one(0, "", 0, 0, 0);

test("a trial's unit differs where it is not the first's, or where the master tells no difference though there is one", () => {
  const first = one(4, "1/s", 1);
  const rows: [string, Measured, Measured, boolean][] = [
    ["the first itself", first, first, false], ["the same", first, one(6, "1/s", 1.5, 2), false], ["another", first, one(600, "1/min"), true],
    ["none beside one", first, one(6, ""), true], ["no samples", first, none, false], ["of no samples", none, one(6, "1/s"), false],
    ["both without", one(4, "", 1), one(6, "", 1.5, 2), false], ["several among one's", one(4, "", 1), one(6, ""), true],
    ["both zero", one(0, "", 1), one(0, ""), false], ["from zero", one(0, "", 1), one(6, "", 0, 6), false], ["to zero", one(6, "", 1), one(0, "", 0, -6), false],
    ["of infinity", one(Infinity, "", 1), one(6, "", 0, -Infinity), false], ["both infinite", one(Infinity, "", 1), one(Infinity, "", NaN, NaN), false],
  ];
  for (const [name, a, b, differs] of rows) {
    assert.equal(unitDiffers(a, b), differs, name);
    assert.equal(isCompared(a, b), !differs && a.count > 0 && b.count > 0, name);
  }
});

test("a chart draws what has the unit of the first that has numbers", () => {
  const rows: [string, Measured[], number[], number[], string][] = [
    ["one of another", [one(4, "1/s", 1), one(600, "1/min"), one(6, "1/s", 1.5, 2)], [0, 2], [1], "1/s"],
    ["the first has none", [none, one(4, "ms"), one(1, "s"), one(5, "ms")], [0, 1, 3], [2], "ms"],
    ["the first has none, no units", [none, one(4, ""), one(1, "")], [0, 1, 2], [], ""],
    ["all alike", [one(4, "", 1), one(6, "", 1.5, 2)], [0, 1], [], ""], ["nothing", [none, none], [0, 1], [], ""], ["nobody", [], [], [], ""],
  ];
  for (const [name, sides, drawn, leftOut, unit] of rows) assert.deepEqual(drawnTogether(sides), { drawn, leftOut, unit }, name);
});

test("what has charts in a comparison is asked for once, whichever of its clocks have one", () => {
  assert.deepEqual(comparedSelectors(["timing/step", "timing/a/b;clock=device", "timing/a/b", "timing/step", "nothing", "/x", "y/", "own%2Fgroup/x", "%/bad"]),
    [{ metricGroup: "timing", name: "step" }, { metricGroup: "timing", name: "a/b" }, { metricGroup: "own/group", name: "x" }]);
});

test("what may be added to a comparison is what is not in it, and where more of it is", () => {
  const listed = [{ id: "3", name: "c" }, { id: "2", name: "b" }, { id: "1", name: "a" }];
  assert.deepEqual(offeredTrials(listed, [], false), [["", "Choose a trial …"], ["3", "c"], ["2", "b"], ["1", "a"]]);
  assert.deepEqual(offeredTrials(listed, ["2"], true), [["", "Add a trial …"], ["3", "c"], ["1", "a"], [null, "older ones: by their boxes in the list of trials"]]);
});

test("more series than one selector may name are asked for by several, each once", () => {
  const all = Array.from({ length: 25_001 }, (_, i) => i + 1);
  const selectors = selectorsOf(all);
  assert.deepEqual(selectors.map(({ seriesNos }) => seriesNos.length), [10_000, 10_000, 5001]);
  assert.deepEqual(selectors.flatMap(({ seriesNos }) => seriesNos), all);
  assert.deepEqual(selectorsOf([7]), [{ seriesNos: [7] }]);
});
