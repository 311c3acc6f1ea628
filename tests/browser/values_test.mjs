// How many values are drawn where a person looks, whatever they chose: 20,000 at most.
//
//   STEPWELL_BROWSER_TEST=BIN-FOLDER:PAGE-FOLDER:PLAYWRIGHT:CHROMIUM:RECORDER-LIBRARY node --test values_test.mjs
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { duration, RawWriters } from "./raw_writer.mjs";
import { deadlineMs, Stand, until } from "./stand.mjs";
import { bin, closesAtEnd, count, foreign, loaded, openTab, page, seen, show, tab, troubles } from "./tab.mjs";

const stand = new Stand(bin, page);
const valuesMax = 20_000;
/** Many lines in each of more charts than a large window shows. */
const [ranks, metrics] = [27, 24];
const trialCount = 16;
const scopes = 12;
const ticks = 1000;
const startUs = (Math.floor(Date.now() / 1000) - ticks - 10) * 1e6;
const clock = { startUs, stepUs: 1_000_000, ticks, firstBatch: 0 };
const metricName = (at) => `metric_${at}`;
let wide;
const compared = [];

before(async () => {
  await stand.startMaster();
  const raw = new RawWriters(stand.ports.grpc);
  for (let rank = 0; rank < ranks; ++rank) {
    wide = await raw.write({ trial: "wide", rank, ...clock, series: Array.from({ length: metrics }, (_, at) => ({ group: "training", name: metricName(at), value: (tick) => rank + at + (tick % 7) })) });
  }
  for (let trial = 0; trial < trialCount; ++trial) {
    compared.push(await raw.write({ trial: `side-${trial}`, rank: 0, ...clock, series: [
      ...Array.from({ length: scopes }, (_, at) => ({ group: "timing", name: at === 0 ? "step" : `scope_${at}`, unit: "seconds", kind: duration, value: (tick) => (at === 0 ? 1 : 0.05) + 0.001 * ((tick + trial) % 5) })),
      ...Array.from({ length: 9 }, (_, at) => ({ group: "training", name: metricName(at), value: (tick) => trial + (tick % 7) })),
    ] }));
  }
  raw.close();
  await openTab(stand, [], { viewport: { width: 2560, height: 1860 } });
  await tab.goto(stand.url);
}, { timeout: 4 * deadlineMs });

closesAtEnd(stand);

/** Of the charts that are in sight now: how many they are, and what they draw together. */
const drawn = () => tab.evaluate(() => {
  const seen = [...document.querySelectorAll("[data-values]")].filter((chart) => {
    const { top, bottom, height } = chart.getBoundingClientRect();
    return height > 0 && bottom > 0 && top < innerHeight;
  });
  return { charts: seen.length, values: seen.reduce((sum, chart) => sum + Number(chart.dataset.values), 0) };
});

/** From the top of the page to its end, a half of the window at a time. */
async function assertFew(where, chartsLeast, valuesLeast) {
  let most = { charts: 0, values: 0 };
  for (let top = 0, end = false; !end; top += 700) {
    end = await tab.evaluate((to) => {
      window.scrollTo(0, to);
      return scrollY < to;
    }, top);
    await tab.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const now = await drawn();
    assert.ok(now.values <= valuesMax, `${where}, ${top} px down: ${JSON.stringify(now)}`);
    if (now.values > most.values) most = now;
  }
  assert.ok(most.charts >= chartsLeast && most.values >= valuesLeast, `${where}: ${JSON.stringify(most)}`);
}

const chosen = (names) => names.map((name) => `&m=${encodeURIComponent(name)}`).join("");
const training = (many) => Array.from({ length: many }, (_, at) => `training/${metricName(at)}`);

test("of charts with a line for each of many ranks", async () => {
  for (const axis of ["time", "batch"]) {
    await show(`#/trial/${wide}/metrics?axis=${axis}&lines=each${chosen(training(metrics))}`);
    await until(`${metrics} charts over ${axis}`, async () => (await count("[data-values]")) === metrics);
    await loaded("the charts");
    await seen(`[data-metric="training/${metricName(metrics - 1)}"] .legend li >> nth=${ranks - 1}`);
    await assertFew(`lines=each over ${axis}`, 6, 5000);
  }
});

test("of sixteen trials side by side, and many of their charts", async () => {
  const ids = compared.map((id) => `t=${id}`).join("&");
  for (const axis of ["batch", "time"]) {
    await show(`#/compare?${ids}&axis=${axis}${chosen(training(9))}`);
    await until(`nine charts by ${axis}`, async () => (await count('.charts [data-metric^="training/"] [data-values]')) === 9);
    await assertFew(`a comparison by ${axis}`, 3, 5000);
  }
});

test("of timings", async () => {
  await show(`#/trial/${compared[0]}/timings`);
  await until("both charts", async () => (await count("[data-values]")) === 2);
  await assertFew("timings", 2, 1000);
});

test("nothing went wrong in the page, and nothing was asked of others", () => {
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
