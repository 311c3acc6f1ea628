// Whether the page's numbers are those that were recorded: tables, charts, pictures, comparisons, what a cap would remove.
//
//   STEPWELL_BROWSER_TEST=BIN-FOLDER:PAGE-FOLDER:PLAYWRIGHT:CHROMIUM:RECORDER-LIBRARY node --test numbers_test.mjs
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { deadlineMs, Stand, until } from "./stand.mjs";
import { bin, closesAtEnd, count, foreign, openTab, page, pixelsOf, saved, seen, show, tab, text, troubles } from "./tab.mjs";
import { decode, duration, encode, RawWriters } from "./raw_writer.mjs";

const stand = new Stand(bin, page);
const ticks = 200;
const clock = { rank: 0, stepUs: 1_000_000, ticks, firstBatch: 0, startUs: (Math.floor(Date.now() / 1000) - ticks - 10) * 1e6 };
const timing = (name, value) => ({ group: "timing", name, unit: "seconds", kind: duration, value });
const ids = [];
/** Of which no two neighbours are alike. */
const spread = (tick) => (tick * 37) % 101;
const spreadTicks = 3000;
const spreadStartUs = (Math.floor(Date.now() / 1000) - spreadTicks - 10) * 1e6;
/** Means of what three trials are compared by, in percent. */
const byBatch = [10, 30, 20];
const byTime = [30, 20, 40];
const rates = [["1/s", 400], ["1/min", 30_000], ["1/s", 500]];
const unitIds = [];

before(async () => {
  await stand.startMaster();
  await openTab(stand);
  const raw = new RawWriters(stand.ports.grpc);
  // Fetching takes 1 ms, 2 ms, ... 200 ms; each step a second, half of it training.
  ids.push(await raw.write({ trial: "told", ...clock, series: [timing("step", () => 1), timing("dataloader_next", (tick) => (tick + 1) / 1000), timing("train_batch", () => 0.5)] }));
  for (const [at, percent] of byBatch.entries()) {
    const cpu = (value) => ({ group: "cpu", name: "cpu_util_simple", unit: "percent", value: () => value });
    const began = { trial: `side-${at}`, ...clock, startUs: clock.startUs - at * 3_600e6 };
    ids.push(await raw.write({ ...began, series: [cpu(percent), timing("step", () => 1)] }));
    // As many samples without a batch: they are there by time alone, and move its means.
    await raw.write({ ...began, rank: undefined, firstBatch: -1, series: [cpu(2 * byTime[at] - percent)] });
  }
  // Of a project of its own, whose cap is tighter than this trial's.
  ids.push(await raw.write({ trial: "wide", project: "tight", ...clock, series: [timing("step", () => 1), timing("train_batch", () => 0.5)] }));
  ids.push(await raw.write({ trial: "long", ...clock, ticks: 5001, stepUs: 20_000, series: [timing("step", () => 0.02), { group: "training", name: "loss", value: () => 1 }] }));
  ids.push(await raw.write({ trial: "spread", startUs: spreadStartUs, stepUs: 1_000_000, ticks: spreadTicks, series: [{ group: "cpu", name: "cpu_util_simple", unit: "percent", value: spread }] }));
  // One of three has its rate in another unit.
  for (const [at, [unit, rate]] of rates.entries()) {
    unitIds.push(await raw.write({ trial: `rate-${at}`, ...clock, series: [{ group: "training", name: "rate", unit, value: () => rate }, timing("step", () => 1 + at)] }));
  }
  // What lies between its steps takes nine times as long as they do.
  ids.push(await raw.write({ trial: "paused", ...clock, series: [timing("step", () => 0.1)] }));
  raw.close();
  await tab.goto(stand.url);
}, { timeout: 4 * deadlineMs });

closesAtEnd(stand);

