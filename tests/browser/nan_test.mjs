// A loss that became NaN, a metric that went to infinity: seen at a glance, wherever a person looks.
//
//   STEPWELL_BROWSER_TEST=BIN-FOLDER:PAGE-FOLDER:PLAYWRIGHT:CHROMIUM:RECORDER-LIBRARY node --test nan_test.mjs
import assert from "node:assert/strict";
import { before, beforeEach, test } from "node:test";
import { decode, encode, RawWriters } from "./raw_writer.mjs";
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
/** One of two ranks is spoilt. */
const ofRank = (rank) => ({ loss: (tick) => (rank === 1 && tick >= 60 ? NaN : falling(tick)), vast: (tick) => (tick < 60 ? 1e307 : 1e308), mixed: (tick) => (tick >= 60 ? [NaN, Infinity][rank] : tick) });
let [spoilt, sound, ranks] = [];

before(async () => {
  await stand.startMaster();
  const raw = new RawWriters(stand.ports.grpc);
  spoilt = await raw.write({ trial: "spoilt", rank: 0, ...clock, series: series(metrics) });
  sound = await raw.write({ trial: "sound", rank: 0, ...clock, series: series(Object.fromEntries(Object.keys(metrics).map((name) => [name, falling]))) });
  for (const rank of [0, 1]) ranks = await raw.write({ trial: "ranks", rank, ...clock, series: series(ofRank(rank)) });
  raw.close();
  await openTab(stand);
  // What is written into pictures: the words, from where to where they reach, and how wide there is room.
  await tab.addInitScript(() => {
    const { fillText } = CanvasRenderingContext2D.prototype;
    window.written = [];
    CanvasRenderingContext2D.prototype.fillText = function (words, left, top, ...more) {
      const wide = this.measureText(words).width * (this.textAlign === "right" ? -1 : 1);
      window.written.push({ words, left: Math.min(left, left + wide), right: Math.max(left, left + wide), top, room: this.canvas.width / this.getTransform().a });
      return fillText.call(this, words, left, top, ...more);
    };
  });
  await tab.goto(stand.url);
}, { timeout: 4 * deadlineMs });

// Whatever a test before has left.
beforeEach(() => tab.unrouteAll({ behavior: "ignoreErrors" }));
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
  const wide = (await tab.locator(`${card("lost")} .u-over`).boundingBox()).width;
  await soon(async () => {
    const [half, all, none] = [await strip("lost"), await strip("never"), await strip("loss")];
    assert.ok(half > 1.6 * wide && half < 2.6 * wide && all > 3.6 * wide && none === 0, JSON.stringify({ wide, half, all, none }));
  });
});

/** Pixels of a chart in the colour of what is bad: a strip of four for each along which its line has no number. */
async function strip(name) {
  const bad = await tab.evaluate((selector) => getComputedStyle(document.querySelector(selector)).color, ".odd-note");
  return (await pixelsOf(await tab.locator(`${card(name)} .chart-canvas`).screenshot(), [bad], 8)).counts[0];
}

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

test("of several lines it is told first which have NaN, for these are counted", async () => {
  await show(`#/trial/${ranks}/metrics?axis=batch&lines=each&m=training%2Floss&m=training%2Fmixed`);
  await soon(async () => assert.equal((await told("loss"))[1], "rank=1: 60 of 120 samples are NaN"));
  assert.equal((await told("mixed"))[1], "rank=0, rank=1: 60 of 240 samples are NaN; some are +infinity");
  assert.match(await tab.getAttribute(`${card("loss")} .chart-canvas`, "aria-label"), /rank=1: 60 of 120 samples are NaN\. /);
  // One is NaN where the other is infinite: neither of the words is written on the other.
  await show(`#/trial/${ranks}/metrics?axis=batch&lines=each&m=training%2Fmixed`);
  await until("one chart", async () => (await count(".charts canvas")) === 1);
  await tab.evaluate(() => { window.written = []; });
  await tab.click(".top > button"); // Which draws it anew.
  const written = await until("words", () => tab.evaluate(() => window.written.length > 0 && window.written.filter(({ words }) => /NaN|∞/.test(words))));
  const [nan, infinite] = ["NaN", "+∞"].map((words) => written.findLast((one) => one.words === words));
  assert.ok(nan.left === infinite.left && infinite.top - nan.top >= 11, JSON.stringify(written));
  await tab.click(".top > button");
});

