// A loss that became NaN, a metric that went to infinity: seen at a glance, wherever a person looks.
//
//   STEPWELL_BROWSER_TEST=BIN-FOLDER:PAGE-FOLDER:PLAYWRIGHT:CHROMIUM:RECORDER-LIBRARY node --test nan_test.mjs
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { RawWriters } from "./raw_writer.mjs";
import { deadlineMs, soon, Stand, until } from "./stand.mjs";
import { bin, closesAtEnd, count, foreign, graveFindings, openTab, page, pixelsOf, saved, seen, show, tab, text, troubles } from "./tab.mjs";

const stand = new Stand(bin, page);
const ticks = 120;
const clock = { startUs: (Math.floor(Date.now() / 1000) - ticks - 10) * 1e6, stepUs: 1_000_000, ticks, firstBatch: 0 };
const falling = (tick) => 1 - tick / 200;
const metrics = {
  lost: (tick) => (tick < 60 ? falling(tick) : NaN), diverged: (tick) => (tick < 60 ? tick : Infinity),
  half: (tick) => (tick % 2 === 0 ? 5 : NaN), never: () => NaN, loss: falling,
};
const series = (of) => Object.entries(of).map(([name, value]) => ({ group: "training", name, value }));
let [spoilt, sound] = [];

before(async () => {
  await stand.startMaster();
  const raw = new RawWriters(stand.ports.grpc);
  spoilt = await raw.write({ trial: "spoilt", rank: 0, ...clock, series: series(metrics) });
  sound = await raw.write({ trial: "sound", rank: 0, ...clock, series: series(Object.fromEntries(Object.keys(metrics).map((name) => [name, falling]))) });
  raw.close();
  await openTab(stand);
  await tab.goto(stand.url);
}, { timeout: 4 * deadlineMs });

closesAtEnd(stand);

const card = (name) => `.charts [data-metric="training/${name}"]`;
const flat = async (selector) => (await text(selector)).replace(/\s+/g, " ").trim();
/** What a chart says at rest, and what of its samples is told above it; "" = nothing. */
const told = async (name) => [
  await flat(`${card(name)} .legend-value`),
  await count(`${card(name)} .odd-note:visible`) === 0 ? "" : await flat(`${card(name)} .odd-note`),
];

test("a chart's newest value is what came last, and its card says how many samples are NaN", async () => {
  await show(`#/trial/${spoilt}/metrics?${Object.keys(metrics).map((name) => `m=training%2F${name}`).join("&")}`);
  await seen(`${card("never")} canvas`);
  await soon(async () => assert.deepEqual(Object.fromEntries(await Promise.all(Object.keys(metrics).map(async (name) => [name, await told(name)]))), {
    lost: ["NaN", "60 of 120 samples are NaN"], diverged: ["+infinity", "Some samples are +infinity"], half: ["NaN", "60 of 120 samples are NaN"],
    never: ["NaN", "All 120 samples are NaN"], loss: ["0.405", ""],
  }));
  assert.match(await tab.getAttribute(`${card("lost")} .chart-canvas`, "aria-label"), /60 of 120 samples are NaN\. /);
  // A strip along the half that is lost, in the colour of what is bad; nothing of it where all is well.
  const bad = await tab.evaluate((selector) => getComputedStyle(document.querySelector(selector)).color, `${card("lost")} .odd-note`);
  const strip = async (name) => (await pixelsOf(await tab.locator(`${card(name)} .chart-canvas`).screenshot(), [bad], 8)).counts[0];
  const wide = (await tab.locator(`${card("lost")} .u-over`).boundingBox()).width;
  await soon(async () => {
    const [half, all, none] = [await strip("lost"), await strip("never"), await strip("loss")];
    assert.ok(half > 1.6 * wide && half < 2.6 * wide && all > 3.6 * wide && none === 0, JSON.stringify({ wide, half, all, none }));
  });
});

test("a cursor says what it is on, number or not", async () => {
  await show(`#/trial/${spoilt}/metrics?axis=batch&m=training%2Flost`);
  await tab.locator(`${card("lost")} .chart-canvas`).focus();
  for (const [key, place, value] of [["ArrowRight", /^batch (6\d|7\d)$/, /^NaN$/], ["ArrowLeft", /^batch 5\d$/, /^0\.7\d+$/]]) {
    await until(`${place}: ${value}`, async () => {
      await tab.keyboard.press(key);
      return place.test(await flat(`${card("lost")} .chart-place`)) && value.test(await flat(`${card("lost")} .legend-value`));
    });
  }
});