test("the table of timings and its CSV say what was recorded, column by column", async () => {
  await show(`#/trial/${ids[0]}/timings`);
  const row = 'table[data-rank="0"] tr:has(td.name:has-text("dataloader_next"))';
  await seen(row);
  const heads = (await tab.locator('table[data-rank="0"] thead th').allInnerTexts()).map((head) => head.trim());
  const cells = (await tab.locator(`${row} > *`).allInnerTexts()).map((cell) => cell.trim());
  const told = Object.fromEntries(heads.map((head, at) => [head, cells[at]]));
  assert.equal(told["Share"], "10.1 %");
  assert.equal(told["Own time"], "20.1 s");
  assert.equal(told["Total"], "20.1 s");
  const milliseconds = (name) => Number(told[name].match(/^([\d.]+) ms$/)?.[1] ?? assert.fail(`${name}: ${told[name]}`));
  const near = (name, value, wanted, by) => assert.ok(Math.abs(value - wanted) <= by, `${name} is ${value}, not ${wanted}`);
  near("mean", milliseconds("Mean"), 100.5, 0.5);
  near("p50", milliseconds("p50"), 100.5, 1.5);
  near("p95", milliseconds("p95"), 190.5, 1.5);
  near("p99", milliseconds("p99"), 198.5, 1.5);
  assert.equal(told["Steps"], "200");
  assert.equal(told["Count"], "200");

  const lines = (await saved('button:has-text("CSV")')).bytes.toString().split("\r\n").map((line) => line.split(","));
  const line = Object.fromEntries(lines[0].map((name, at) => [name, lines.find((one) => one[1] === "dataloader_next")[at]]));
  const values = { share: [0.1005, 1e-6], self_seconds: [20.1, 1e-6], total_seconds: [20.1, 1e-6], mean_seconds: [0.1005, 1e-6],
    p50_seconds: [0.1005, 0.0015], p95_seconds: [0.1905, 0.0015], p99_seconds: [0.1985, 0.0015], max_seconds: [0.2, 1e-9], steps: [200, 0], count: [200, 0] };
  for (const [name, [wanted, by]] of Object.entries(values)) near(name, Number(line[name] ?? assert.fail(name)), wanted, by);
});

test("without a cursor the legends of a trial that has ended tell all its batches, as its table does", async () => {
  const shares = 'section[aria-label="Timings"] > section.panel:nth-of-type(1) figure';
  const share = async (name) => Number((await text(`${shares} .legend li:has(bdi:text-is("${name}"))`)).match(/([\d.]+) %/)[1]);
  await seen(`${shares} .legend li`);
  await until("what stands at rest", async () => (await text(`${shares} .chart-place`)) === "over all batches shown");
  // Of the newest bucket a fifth is fetching.
  assert.ok(Math.abs((await share("dataloader_next")) - 10.05) < 0.06, String(await share("dataloader_next")));
  assert.equal(await share("train_batch"), 50);
  // Of what the chart is zoomed to.
  await show(`#/trial/${ids[0]}/timings?axis=batch&from=150&to=200`);
  await until("the share of the last fifty", async () => Math.abs((await share("dataloader_next")) - 17.55) < 0.06);
  await tab.locator(`${shares} .chart-canvas`).focus();
  await tab.keyboard.press("ArrowRight");
  await until("a place", async () => /^batch 1\d\d$/.test(await text(`${shares} .chart-place`)));
});

test("the range is told to the last batch, not to the end of its bucket", async () => {
  // More batches than a chart has buckets.
  for (const where of [`#/trial/${ids[5]}/timings`, `#/trial/${ids[5]}/metrics?axis=batch&m=training%2Floss`, `#/trial/${ids[5]}/heat?axis=batch`]) {
    await show(where);
    await until(`the range of ${where}`, async () => (await count("[data-range]")) > 0 && (await text("[data-range]")) === "batches 0 to 5,000");
  }
});