test("finite samples whose mean overflows are told as such, in a chart, a heat map and a comparison", async () => {
  const words = "ome means overflow: sums of samples beyond what a number holds";
  // As a master says it that has summed stretches of samples, one to infinity and one to minus infinity: such a mean is no number.
  const sum = (side) => side.means.forEach((mean, at) => { if (side.maxs[at] >= 1e308) side.means[at] = NaN; });
  const summed = (name, sides) => tab.route(`**/stepwell.v1.QueryService/${name}`, async (route) => {
    const response = await route.fetch();
    const answer = decode(`${name}Response`, await response.body());
    for (const side of sides(answer)) sum(side);
    await route.fulfill({ response, body: Buffer.from(encode(`${name}Response`, answer)) });
  });
  await summed("QueryBuckets", (answer) => answer.series);
  await summed("CompareTrials", (answer) => answer.series.flatMap(({ sides }) => {
    for (const side of sides) if (side.max >= 1e308) side.mean = NaN;
    return sides;
  }));
  await show(`#/trial/${ranks}/metrics?axis=batch&lines=one&m=training%2Fvast`);
  await soon(async () => assert.deepEqual(await told("vast"), ["overflow (1e+308)", `S${words}`]));
  const wide = (await tab.locator(`${card("vast")} .u-over`).boundingBox()).width;
  await soon(async () => assert.ok((await strip("vast")) > 1.6 * wide, JSON.stringify([await strip("vast"), wide])));
  await show(`#/compare?t=${ranks}&t=${sound}&m=training%2Fvast`);
  await soon(async () => assert.deepEqual(await told("vast"), ["overflow (1e+308)", `ranks: s${words}`]));
  assert.equal((await tab.locator('tr[data-metric="training/vast"] td.number').first().innerText()).trim(), "overflow");
  await tab.setViewportSize({ width: 360, height: 900 });
  await show(`#/trial/${ranks}/heat?axis=batch&m=training%2Fvast`);
  await soon(async () => assert.equal(await flat(".heat .odd-note"), `Striped cells: s${words}`));
  await tab.locator(".heat canvas[tabindex]").focus();
  for (let at = 0; at < ticks; ++at) await tab.keyboard.press("ArrowRight");
  await soon(async () => assert.match(await text(".heat .chart-place"), /^rank 0, batches 118 to 119: overflow$/));
  await tab.setViewportSize({ width: 1280, height: 900 });
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
  // Its picture tells it, too, all of it.
  await tab.click("[data-focus=fold]");
  await tab.evaluate(() => { window.written = []; });
  await saved('button:has-text("PNG")');
  const written = (await tab.evaluate(() => window.written)).filter(({ words }) => words !== "");
  assert.match(written.map(({ words }) => words).join(" "), /striped: 60 of 120 samples are NaN/);
  assert.deepEqual(written.filter(({ left, right, room }) => left < 0 || right > room + 1), []);
  await tab.setViewportSize({ width: 1280, height: 900 });
  await show(`#/trial/${spoilt}/heat?axis=batch&m=training%2Floss`);
  await until("no stripes", async () => (await count(".heat .odd-note:visible")) === 0);
});

