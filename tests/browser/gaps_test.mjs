// What is missing looks missing, on whichever axis: a stack of shares and a throughput that end where no steps came, and
// declared gaps beside charts over batches, as bands of a comparison by time, and in the words of both.
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
  })));
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

const stack = 'section[aria-label="Timings"] > section.panel:has(h2:text-is("Share of the step over the batches"))';
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
  assert.equal(await count(`${stack} [data-gaps]`), 0);
});

test("a chart over batches tells declared gaps of its group in words, and where there is more of them", async () => {
  await show(`#/trial/${holed}/timings`);
  const note = `${stack} [data-gaps]`;
  await seen(note);
  assert.equal(await words(note), "Declared gaps, which tell times and no batches: ring full 200 (Completeness).");
  assert.equal(await tab.locator(note).getAttribute("title"), "ring full (200 samples missing, group timing): the ring was full");
  await show(`#/trial/${holed}/metrics?axis=batch&m=training%2Floss&m=quality%2Fscore`);
  const [loss, score] = ["training/loss", "quality/score"].map((id) => `[data-metric="${id}"]`);
  await drawn(loss, bothSides);
  assert.match(await words(`${loss} [data-gaps]`), /: ring full 100 \(Completeness\)\.$/);
  await drawn(score, bothSides);
  assert.equal(await count(`${score} [data-gaps]`), 0);
  // By wall clock it has a place there.
  await tab.click('button:text-is("Wall clock")');
  await until("the gap's hatches", async () => (await hatches(loss)).length === 1);
  assert.equal(await count("[data-gaps]"), 0);
  await show(`#/trial/${holed}/heat?axis=batch`);
  await seen('.heat [data-gaps]:has-text("ring full 200")');
  await show(`#/trial/${whole}/heat?axis=batch`);
  await seen('.head h1:has-text("whole")');
  await seen(".heat canvas[tabindex]");
  assert.equal(await count("[data-gaps]"), 0);
  await show(`#/trial/${holed}/timings`);
  await tab.click(`${note} a`);
  await seen('tr:has-text("ring full"):has-text("the ring was full")');
});

/** Where nothing but a gap's band is drawn: just below the top. */
const hatches = async (chart) => (await count(`${chart} canvas`)) === 0 ? [] : tab.evaluate(drawnAcross, { chart, up: 0.97 });

test("compared by time since start a gap is a band that tells whose it is; by batch it is told in words", async () => {
  await show(`#/compare?t=${whole}&t=${holed}&m=timing%2Fstep&m=quality%2Fscore`);
  const step = '.charts section[data-metric="timing/step"]';
  await seen(`${step} [data-gaps]`);
  assert.equal(await words(`${step} [data-gaps]`), "Declared gaps, which tell times and no batches: holed: ring full 200 (Completeness).");
  assert.equal(await tab.locator(`${step} [data-gaps] a`).getAttribute("href"), `#/trial/${holed}/completeness`);
  assert.equal(await count('.charts section[data-metric="quality/score"] [data-gaps]'), 0);
  await tab.click('button:has-text("By time since start")');
  const found = await until("the gap's hatches", async () => {
    const bands = await hatches(step);
    return bands.length > 0 && bands;
  });
  assert.equal(found.length, 1, JSON.stringify(found));
  const [{ from, to }] = found;
  assert.ok(Math.abs(from - inParts(hole.from)) < 0.015 && Math.abs(to - inParts(hole.to)) < 0.015, JSON.stringify(found));
  assert.deepEqual(await hatches('.charts section[data-metric="quality/score"]'), []);
  await gone(`${step} [data-gaps]`);
  const place = tab.locator(`${step} .u-over`);
  await place.scrollIntoViewIfNeeded();
  const { width, height } = await place.boundingBox();
  await place.hover({ position: { x: width * 0.5, y: height / 2 } });
  await seen(`${step} .gap-words`);
  assert.match(await text(`${step} .gap-words`), /Gap: holed: ring full \(200 samples missing, group timing\): the ring was full/);
});

test("nothing went wrong in the page, and nothing was asked of others", () => {
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