test("a CSV has the NaN of each bucket", async () => {
  await show(`#/trial/${spoilt}/metrics?axis=batch&m=training%2Flost`);
  await seen(`${card("lost")} .odd-note`);
  const [head, ...lines] = (await saved('button:text-is("CSV")')).bytes.toString().trim().split("\r\n").map((line) => line.split(","));
  const sum = (name) => lines.reduce((all, line) => all + Number(line[head.indexOf(name)]), 0);
  assert.deepEqual([sum("samples"), sum("nan")], [60, 60]);
});

test("a heat map has stripes where samples are NaN, also where all are, and says so of a cell", async () => {
  const words = ".heat .chart-place";
  await show(`#/trial/${spoilt}/heat?axis=batch&m=training%2Flost`);
  await seen(".heat canvas[tabindex]");
  await soon(async () => assert.equal(await flat(".heat .odd-note"), "Striped cells: 60 of 120 samples are NaN"));
  await tab.locator(".heat canvas[tabindex]").focus();
  assert.match(await text(words), /^rank 0, batch 0: 1$/);
  const striped = async () => (await pixelsOf(await tab.locator(".heat-cells").screenshot(), ["rgb(196, 22, 28)"], 10)).counts[0];
  const { width, height } = await tab.locator(".heat-cells").boundingBox();
  await soon(async () => assert.ok((await striped()) > 0.1 * width * height && (await striped()) < 0.4 * width * height, JSON.stringify([await striped(), width, height])));
  for (let at = 0; at < ticks; ++at) await tab.keyboard.press("ArrowRight");
  await soon(async () => assert.match(await text(words), /^rank 0, batch 119: NaN$/));
  await show(`#/trial/${spoilt}/heat?axis=batch&m=training%2Fnever`);
  await soon(async () => assert.equal(await flat(".heat .odd-note"), "Striped cells: all 120 samples are NaN"));
  assert.match(await flat(".heat-scale"), /^no finite values$/);
  await show(`#/trial/${spoilt}/heat?axis=batch&m=training%2Fdiverged`);
  await soon(async () => assert.match(await text(words), /^rank 0, batch 119: \+infinity$/));
  // Two samples in a cell, one of them a number.
  await tab.setViewportSize({ width: 360, height: 900 });
  await show(`#/trial/${spoilt}/heat?axis=batch&m=training%2Fhalf`);
  await soon(async () => assert.match(await text(words), /^rank 0, batches 118 to 119: 5, 1 of 2 samples is NaN$/));
  await tab.setViewportSize({ width: 1280, height: 900 });
  await show(`#/trial/${spoilt}/heat?axis=batch&m=training%2Floss`);
  await until("no stripes", async () => (await count(".heat .odd-note:visible")) === 0);
});

test("a comparison says how many samples of a side are NaN, in its table and its charts", async () => {
  await show(`#/compare?t=${sound}&t=${spoilt}&m=training%2Flost&m=training%2Fnever`);
  const cells = async (name) => (await tab.locator(`tr[data-metric="training/${name}"] td.number`).allInnerTexts()).map((one) => one.replace(/\s+/g, " ").trim());
  await soon(async () => assert.deepEqual(Object.fromEntries(await Promise.all(Object.keys(metrics).map(async (name) => [name, await cells(name)]))), {
    lost: ["0.7025", "0.8525 +21 % 60 of 120 are NaN"], diverged: ["0.7025", "+infinity"], half: ["0.7025", "5 7.1× 60 of 120 are NaN"],
    never: ["0.7025", "NaN 120 of 120 are NaN"], loss: ["0.7025", "0.7025 same"],
  }));
  await soon(async () => assert.equal(await flat(`${card("lost")} .odd-note`), "60 of 120 samples are NaN: spoilt"));
  assert.deepEqual((await tab.locator(`${card("lost")} .legend-value`).allInnerTexts()).map((one) => one.trim()), ["0.405", "0.705 (60 of 120 are NaN)"]);
  assert.deepEqual((await tab.locator(`${card("never")} .legend-value`).allInnerTexts()).map((one) => one.trim()), ["0.405", "NaN (120 of 120 are NaN)"]);
  const [head, ...lines] = (await saved('button:text-is("CSV")')).bytes.toString().trim().split("\r\n").map((line) => line.split(","));
  const of = (name, column) => lines.find((line) => line[1] === name && line[4] === "spoilt")?.[head.indexOf(column)];
  assert.deepEqual(["lost", "never", "loss"].map((name) => [of(name, "samples"), of(name, "nan")]), [["60", "60"], ["0", "120"], ["120", "0"]]);
});

test("nobody is kept out, nothing went wrong in the page, and nothing was asked of others", async () => {
  assert.deepEqual(await graveFindings(), []);
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