test("steps per second are told as those of stepping, without what lies between steps", async () => {
  await show(`#/trial/${ids[7]}/timings`);
  const panel = '[data-metric="throughput"]';
  await seen('p:has-text("A step takes 100 ms on average")');
  assert.match((await text(`${panel} .legend`)).replace(/\s+/g, " ").trim(), /^steps per second of stepping 10(\.0+)? 1?\/s/);
  assert.equal(await text(`${panel} h2`), "Steps per second of stepping");
  assert.match(await text(`${panel} p`), /what lies between steps \(validation, checkpoints\) is not in it/);
  assert.match(await text('p:has-text("A step takes 100 ms")'), /, 10 steps per second of stepping, rank 0;/);
});

test("a picture has the lines that the chart has", async () => {
  await show(`#/trial/${ids[1]}/metrics`);
  await seen('.charts [data-metric="cpu/cpu_util_simple"] canvas, .charts canvas');
  const png = await saved('button:has-text("PNG")');
  const mark = await tab.locator(".charts .legend .swatch").first().evaluate((one) => getComputedStyle(one).borderTopColor);
  const { counts, width } = await pixelsOf(png.bytes, [mark]);
  // A line across the chart, and more than its mark in the legend.
  assert.ok(counts[0] > width / 2, JSON.stringify({ mark, counts, width }));
});

test("a picture that the browser cannot make is told, until one is saved", async () => {
  await show(`#/trial/${ids[1]}/metrics`);
  await seen('[data-focus="png"]:enabled');
  await tab.evaluate(() => {
    window.makesBlob = HTMLCanvasElement.prototype.toBlob;
    HTMLCanvasElement.prototype.toBlob = (done) => done(null);
  });
  for (let time = 0; time < 2; ++time) await tab.click('[data-focus="png"]');
  await seen('[data-unsaved]:has-text("could not make this picture")');
  assert.equal(await count("[data-unsaved]"), 1);
  await tab.evaluate(() => { HTMLCanvasElement.prototype.toBlob = window.makesBlob; });
  await saved('[data-focus="png"]');
  assert.equal(await count("[data-unsaved]"), 0);
});

test("a picture of timings has each layer as large as its share", async () => {
  await show(`#/trial/${ids[0]}/timings`);
  const legend = 'section[aria-label="Timings"] > section.panel:nth-of-type(1) .legend';
  await seen(`${legend} li >> nth=2`);
  const png = await saved('button:has-text("PNG")');
  const names = ["train_batch", "dataloader_next", "unaccounted"];
  const colors = await Promise.all(names.map((name) => tab.locator(`${legend} li:has(bdi:text-is("${name}")) .swatch`).evaluate((one) => getComputedStyle(one).backgroundColor)));
  const { counts, width } = await pixelsOf(png.bytes, colors, 12);
  const told = JSON.stringify({ names, colors, counts, width });
  assert.ok(counts[0] > width * 60, told);
  // Of all batches a half is training, a tenth fetching; where layers meet there is a line between them.
  for (const [at, share] of [[1, 0.1005 / 0.5], [2, 0.3995 / 0.5]]) assert.ok(Math.abs(counts[at] / counts[0] - share) < 0.05, told);
});

test("a picture of a heat map has its cells", async () => {
  await show(`#/trial/${ids[0]}/heat?axis=batch&m=timing%2Fdataloader_next`);
  const cells = ".heat canvas[tabindex]";
  await seen(cells);
  const onPage = () => tab.locator(cells).evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const counts = new Map();
    for (let at = 0; at < data.length; at += 4) {
      const color = `rgb(${data[at]}, ${data[at + 1]}, ${data[at + 2]})`;
      counts.set(color, (counts.get(color) ?? 0) + 1);
    }
    // In the picture a pixel of the canvas may be several high.
    return { colors: [...counts], lines: canvas.height, high: canvas.clientHeight };
  });
  // Each batch took longer than the one before it.
  const { colors, lines, high } = await until("cells of many colours", async () => {
    const found = await onPage();
    return found.colors.length > 50 && found;
  });
  const png = await saved('button:has-text("PNG")');
  const { counts } = await pixelsOf(png.bytes, colors.map(([color]) => color), 0);
  colors.forEach(([color, count], at) => {
    const wanted = (count / lines) * high;
    assert.ok(counts[at] >= wanted * 0.9, `${color}: ${counts[at]} of ${wanted}`);
  });
});

