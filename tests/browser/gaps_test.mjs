// What is missing looks missing, on whichever axis: a stack of shares and a throughput that end where no steps came, and
// declared gaps as bands of charts, heat maps and comparisons, over time and over batches, or, where nobody knows between
// which batches they lie, in words beside them.
//
//   STEPWELL_BROWSER_TEST=BIN-FOLDER:PAGE-FOLDER:PLAYWRIGHT:CHROMIUM:RECORDER-LIBRARY node --test gaps_test.mjs
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { drawnAcross } from "./looks.mjs";
import { causes, duration, RawWriters } from "./raw_writer.mjs";
import { deadlineMs, Stand, until } from "./stand.mjs";
import { bin, closesAtEnd, count, foreign, gone, openTab, page, seen, show, tab, text, troubles } from "./tab.mjs";

const stand = new Stand(bin, page);
const ticks = 400;
const hole = { from: 150, to: 250 };
const stepUs = 500_000;
const startUs = (Math.floor(Date.now() / 1000) - 260) * 1e6;
const inHole = (tick) => tick >= hole.from && tick < hole.to;
let holed;
let whole;

before(async () => {
  await stand.startMaster();
  const raw = new RawWriters(stand.ports.grpc);
  const unless = (lacks, value) => (tick) => (lacks(tick) ? null : value(tick));
  const trial = (name, at, lacks, losses) => raw.write({
    trial: name, rank: 0, startUs: at, stepUs, ticks, firstBatch: 0, losses,
    series: [
      { group: "timing", name: "step", unit: "seconds", kind: duration, value: unless(lacks, () => 0.5) },
      { group: "timing", name: "train_batch", unit: "seconds", kind: duration, value: unless(lacks, () => 0.3) },
      { group: "training", name: "loss", value: unless(lacks, (tick) => 2 - tick / ticks) },
      { group: "quality", name: "score", value: unless(lacks, (tick) => tick / ticks) },
    ],
  });
  holed = await trial("holed", startUs, inHole, [["timing", 200n], ["training", 100n]].map(([metricGroup, sampleCount]) => ({
    cause: causes.ringFull, metricGroup, sampleCount, reason: "the ring was full",
    firstTimeUs: BigInt(startUs + hole.from * stepUs), lastTimeUs: BigInt(startUs + hole.to * stepUs),
  })).concat([{ cause: causes.ringFull, metricGroup: "quality", sampleCount: 7n, reason: "some time or other" }]));
  // An hour before: laid beside the other by the time since each began.
  whole = await trial("whole", startUs - 3_600e6, () => false, []);
  raw.close();
  await openTab(stand);
  await tab.goto(stand.url);
}, { timeout: 3 * deadlineMs });

closesAtEnd(stand);

/** Of a chart's first line or layer: from where to where of the plot's width it is drawn, at whatever height. */
function drawnStretches(chart) {
  const canvas = document.querySelector(`${chart} canvas`);
  const swatch = document.querySelector(`${chart} .swatch`);
  if (!canvas?.checkVisibility() || !swatch) return [];
  const [red, green, blue] = swatch.style.getPropertyValue("--look").match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16));
  const scale = canvas.width / canvas.clientWidth;
  const [plot, all] = [document.querySelector(`${chart} .u-over`).getBoundingClientRect(), canvas.getBoundingClientRect()];
  const [left, top, width, height] = [plot.left - all.left, plot.top - all.top, plot.width, plot.height].map((pixels) => Math.round(pixels * scale));
  const { data } = canvas.getContext("2d").getImageData(left, top, width, height);
  const isDrawn = (x) => {
    for (let at = x * 4; at < data.length; at += width * 4) {
      if (data[at + 3] > 200 && Math.hypot(data[at] - red, data[at + 1] - green, data[at + 2] - blue) < 60) return true;
    }
    return false;
  };
  const found = [];
  for (let from = 0; from < width; ++from) {
    let to = from;
    while (to < width && isDrawn(to)) ++to;
    if (to > from) found.push([from / width, to / width]);
    from = to;
  }
  return found;
}

const inParts = (batches) => batches / ticks;
const bothSides = [[0, inParts(hole.from)], [inParts(hole.to), 1]];
const all = [[0, 1]];

/** Waits until a chart's first line is drawn in `wanted` alone. */
async function drawn(chart, wanted) {
  let found = [];
  const fits = () => found.length === wanted.length && found.flat().every((place, at) => Math.abs(place - wanted.flat()[at]) < 0.015);
  await until(`${chart} in ${JSON.stringify(wanted)}`, async () => ((found = await tab.evaluate(drawnStretches, chart)), fits()))
    .catch((error) => { throw new Error(`${error.message}, but ${JSON.stringify(found)}`); });
}

const stackChart = 'section[aria-label="Timings"] > section.panel:nth-of-type(1) figure';
const rateChart = '[data-metric="throughput"]';
const words = async (selector) => (await text(selector)).replace(/\s+/g, " ").trim();

test("shares and throughput over batches end where batches are missing, and begin anew behind them", async () => {
  await show(`#/trial/${holed}/timings`);
  await drawn(stackChart, bothSides);
  await drawn(rateChart, bothSides);
  // Of a trial that lacks none they go through.
  await show(`#/trial/${whole}/timings`);
  await drawn(stackChart, all);
  await drawn(rateChart, all);
  assert.equal(await count("[data-gaps]"), 0);
  assert.deepEqual(await hatches(rateChart), []);
});

