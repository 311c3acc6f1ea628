// What a person does while half of the charts are of the answer before, and on an axis that is not the one that is asked for.
//
//   STEPWELL_BROWSER_TEST=BIN-FOLDER:PAGE-FOLDER:PLAYWRIGHT:CHROMIUM:RECORDER-LIBRARY node --test half_drawn_test.mjs
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, beforeEach, test } from "node:test";
import { duration, RawWriters } from "./raw_writer.mjs";
import { deadlineMs, soon, Stand } from "./stand.mjs";
import { bin, closesAtEnd, count, foreign, openTab, page, pixelsOf, saved, seen, show, tab, text, troubles } from "./tab.mjs";

const stand = new Stand(bin, page);
const ticks = 200;
const startUs = (Math.floor(Date.now() / 1000) - ticks - 10) * 1e6;
const cells = ".heat canvas[tabindex]";
const ids = [];

before(async () => {
  await stand.startMaster();
  const raw = new RawWriters(stand.ports.grpc);
  const series = [{ group: "timing", name: "step", unit: "seconds", kind: duration, value: () => 0.1 }, { group: "timing", name: "forward", unit: "seconds", kind: duration, value: () => 0.05 },
    ...["loss", "accuracy", "norm"].map((name) => ({ group: "training", name, value: (tick) => 1 / (tick + 1) }))];
  for (const trial of ["one", "two"]) ids.push(await raw.write({ trial, rank: 0, startUs, stepUs: 1_000_000, ticks, firstBatch: 0, series }));
  raw.close();
  await openTab(stand);
  // What the page asks while `window.answers` is "none" is not answered, while it is "refused" by a master that recovers.
  await tab.addInitScript(() => {
    const { fetch } = window;
    window.fetch = (...args) => {
      if (window.answers === "none") return new Promise((_, fail) => args[1]?.signal?.addEventListener("abort", () => fail(args[1].signal.reason)));
      if (window.answers !== "refused") return fetch(...args);
      return Promise.resolve(new Response(JSON.stringify({ code: "unavailable", message: "recovering" }), { status: 503, headers: { "content-type": "application/json" } }));
    };
  });
  await tab.goto(stand.url);
}, { timeout: 4 * deadlineMs });

beforeEach(() => tab.evaluate(() => { window.answers = "all"; }));
closesAtEnd(stand);

/** Once the chart of `metric` is drawn anew, before any other is: clicks on `clicked`, or sends `key` to it; answers are as `answers` says from then on. */
const midway = (metric, clicked, answers, key = null) => tab.evaluate(([metric, clicked, answers, key]) => {
  window.wasMidway = false;
  for (const one of document.querySelectorAll(".charts .u-over")) one.dataset.before = "";
  const watch = new MutationObserver(() => {
    watch.disconnect();
    window.answers = answers;
    const element = document.querySelector(clicked);
    if (key === null) element.click();
    else element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    window.undrawn = document.querySelectorAll(".charts .u-over[data-before]").length;
    window.wasMidway = true;
  });
  watch.observe(document.querySelector(`.charts [data-metric="${metric}"] .chart-canvas`), { childList: true });
}, [metric, clicked, answers, key]);

const metricsHash = (trial) => `#/trial/${trial}/metrics?axis=batch&m=training%2Floss&m=training%2Faccuracy&m=training%2Fnorm`;

/** Of each chart, where its cursor is put. */
async function places() {
  await tab.evaluate(() => document.querySelectorAll(".charts .chart-canvas").forEach((one) => one.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }))));
  return tab.locator(".charts .chart-place").evaluateAll((all) => all.map((one) => one.textContent));
}

async function open(hash, charts) {
  await show("#/trials");
  await seen("tbody tr");
  await show(hash);
  await soon(async () => assert.deepEqual([await count(".charts .chart-canvas .u-over"), await count('[aria-busy="true"]')], [charts, 0]));
  await tab.mouse.move(0, 0);
}

test("charts that another question finds half drawn are drawn wholly, and are of one axis while that one fails", async () => {
  await open(`#/compare?t=${ids[0]}&t=${ids[1]}&m=training%2Floss&m=training%2Faccuracy`, 2);
  assert.deepEqual((await places()).map((words) => words.startsWith("batch ")), [true, true]);
  const first = await tab.locator(".charts > section").first().getAttribute("data-metric");
  await midway(first, 'tr[data-metric="training/norm"] input', "refused");
  await tab.click('[data-focus="axis-time"]');
  await seen('[data-focus="axis-time"][aria-pressed="true"]');
  await soon(async () => assert.match(await text("main"), /as of before|cannot answer now/));
  assert.ok(await tab.evaluate(() => window.wasMidway));
  await soon(async () => assert.equal(await count('[aria-busy="true"]'), 0));
  assert.ok(await tab.locator(".charts").isVisible(), "what is asked for of them is there");
  const words = await places();
  assert.ok(words.every((one) => /^since start /.test(one)), JSON.stringify(words));
});