test("a picture of a comparison has a line for each trial", async () => {
  await show(`#/compare?t=${ids[1]}&t=${ids[2]}&t=${ids[3]}&m=${encodeURIComponent("cpu/cpu_util_simple")}`);
  const swatches = '.charts [data-metric="cpu/cpu_util_simple"] .legend .swatch';
  await seen(`${swatches} >> nth=2`);
  const png = await saved('button:text-is("PNG")');
  const colors = await tab.locator(swatches).evaluateAll((all) => all.map((one) => getComputedStyle(one).borderTopColor));
  assert.equal(new Set(colors).size, 3);
  const { counts, width } = await pixelsOf(png.bytes, colors, 30);
  for (const found of counts) assert.ok(found > width / 2, JSON.stringify({ colors, counts, width }));
});

test("the CSV of system metrics says what each bucket holds: the least, the most, the mean, the last and how many", async () => {
  await show(`#/trial/${ids[6]}/metrics`);
  await seen('.charts [data-metric="cpu/cpu_util_simple"] canvas');
  const [head, ...lines] = (await saved('button:text-is("CSV")')).bytes.toString().trim().split("\r\n").map((line) => line.split(","));
  const of = (cells, name) => cells[head.indexOf(name)];
  const microseconds = (cells) => Date.parse(`${of(cells, "bucket_start").slice(0, 19)}Z`) * 1000 + Number(of(cells, "bucket_start").slice(20, 26));
  assert.ok(lines.length > 100, String(lines.length));
  const wide = microseconds(lines[1]) - microseconds(lines[0]);
  assert.ok(wide > 1_500_000, "several samples in a bucket");
  let seenTicks = 0;
  for (const cells of lines) {
    const start = microseconds(cells);
    const held = Array.from({ length: spreadTicks }, (_, tick) => tick).filter((tick) => {
      const at = spreadStartUs + tick * 1_000_000;
      return at >= start && at < start + wide;
    }).map(spread);
    const wanted = { min: Math.min(...held), max: Math.max(...held), mean: held.reduce((sum, one) => sum + one, 0) / held.length, last: held.at(-1), samples: held.length };
    for (const [name, value] of Object.entries(wanted)) assert.ok(Math.abs(Number(of(cells, name)) - value) < 1e-9, `${name} of ${cells.join()}: wanted ${value}`);
    seenTicks += held.length;
  }
  assert.equal(seenTicks, spreadTicks);
});

test("three trials are compared by batch, and by time since each one's start", async () => {
  await show(`#/compare?t=${ids[1]}&t=${ids[2]}&t=${ids[3]}`);
  const row = 'tr:has(td.name:has-text("cpu_util_simple"))';
  const percents = async (selector) => (await tab.locator(selector).allInnerTexts()).map((cell) => Number(cell.match(/(\d+(\.\d+)?)\s%/)?.[1]));
  const told = (what, selector, wanted) => until(what, async () => JSON.stringify(await percents(selector)) === JSON.stringify(wanted));
  await told("means by batch", `${row} td.number`, byBatch);
  await tab.click('button:has-text("By time since start")');
  await until("the axis in the address", () => tab.evaluate(() => location.hash.includes("axis=time")));
  await told("means by time", `${row} td.number`, byTime);
  await tab.locator(`${row} input`).check();
  const chart = '.charts section[data-metric="cpu/cpu_util_simple"]';
  // Hours apart, and side by side: the range is that of one.
  await told("the ends of the lines", `${chart} .legend li`, byTime);
  const place = tab.locator(`${chart} .u-over`);
  await place.scrollIntoViewIfNeeded();
  const { width, height } = await place.boundingBox();
  await place.hover({ position: { x: width / 2, y: height / 2 } });
  await until("seconds since start", async () => {
    const [, minutes, seconds] = (await text(`${chart} .chart-place`)).match(/^since start (\d+):(\d\d\.\d) min/) ?? [];
    return Math.abs(60 * Number(minutes) + Number(seconds) - ticks / 2) < 5;
  });
  await tab.mouse.move(0, 0);
  await tab.click('button:has-text("By batch")');
  await told("means by batch again", `${row} td.number`, byBatch);
  await told("the ends of the lines by batch", `${chart} .legend li`, byBatch);
});

