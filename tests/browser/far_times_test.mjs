// Trials whose clocks were wrong by millennia, on every page in a real browser: each says so, and none hangs its tab.
//
//   STEPWELL_BROWSER_TEST=BIN-FOLDER:PAGE-FOLDER:PLAYWRIGHT:CHROMIUM:RECORDER-LIBRARY node --test far_times_test.mjs
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { causes, duration, RawWriters } from "./raw_writer.mjs";
import { deadlineMs, soon, Stand } from "./stand.mjs";
import { bin, closesAtEnd, count, foreign, loaded, openTab, page, seen, show, tab, text, troubles } from "./tab.mjs";

const stand = new Stand(bin, page);
const ticks = 40;
/** From when on, and whether it runs still; "late" is of a year with four digits, too late for its length. */
const clocks = {
  far: { startUs: 9_200_000_000_000_000_000n },
  last: { startUs: 9_223_372_036_854_770_000n },
  runs: { startUs: 9_223_372_036_854_770_000n, open: true },
  late: { startUs: BigInt(Date.UTC(9000, 0, 1)) * 1000n },
};
const ids = {};
const title = ".state-title";
const far = "Times too far off to be drawn";

async function writeAll() {
  const raw = new RawWriters(stand.ports.grpc);
  for (const [trial, clock] of Object.entries({ ...clocks, today: { startUs: BigInt(Date.now() - 60_000) * 1000n } })) {
    for (const rank of [0, 1]) {
      ids[trial] = await raw.write({ trial, rank, stepUs: 100, ticks, firstBatch: 0, ...clock, series: [
        { group: "timing", name: "step", unit: "seconds", kind: duration, value: () => 0.0001 },
        { group: "training", name: "loss", value: (tick) => 1 / (1 + tick) },
      ] });
    }
    await raw.write({
      trial, agent: "node-1", stepUs: 100, ticks, ...clock, series: [{ group: "cpu", name: "cpu_util_simple", unit: "percent", value: () => 50 }],
      losses: [{ cause: causes.sensorFailed, metricGroup: "cpu", sampleCount: 1n, reason: "late", firstTimeUs: clock.startUs, lastTimeUs: clock.startUs + 100n }],
    });
  }
  raw.close();
}

before(async () => {
  await stand.startMaster();
  await writeAll();
  await openTab(stand);
  await tab.goto(stand.url);
}, { timeout: 4 * deadlineMs });

closesAtEnd(stand);

const every = Object.keys(clocks);

for (const trial of every) {
  test(`${trial}: charts and a heat map of the time say that these times are too far off, and go on by batch`, { timeout: 2 * deadlineMs }, async () => {
    for (const [name, drawn] of [["metrics", ".chart-canvas canvas:visible"], ["heat", ".heat canvas[tabindex]:visible"]]) {
      await show(`#/trial/${ids[trial]}/${name}`);
      await seen(`[data-absence="failed"]:has-text("${far}"):has-text("stepwell read id:${ids[trial]}")`);
      await loaded(name);
      await soon(async () => assert.deepEqual(new Set(await tab.locator(title).allInnerTexts()), new Set([far])));
      assert.equal(await count(drawn), 0);
      await tab.click('.state-actions button:text-is("Batch")');
      await seen(drawn);
      assert.match(tab.url(), /axis=batch/);
    }
    // Of a running one: the last of what there is.
    await show(`#/trial/${ids[trial]}/heat?live=300000000`);
    await soon(async () => assert.equal(await text(title), far));
  });

  test(`${trial}: its other pages are there`, { timeout: 2 * deadlineMs }, async () => {
    await show(`#/trial/${ids[trial]}/timings`);
    await seen(".chart-canvas canvas:visible");
    await show(`#/trial/${ids[trial]}/completeness`);
    await seen(trial === "late" ? 'td:has-text("9000-01-01 00:00:00")' : 'td:has-text("an absurd time")');
    await show(`#/trial/${ids[trial]}/traces`);
    await loaded("traces");
    await show("#/trials");
    await seen(`tr:has-text("${trial}")`);
    for (const axis of ["time", "batch"]) {
      await show(`#/compare?t=${ids.today}&t=${ids[trial]}&axis=${axis}&m=training%2Floss`);
      await seen('section[data-metric="training/loss"] canvas:visible');
    }
  });
}

test("a link to times that nothing can be drawn of hangs no comparison, and says what it is", { timeout: 2 * deadlineMs }, async () => {
  await show(`#/compare?t=${ids.today}&t=${ids.far}&axis=time&m=training%2Floss&from=0&to=9223372036854775807`);
  await seen(`[data-absence="failed"]:has-text("${far}")`);
  await tab.click('.state-actions button:text-is("Batch")');
  await seen('section[data-metric="training/loss"] canvas:visible');
});

test("a link to batches beyond those that there can be is held to them", { timeout: 2 * deadlineMs }, async () => {
  for (const [hash, drawn] of [[`trial/${ids.today}/metrics?`, ".chart-canvas canvas:visible"], [`trial/${ids.today}/heat?`, ".heat canvas[tabindex]"], [`compare?t=${ids.today}&t=${ids.far}&`, "section[data-metric] canvas:visible"]]) {
    await show(`#/${hash}axis=batch&from=1&to=9999999999999998`);
    await seen(drawn);
    assert.equal(await count('[data-absence="failed"]'), 0, hash);
  }
});

test("a heat map of some microseconds has ticks that differ", { timeout: 2 * deadlineMs }, async () => {
  await show(`#/trial/${ids.today}/heat?m=training%2Floss`);
  await seen(".heat canvas[tabindex]:visible");
  await tab.locator(".heat canvas[tabindex]").focus();
  // To a millisecond, the narrowest stretch.
  await soon(async () => {
    await tab.keyboard.press("+");
    assert.match(await tab.locator("[data-range]").innerText(), /\(1\.00 ms\)/);
  });
  await soon(async () => {
    const ticks = await tab.locator(".heat-axis span").allInnerTexts();
    assert.ok(ticks.length >= 2 && ticks.every((one) => /^\d\d:\d\d:\d\d\.\d{6}$/.test(one)) && new Set(ticks).size === ticks.length, `${ticks}`);
  });
  const boxes = await tab.locator(".heat-axis span").evaluateAll((ticks) => ticks.map((tick) => tick.getBoundingClientRect()).map(({ left, right }) => [left, right]));
  for (const [at, [left]] of boxes.entries()) assert.ok(at === 0 || left > boxes[at - 1][1], JSON.stringify(boxes));
});

test("nothing went wrong in the page, and nothing was asked of others", () => {
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