test("system metrics that a zoom finds half drawn are of one axis until it is answered", async () => {
  await open(metricsHash(ids[0]), 3);
  const first = await tab.locator(".charts > section").first().getAttribute("data-metric");
  await midway(first, 'button[aria-label="Zoom in"]', "none");
  await tab.click('[data-focus="axis-time"]');
  await soon(async () => assert.ok(await tab.evaluate(() => window.wasMidway)));
  await seen('[aria-busy="true"]');
  await soon(async () => {
    const words = await places();
    assert.ok(words.every((one) => / UTC/.test(one)), JSON.stringify(words));
    assert.match(await text("[data-range]"), / UTC/);
  }, 10_000);
});

test("keys in a chart that is still of batches move nothing once time is asked for", async () => {
  await open(metricsHash(ids[1]), 3);
  const first = await tab.locator(".charts > section").first().getAttribute("data-metric");
  await midway(first, ".charts > section:nth-of-type(3) .chart-canvas", "all", "+");
  await tab.click('[data-focus="axis-time"]');
  await soon(async () => assert.ok(await tab.evaluate(() => window.wasMidway)));
  await soon(async () => assert.match(await text("[data-range]"), / UTC/));
  assert.ok(!/from=/.test(tab.url()), tab.url());
});

test("what is saved of half-drawn system metrics is all of one axis", async () => {
  for (const [button, shows] of [["png", /^stepwell-trial-\d+-metrics\.png$/], ["csv", /^stepwell-trial-\d+-metrics\.csv$/]]) {
    await open(metricsHash(ids[0]), 3);
    const first = await tab.locator(".charts > section").first().getAttribute("data-metric");
    await midway(first, `[data-focus="${button}"]`, "all");
    const [file] = await Promise.all([tab.waitForEvent("download"), tab.click('[data-focus="axis-time"]')]);
    assert.match(file.suggestedFilename(), shows);
    assert.equal(await tab.evaluate(() => window.undrawn), 0, button);
    await soon(async () => assert.equal(await count('[aria-busy="true"]'), 0));
    const bytes = readFileSync(await file.path());
    if (button === "csv") {
      assert.match(bytes.toString("utf8"), /^[^\r]*,bucket_start,/);
      continue;
    }
    // As it is at rest: each chart is painted.
    const color = await tab.locator(".charts .swatch").first().evaluate((one) => getComputedStyle(one).borderTopColor);
    const after = await saved('[data-focus="png"]');
    const lines = [await pixelsOf(bytes, [color]), await pixelsOf(after.bytes, [color])].map(({ counts: [lit] }) => lit);
    assert.ok(lines[1] > 1000 && Math.abs(lines[0] - lines[1]) < lines[1] / 10, `${lines}`);
  }
});

test("what was dragged over, or zoomed by keys, in a heat map of the time before its batches came moves nothing", async () => {
  const hash = `#/trial/${ids[0]}/heat`;
  for (const key of [null, "+", "PageDown"]) {
    await show("#/trials");
    await seen("tbody tr");
    await show(hash);
    await seen(cells);
    await soon(async () => assert.equal(await count('[aria-busy="true"]'), 0));
    const routes = [];
    await tab.route("**/stepwell.v1.QueryService/QueryBuckets", (route) => void routes.push(route));
    await tab.click('[data-focus="axis-batch"]');
    await soon(() => assert.ok(routes.length > 0));
    await tab.locator(cells).scrollIntoViewIfNeeded();
    const { x, y, width, height } = await tab.locator(cells).boundingBox();
    await tab.mouse.move(x + width * 0.25, y + height / 2);
    await tab.mouse.down();
    await tab.mouse.move(x + width * 0.75, y + height / 2, { steps: 4 });
    await tab.unrouteAll({ behavior: "ignoreErrors" });
    for (const route of routes) await route.continue().catch(() => undefined);
    await soon(async () => assert.equal(await count('[aria-busy="true"]'), 0));
    if (key !== null) {
      await tab.keyboard.press(key);
      assert.ok(!/from=/.test(tab.url()), `${key}: ${tab.url()}`);
    }
    await tab.mouse.up();
    await soon(async () => assert.match(await text(".heat .chart-place"), /, batch(es)? /));
    assert.ok(!/from=/.test(tab.url()), tab.url());
    // The map goes on: of its own axis.
    await tab.locator(cells).press("+");
    await soon(() => assert.match(tab.url(), /axis=batch&from=\d{1,3}&to=\d{1,3}$/));
  }
});

test("nothing went wrong in the page, and nothing was asked of others", () => {
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