test("of three trials one with another unit has its values in that, no change and no line; the others are compared", async () => {
  await show(`#/compare?t=${unitIds.join("&t=")}&m=training%2Frate`);
  const cell = (metric, at) => `tr[data-metric="${metric}"] td.number >> nth=${at}`;
  const chart = '.charts section[data-metric="training/rate"]';
  await seen(`${chart} .legend .swatch >> nth=1`);
  assert.deepEqual(await Promise.all([0, 1, 2].map((at) => text(cell("training/rate", at)))), ["400 /s", "30,000 /min unit differs", "500 /s +25 %"]);
  assert.equal(await tab.getAttribute(`${cell("training/rate", 1)} >> .muted`, "title"), "Unit: 1/min. The first trial's: 1/s.");
  assert.equal(await text(cell("timing/step", 1)), "2.00 s 2.0× slower", "what has one unit is compared");
  assert.equal(await text(`${chart} [data-left-out]`), "Not drawn, for the axis is of another unit (1/s): rate-1 (1/min).");
  assert.deepEqual((await tab.locator(`${chart} .legend li`).allInnerTexts()).map((item) => item.replace(/\s+/g, " ").trim()), ["rate-0 400 /s", "rate-2 500 /s"]);
  // A line has the colour that its trial has in the list, whoever is left out before it.
  const colors = (selector) => tab.locator(selector).evaluateAll((all) => all.map((one) => getComputedStyle(one).borderTopColor));
  const listed = await colors(".compared .swatch");
  assert.equal(new Set(listed).size, 3);
  assert.deepEqual(await colors(`${chart} .legend .swatch`), [listed[0], listed[2]]);
  const { counts } = await pixelsOf((await saved('button:text-is("PNG")')).bytes, listed, 0);
  assert.ok(counts[0] > 40 && counts[2] > 40 && counts[1] === 0, String(counts));
  const rows = (await saved('button:text-is("CSV")')).bytes.toString().split("\r\n").filter((line) => line.startsWith("training,rate,"));
  assert.deepEqual(rows.map((line) => line.split(",")).map((cells) => [cells[3], cells[4], ...cells.slice(-2)]), [["1/s", "rate-0", "", ""], ["1/min", "rate-1", "", ""], ["1/s", "rate-2", "100", "1.25"]]);
  await tab.click('.compared li:has-text("rate-1") button:text-is("Make first")');
  await until("the others differ", async () => (await text(cell("training/rate", 1))) === "400 /s unit differs" && (await text(cell("training/rate", 2))) === "500 /s unit differs");
  assert.equal(await text(`${chart} [data-left-out]`), "Not drawn, for the axis is of another unit (1/min): rate-0 (1/s), rate-2 (1/s).");
});