test("the mark of the first cell is whole", async () => {
  await show(`#/trial/${spoilt}/heat?axis=batch&m=training%2Floss`);
  await seen(".heat-mark");
  await tab.locator(".heat canvas[tabindex]").focus();
  for (let at = 0; at < ticks; ++at) await tab.keyboard.press("ArrowLeft");
  await soon(async () => assert.match(await text(".heat .chart-place"), /^rank 0, batch 0: /));
  await tab.mouse.move(0, 0);
  await tab.locator(".heat-cells").scrollIntoViewIfNeeded();
  const { x, y, height } = await tab.locator(".heat-cells").boundingBox();
  // Its black rim lies around the map, two pixels wide: at the left as long as that is high.
  const dark = async (clip) => (await pixelsOf(await tab.screenshot({ clip }), ["rgb(0, 0, 0)"], 8)).counts[0];
  const beside = await dark({ x: Math.round(x) - 3, y: Math.round(y), width: 3, height: Math.round(height) });
  const above = await dark({ x: Math.round(x), y: Math.round(y) - 3, width: 6, height: 3 });
  assert.ok(beside > 1.8 * height && above >= 9, JSON.stringify({ beside, above, height }));
});

test("a comparison says how many samples of a side are NaN, in its table and its charts", async () => {
  await show(`#/compare?t=${sound}&t=${spoilt}&m=training%2Flost&m=training%2Fnever`);
  const cells = async (name) => (await tab.locator(`tr[data-metric="training/${name}"] td.number`).allInnerTexts()).map((one) => one.replace(/\s+/g, " ").trim());
  await soon(async () => assert.deepEqual(Object.fromEntries(await Promise.all(Object.keys(metrics).map(async (name) => [name, await cells(name)]))), {
    lost: ["0.7025", "0.8525 +21 % 60 of 120 are NaN"], diverged: ["0.7025", "+infinity"], half: ["0.7025", "5 7.1× 60 of 120 are NaN"],
    never: ["0.7025", "NaN 120 of 120 are NaN"], loss: ["0.7025", "0.7025 same"],
  }));
  await soon(async () => assert.equal(await flat(`${card("lost")} .odd-note`), "spoilt: 60 of 120 samples are NaN"));
  assert.deepEqual((await tab.locator(`${card("lost")} .legend-value`).allInnerTexts()).map((one) => one.trim()), ["0.405", "NaN"]);
  assert.deepEqual((await tab.locator(`${card("never")} .legend-value`).allInnerTexts()).map((one) => one.trim()), ["0.405", "NaN"]);
  // And where they are, as in any chart.
  const wide = (await tab.locator(`${card("lost")} .u-over`).boundingBox()).width;
  await soon(async () => {
    const [half, all] = [await strip("lost"), await strip("never")];
    assert.ok(half > 1.6 * wide && half < 2.6 * wide && all > 3.6 * wide, JSON.stringify({ wide, half, all }));
  });
  await tab.locator(`${card("lost")} .chart-canvas`).focus();
  for (const [key, place, values] of [["ArrowRight", /^batch (6\d|7\d)$/, /^0\.[67]\d+,NaN$/], ["ArrowLeft", /^batch 5\d$/, /^0\.7\d+,0\.7\d+$/]]) {
    await until(`${place}: ${values}`, async () => {
      await tab.keyboard.press(key);
      return place.test(await flat(`${card("lost")} .chart-place`)) && values.test((await tab.locator(`${card("lost")} .legend-value`).allInnerTexts()).map((one) => one.trim()).join());
    });
  }
  const [head, ...lines] = (await saved('button:text-is("CSV")')).bytes.toString().trim().split("\r\n").map((line) => line.split(","));
  const of = (name, column) => lines.find((line) => line[1] === name && line[4] === "spoilt")?.[head.indexOf(column)];
  assert.deepEqual(["lost", "never", "loss"].map((name) => [of(name, "samples"), of(name, "nan")]), [["60", "60"], ["0", "120"], ["120", "0"]]);
});

test("nobody is kept out, nothing went wrong in the page, and nothing was asked of others", async () => {
  assert.deepEqual(await graveFindings(), []);
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