/** Where nothing but a gap's band is drawn: just below the top. */
const hatches = async (chart) => (await count(`${chart} canvas`)) === 0 ? [] : tab.evaluate(drawnAcross, { chart, up: 0.97 });

/** One band, over the hole. */
async function hatchedOverHole(chart) {
  const found = await until(`the gap's hatches in ${chart}`, async () => {
    const bands = await hatches(chart);
    return bands.length > 0 && bands;
  });
  assert.equal(found.length, 1, JSON.stringify(found));
  const [{ from, to }] = found;
  assert.ok(Math.abs(from - inParts(hole.from)) < 0.015 && Math.abs(to - inParts(hole.to)) < 0.015, JSON.stringify(found));
}

/** With the pointer in the hole the chart tells why it is one, elsewhere it does not. */
async function tellsCause(chart, wanted) {
  const place = tab.locator(`${chart} .u-over`);
  await place.scrollIntoViewIfNeeded();
  const { width, height } = await place.boundingBox();
  await place.hover({ position: { x: width * 0.5, y: height / 2 } });
  await seen(`${chart} .gap-words`);
  assert.match(await text(`${chart} .gap-words`), wanted);
  await place.hover({ position: { x: width * 0.1, y: height / 2 } });
  await gone(`${chart} .gap-words`);
}

test("over batches a declared gap is a band between those that are known, and tells its cause", async () => {
  await show(`#/trial/${holed}/timings`);
  await drawn(stackChart, bothSides);
  await hatchedOverHole(rateChart);
  for (const chart of [stackChart, rateChart]) await tellsCause(chart, /Gap: ring full \(200 samples missing, group timing\): the ring was full/);
  assert.equal(await count("[data-gaps]"), 0);
  await show(`#/trial/${holed}/metrics?axis=batch&m=training%2Floss&m=quality%2Fscore`);
  const [loss, score] = ["training/loss", "quality/score"].map((id) => `[data-metric="${id}"]`);
  await drawn(loss, bothSides);
  await hatchedOverHole(loss);
  await tellsCause(loss, /Gap: ring full \(100 samples missing, group training\)/);
  assert.equal(await count(`${loss} [data-gaps]`), 0);
  await drawn(score, bothSides);
  assert.deepEqual(await hatches(score), []);
  // A closer look from within it: the band begins at the edge, and its end is known.
  await show(`#/trial/${holed}/metrics?axis=batch&m=training%2Floss&from=200&to=300`);
  const closer = await until("the rest of the gap", async () => {
    const bands = await hatches(loss);
    return bands.length === 1 && bands[0].from < 0.015 && bands[0];
  });
  assert.ok(Math.abs(closer.to - 0.5) < 0.02, JSON.stringify(closer));
  await show(`#/trial/${holed}/heat?axis=batch`);
  await seen(".heat canvas[tabindex]");
  const cells = tab.locator(".heat-cells");
  await cells.scrollIntoViewIfNeeded();
  const { width, height } = await cells.boundingBox();
  await cells.hover({ position: { x: width * 0.5, y: height / 2 } });
  await seen('.heat-gap-words:has-text("ring full (200 samples missing, group timing)")');
  await cells.hover({ position: { x: width * 0.1, y: height / 2 } });
  await gone(".heat-gap-words");
  assert.equal(await count("[data-gaps]"), 0);
});

test("a gap of which nobody knows between which batches it lies is told in words, and where there is more of it", async () => {
  await show(`#/trial/${whole}/metrics?axis=batch&m=quality%2Fscore`);
  await drawn('[data-metric="quality/score"]', all);
  assert.equal(await count("[data-gaps]"), 0);
  await show(`#/trial/${holed}/metrics?axis=batch&m=quality%2Fscore`);
  const note = '[data-metric="quality/score"] [data-gaps]';
  await seen(note);
  assert.equal(await words(note), "Declared gaps without a place among the batches: ring full 7 (Completeness). ring full (7 samples missing, group quality): some time or other");
  await tab.click(`${note} a`);
  await seen('tr:has-text("ring full"):has-text("some time or other")');
});

test("compared, by batch or by time since start, a gap is a band that tells whose it is", async () => {
  await show(`#/compare?t=${whole}&t=${holed}&m=timing%2Fstep&m=quality%2Fscore`);
  const [step, score] = ["timing/step", "quality/score"].map((id) => `.charts section[data-metric="${id}"]`);
  const cause = /Gap: holed: ring full \(200 samples missing, group timing\): the ring was full/;
  await hatchedOverHole(step);
  await tellsCause(step, cause);
  assert.equal(await count(`${step} [data-gaps]`), 0);
  assert.equal(await words(`${score} [data-gaps]`), "Declared gaps without a place among the batches: holed: ring full 7 (Completeness). holed: ring full (7 samples missing, group quality): some time or other");
  assert.equal(await tab.locator(`${score} [data-gaps] a`).getAttribute("href"), `#/trial/${holed}/completeness`);
  await tab.click('button:has-text("By time since start")');
  await gone("[data-gaps]");
  await hatchedOverHole(step);
  // Before it is drawn anew, over time, there are no hatches either. Both have the same values: the first's line is seen where the other has none.
  const place = tab.locator(`${score} .u-over`);
  await place.scrollIntoViewIfNeeded();
  await place.hover({ position: { x: 10, y: 10 } });
  await seen(`${score} .chart-place:has-text("since start")`);
  await drawn(score, [[inParts(hole.from), inParts(hole.to)]]);
  assert.deepEqual(await hatches(score), []);
  await tellsCause(step, cause);
});

test("nothing went wrong in the page, and nothing was asked of others", () => {
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