test("the table of timings is ordered by a press of a column's head, by the pointer or by keys, and a link keeps the order", async () => {
  await show(`#/trial/${ids[0]}/timings`);
  const table = 'table[data-rank="0"]';
  const order = async () => (await tab.locator(`${table} tbody td.name`).allInnerTexts()).map((name) => name.trim()).join(" ");
  const isOrdered = (by, wanted) => until(`ordered by ${by}`, async () => (await order()) === wanted);
  const head = (name) => `${table} thead th:has(button:has-text("${name}"))`;
  await seen(`${table} tr.total`);
  await isOrdered("share, what nothing accounts for behind it", "train_batch dataloader_next unaccounted step");
  await tab.click(`${head("Total")} button`);
  await isOrdered("total, the whole under its parts", "train_batch unaccounted dataloader_next step");
  assert.equal(await tab.getAttribute(head("Total"), "aria-sort"), "descending");
  await tab.keyboard.press("Enter");
  await isOrdered("total, the least first", "dataloader_next unaccounted train_batch step");
  assert.equal(await tab.getAttribute(head("Total"), "aria-sort"), "ascending");
  assert.match(tab.url(), /[?&]sort=total\.up$/);
  await tab.reload();
  await seen(`${table} tr.total`);
  await isOrdered("total, as the link has it", "dataloader_next unaccounted train_batch step");
  await tab.click(`${head("Total")} button`);
  await isOrdered("share again", "train_batch dataloader_next unaccounted step");
  await tab.click(`${head("Mean")} button`);
  await tab.keyboard.press("Enter");
  // What has none is behind what has.
  await isOrdered("mean, the least first", "dataloader_next train_batch unaccounted step");
  await tab.click(`${head("Scope")} button`);
  await isOrdered("name", "dataloader_next train_batch unaccounted step");
  assert.match(tab.url(), /[?&]sort=scope\.up$/);
});

test("a comparison is ordered by what rose or fell most, or by name, and a link keeps the order", async () => {
  await show(`#/compare?t=${ids[1]}&t=${ids[2]}`);
  const order = async () => (await tab.locator("tr[data-metric]").evaluateAll((rows) => rows.map((row) => row.dataset.metric))).join(" ");
  const isOrdered = (by, wanted) => until(`ordered by ${by}`, async () => (await order()) === wanted);
  await isOrdered("difference", "timing/step cpu/cpu_util_simple");
  await tab.selectOption('select[aria-label="Order"]', { label: "largest rise first" });
  await isOrdered("rise", "cpu/cpu_util_simple timing/step");
  await tab.reload();
  await isOrdered("rise, as the link has it", "cpu/cpu_util_simple timing/step");
  await tab.selectOption('select[aria-label="Order"]', { label: "largest fall first" });
  await isOrdered("fall", "timing/step cpu/cpu_util_simple");
  await tab.selectOption('select[aria-label="Order"]', { label: "by name" });
  await isOrdered("name", "cpu/cpu_util_simple timing/step");
  await tab.selectOption('select[aria-label="Order"]', { label: "timings by difference" });
  await isOrdered("difference", "timing/step cpu/cpu_util_simple");
});

test("what a cap would remove is told in numbers before it is set", async () => {
  await show("#/admin");
  await tab.selectOption("#place-owner", "trial");
  await tab.fill("#place-name", String(ids[0]));
  await tab.click('button:has-text("Show its caps")');
  await seen(`h2:has-text("${ids[0]}")`);
  await tab.fill("#cap-trialBytes", "1B");
  // What is merged counts: a trial that has ended is, some seconds later.
  await until("its samples are merged", async () => {
    await tab.click('button:has-text("Show what it would remove")');
    await seen('button:has-text("Set these caps")');
    return /It would remove \d+ samples/.test(await text("main"));
  });
  // Three series of 200, less the one for which a byte has room. Where their rollups are made it is one of these.
  const [, samples] = (await text("main")).match(/It would remove (599 samples \([\d.]+ KiB\)|600 samples \([\d.]+ KiB\) and [\d.]+ KiB of rollups)/) ?? assert.fail(await text("main"));
  const line = `.plan tr:has(a[data-trial="${ids[0]}"][href^="#/trial/${ids[0]}/"]):has-text("Bytes of a trial")`;
  await seen(line);
  const [, group, , goes, from, to] = await tab.locator(`${line} >> nth=0`).locator("td").allInnerTexts();
  assert.deepEqual([group, goes.split(" (")[0]], ["timing", `${samples.slice(0, 3)} samples`]);
  for (const time of [from, to]) assert.match(time, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/);
  await until("its name is told", async () => (await text(`${line} a`)) !== `trial ${ids[0]}`);
  assert.equal(await count(".state-box"), 0, "a preview is no state of failure");
  assert.ok(await tab.evaluate(() => document.querySelector(".plan table").compareDocumentPosition(document.querySelector(".plan button.primary")) & 4), "the button is below what it does");
});

test("a cap that is cleared uncovers a wider place's, and what that would remove is told before", async () => {
  const id = `id:${ids[4]}`;
  await stand.command("caps", "set", "--trial", id, "--bytes", "1GiB", "--yes");
  await stand.command("caps", "set", "--project", "tight", "--bytes", "1B", "--yes");
  await show("#/trials");
  await show("#/admin");
  await tab.selectOption("#place-owner", "trial");
  await tab.fill("#place-name", String(ids[4]));
  await tab.click('button:has-text("Show its caps")');
  await seen(`h2:has-text("${ids[4]}")`);
  await until("the cap that is set", async () => (await count("#cap-trialBytes")) === 1 && (await tab.inputValue("#cap-trialBytes")) === "1GiB");
  await tab.fill("#cap-trialBytes", "");
  await until("what goes once its samples are merged", async () => {
    await tab.click('button:has-text("Show what it would remove")');
    await seen('button:has-text("Set these caps")');
    return /It would remove \d+ samples/.test(await text("main"));
  });
  const told = (await text("main")).match(/It would remove (\d+) samples/)[1];
  assert.ok(Number(told) >= 399, told); // two series of 200, less the one for which a byte has room
  assert.match(await stand.command("caps", "preview", "--trial", id, "--clear", "bytes"), new RegExp(`A sweep would remove ${told} samples`));
  assert.match(await stand.command("caps", "preview", "--trial", id), /nothing/);
  await tab.click('button:has-text("Set these caps")');
  await seen('tr:has-text("Bytes of a trial") td:has-text("project tight")');
  assert.match(await stand.command("caps", "sweep", "--trial", id), /[34]\d\d samples .* went|Nothing was to be removed/); // or the master's own was first
});

test("a database that is down and a disk that is nearly full are told where the master is shown", async () => {
  const answers = "**/stepwell.v1.AdminService/GetStatus";
  const changed = async (fields) => {
    await tab.unroute(answers);
    await tab.route(answers, async (route) => {
      const answer = await route.fetch();
      const told = decode("GetStatusResponse", await answer.body());
      await route.fulfill({ status: 200, contentType: "application/proto", body: Buffer.from(encode("GetStatusResponse", { ...told, ...fields })) });
    });
    await show("#/trials");
    await show("#/admin");
  };
  await changed({});
  await seen('dl.facts div:has(dt:text-is("Database")) dd:text-is("up")');
  assert.equal(await count(".note:has-text('database')"), 0);
  await changed({ databaseUp: false, databaseError: "no such <b>host</b>" });
  await seen('dl.facts div:has(dt:text-is("Database")) dd:has-text("down: no such <b>host</b>")');
  await seen('.note:has-text("The database does not answer")');
  await changed({ diskError: "3 % are free" });
  await seen('.note:has-text("A disk of the database is nearly full")');
  await tab.unroute(answers);
  await show("#/trials");
  await show("#/admin");
  for (const words of ["measuring …", "0 /s"]) await seen(`dl.facts div:has(dt:text-is("Samples now")) dd:text-is("${words}")`); // the second look tells how many since the first
});

test("nothing went wrong in the page, and nothing was asked of others", () => {
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
