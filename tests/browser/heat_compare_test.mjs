// The heat map and the page that compares, in a real browser before a real master: more ranks than pixels, both clocks,
// gaps, a master that is killed, and trials whose differences are known.
//
//   STEPWELL_BROWSER_TEST=BIN-FOLDER:PAGE-FOLDER:PLAYWRIGHT:CHROMIUM:RECORDER-LIBRARY node --test heat_compare_test.mjs
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { deadlineMs, Stand, until } from "./stand.mjs";
import { bin, closesAtEnd, count, foreign, library, openTab, page, saved, seen, show, tab, text, troubles } from "./tab.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const stand = new Stand(bin, page);
const skip = library ? false : "the build has no shared library of the recorder";
const cells = ".heat canvas[tabindex]";
const ids = new Map();
let agent;

/** Of known step times: ranks_trial.py tells which. */
async function record(trial, ...args) {
  const child = stand.start(trial, "python3", [join(here, "ranks_trial.py"), library, ...args], stand.recording(trial));
  const { code } = await child.ended;
  assert.equal(code, 0, `${trial}: ${child.said}`);
}

async function trialId(name) {
  if (!ids.has(name)) {
    const line = await until(`${name} is listed`, async () => (await stand.command("trials")).split("\n").find((row) => row.startsWith(`${name} `)));
    ids.set(name, line.match(/\s(\d{10})\s/)[1]);
  }
  return ids.get(name);
}

async function heat(trial, query = "") {
  await show(`#/trial/${await trialId(trial)}/heat${query}`);
  await seen(cells);
}

const words = () => text(".heat .chart-place");

/** The pointer at a place of the map, 0 ... 1 from its left and top; what is said there. */
async function pointed(left, top) {
  await tab.locator(cells).scrollIntoViewIfNeeded();
  const box = await tab.locator(cells).boundingBox();
  await tab.mouse.move(box.x + box.width * left, box.y + box.height * top);
  return words();
}

before(async () => {
  await stand.startMaster();
  agent = stand.startAgent();
  await Promise.all([openTab(stand), library && record("wide", "1000", "30", "100", "41", "2")]);
  await tab.goto(stand.url);
}, { timeout: 4 * deadlineMs });

closesAtEnd(stand);

/** Of what is far above the scale, as a person sees it: rows of pixels of the screen, and how many of their columns are. */
const farRows = (selector) => tab.evaluate((selector) => {
  const canvas = document.querySelector(selector);
  const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const rows = new Map();
  for (let at = 0; at < data.length; at += 4) if (data[at] === 0xc3 && data[at + 1] === 0 && data[at + 2] === 0xff && data[at + 3] === 255) rows.set(Math.floor(at / 4 / width), (rows.get(Math.floor(at / 4 / width)) ?? 0) + 1);
  return { height: canvas.height, box: canvas.getBoundingClientRect().height, rows: [...rows.keys()], parts: [...rows.values()].map((count) => count / width) };
}, selector);

test("of more ranks than pixels the slow one is seen among noise, pointed at and named", { skip }, async () => {
  await heat("wide");
  await seen('.heat p:has-text("1,000 rows"):has-text("2 rows share a line, which shows the largest")');
  assert.equal(await text(".heat-names span:nth-child(2)"), "rank 0");
  const cellsFar = await farRows(cells);
  assert.deepEqual([cellsFar.height, cellsFar.box, cellsFar.rows], [500, 500, [20]]);
  const painted = await farRows(".heat-gaps");
  assert.deepEqual(painted.rows, [19, 20, 21]);
  assert.ok(painted.parts.every((part) => part > 0.9), `${painted.parts}`);
  assert.match((await text(".heat-scale")).replace(/\s+/g, " "), /^≤ 9\d(\.\d)? ms ≥ 10\d ms far above: ≥ 1[01]\d ms smallest .* ms, largest 30\d ms$/);
  assert.equal(await count(".heat-scale [data-far]"), 1);
  await until("it is pointed at", async () => /^rank 41, .* UTC: (29|30)\d ms$/.test(await pointed(0.01, 20.5 / 500)));
  await until("where it is painted over its neighbours, too", async () => /^rank 41, .* UTC: (29|30)\d ms$/.test(await pointed(0.01, 21.5 / 500)));
  await until("and what is beside it", async () => /^rank 4[45], .* UTC: (9\d\.\d|10\d) ms$/.test(await pointed(0.01, 22.5 / 500)));
});

test("keys and a drag zoom the heat map, and a double click shows all", { skip }, async () => {
  const whole = await text(".heat-axis");
  await tab.locator(cells).focus();
  await tab.keyboard.press("+");
  await until("the view is zoomed", () => /from=\d{16}&to=\d{16}/.test(tab.url()));
  await until("the map, too", async () => (await text(".heat-axis")) !== whole);
  await tab.keyboard.press("Home");
  await until("all is shown", async () => !tab.url().includes("from=") && (await text(".heat-axis")) === whole);
  // One drag: what a second one took of the first's view would be a quarter. The address follows in its own time.
  await tab.locator(cells).scrollIntoViewIfNeeded();
  const box = await tab.locator(cells).boundingBox();
  await tab.mouse.move(box.x + box.width * 0.25, box.y + 40);
  await tab.mouse.down();
  await tab.mouse.move(box.x + box.width * 0.75, box.y + 60, { steps: 5 });
  await tab.mouse.up();
  await until("a drag zooms", () => /from=\d{16}&to=\d{16}/.test(tab.url()));
  const [, from, to] = tab.url().match(/from=(\d+)&to=(\d+)/);
  assert.ok(to - from > 1_300_000 && to - from < 1_600_000, `half of 2.9 s, not ${to - from} us`);
  await tab.locator(cells).dblclick();
  await until("all is shown again", () => !tab.url().includes("from="));
});

test("a cell leads to its rank's timings, and a CSV has what is shown", { skip }, async () => {
  await heat("wide", "?axis=batch");
  await until("columns are batches", async () => /^rank 41, batch 0: (29|30)\d ms$/.test(await pointed(0.001, 20.5 / 500)));
  const csv = await saved('button:text-is("CSV")');
  assert.match(csv.name, /^stepwell-trial-\d+-heat\.csv$/);
  const lines = csv.bytes.toString("utf8").split("\r\n");
  assert.equal(lines[0], "metric_group,name,labels,unit,first_batch,min,max,mean,last,samples,nan");
  assert.equal(lines.filter((line) => line.startsWith("timing,step,rank=41,seconds,")).length, 30);
  await until("the cell is kept", async () => {
    await pointed(0.001, 20.5 / 500);
    await tab.mouse.down();
    await tab.mouse.up();
    return (await count('.heat-leads a:text-is("Timings of rank 41, batches 0 to 1")')) === 1;
  });
  await tab.click(".heat-leads a");
  await seen('table[data-rank="41"] tr.total :text-matches("(29|30)[0-9] ms")');
  assert.match(tab.url(), /\/timings\?axis=batch&from=0&to=2&rank=41$/);
});

test("the host's and the device's times of a scope are never one mean", { skip }, async () => {
  await heat("wide", "?m=timing%2Fforward");
  await until("the host's", async () => /: 1\.00 ms$/.test(await words()));
  await tab.selectOption('select[aria-label="Clock"]', "device");
  await seen('.heat h2:has-text("on the device\'s clock")');
  assert.match(await words(), /: 9\.00 ms$/);
  await tab.reload();
  await until("a link restores the clock", async () => (await count(cells)) === 1 && /: 9\.00 ms$/.test(await words()));
});

test("a gap is hatched and told where the pointer is on it", async () => {
  const live = stand.train("live", "--seconds", "120", "--data", join(here, "..", "..", "docs"));
  await heat("live", "?m=cpu%2Fcpu_util_simple");
  agent.kill("SIGSTOP");
  const samples = async () => Number((await text("header.head p")).match(/([\d,]+) samples?$/)[1].replaceAll(",", ""));
  const before = await samples();
  // Three of its ticks, by the clock of who looks.
  const stopped = Date.now();
  await until("ticks are missed", () => Date.now() - stopped > 3500);
  agent.kill("SIGCONT");
  await until("it goes on", async () => (await samples()) > before);
  const hatched = () => tab.evaluate(() => {
    const canvas = document.querySelector(".heat-gaps");
    const row = canvas.getContext("2d").getImageData(0, 10, canvas.width, 1).data;
    let [first, last] = [-1, -1];
    // Not what is far beyond the scale, which is opaque.
    for (let x = 0; x < canvas.width; ++x) if (row[x * 4 + 3] > 0 && row[x * 4 + 3] < 255) [first, last] = [first < 0 ? x : first, x];
    return first < 0 ? null : (first + last) / 2 / canvas.width;
  });
  await until("the gap is hatched", hatched);
  await until("its cause is told", async () => /Gap: .*missing/.test(await pointed(await hatched(), 0.5)));
  await tab.mouse.move(0, 0);
  live.kill("SIGINT");
});

test("a heat map says when the master is gone, keeps what is there, and goes on when it is back", async () => {
  const again = stand.train("again", "--seconds", "120", "--data", join(here, "..", "..", "docs"));
  await heat("again");
  await seen('[data-follow="live"]');
  await stand.killMaster();
  await seen('[data-follow="lost"]');
  assert.equal(await count(cells), 1);
  await stand.startMaster();
  await seen('[data-follow="live"]');
  again.kill("SIGINT");
});

const rowOf = (metric) => `tr[data-metric="${metric}"]`;
/** Of a row: what stands below a trial, from 0. */
const cell = (metric, at) => `${rowOf(metric)} td.number >> nth=${at}`;

test("differences are marked: by how much, and which way is better", { skip }, async () => {
  await Promise.all([record("base", "2", "40", "100"), record("fast", "2", "40", "50")]);
  await show(`#/compare?t=${await trialId("base")}&t=${await trialId("fast")}`);
  await seen(`${cell("timing/step", 1)} >> .better:has-text("2.0× faster")`);
  assert.equal(await text(cell("timing/step", 0)), "100 ms");
  assert.equal(await text(cell("timing/step", 1)), "50.0 ms 2.0× faster");
  await tab.click('button:text-is("Make first")');
  await seen(`${cell("timing/step", 1)} >> .worse:has-text("2.0× slower")`);
});

test("host and device clock are rows of their own, and have charts of their own", { skip }, async () => {
  assert.equal(await text(cell("timing/forward", 0)), "1.00 ms");
  assert.equal(await text(`${rowOf("timing/forward;clock=device")} td.name`), "forward timing, device clock");
  assert.equal(await text(cell("timing/forward;clock=device", 0)), "9.00 ms");
  await tab.locator(`${rowOf("timing/forward;clock=device")} input`).check();
  await seen('.charts section[data-metric="timing/forward;clock=device"] .legend:has-text("9.00 ms")');
  assert.equal(await count('.charts section[data-metric="timing/forward"]'), 0);
  while ((await count("table input:checked")) > 0) await tab.locator("table input:checked").first().uncheck();
  await until("no chart is wanted", async () => (await count(".charts canvas")) === 0);
  await show(tab.url().replace(/.*#/, "#").replace(/&m=.*/, ""));
  await seen('[data-metric="timing/step"] canvas');
});

test("the zoom of a comparison stands in its address", { skip }, async () => {
  await tab.locator('[data-metric="timing/step"] .chart-canvas').focus();
  await tab.keyboard.press("+");
  await until("the view is zoomed", () => /from=\d+&to=\d+/.test(tab.url()));
  await seen('h2:has-text("Means of batches ")');
  const zoomed = await text("[data-range]");
  const asked = tab.url();
  await tab.reload();
  await seen('[data-metric="timing/step"] canvas');
  assert.equal(await text("[data-range]"), zoomed);
  assert.equal(tab.url(), asked);
  const csv = await saved('button:text-is("CSV")');
  assert.match(csv.name, /^stepwell-compare-\d+-\d+\.csv$/);
  assert.match(csv.bytes.toString("utf8"), /\r\ntiming,forward,device,seconds,base,\d+,\d+,0,0\.009,0\.009,0\.009,0\.009,0,1\r\n/);
  await tab.click('button:text-is("Show all")');
  await until("all is shown", async () => !tab.url().includes("from=") && (await count('h2:has-text("Means of all batches over all ranks and machines, and change from the first")')) === 1);
});

/** As when a person comes back to the tab: what asks again and again asks now. How often it did, when its timers had their turn. */
const askedOnReturn = () => tab.evaluate(async () => {
  window.askedCount = 0;
  window.realFetch ??= window.fetch;
  window.fetch = (...args) => (++window.askedCount, window.realFetch(...args));
  document.dispatchEvent(new Event("visibilitychange"));
  for (let turn = 0; turn < 5; ++turn) await new Promise((done) => setTimeout(done));
  return window.askedCount;
});

test("trials that have ended are asked for once, and one that runs changes nothing but its numbers", { skip }, async () => {
  await seen('.compared li:has-text("base"):has-text("completed")');
  await until("both have ended", async () => (await count('.compared li:has-text("completed")')) === 2);
  await until("it asks no more", async () => {
    // One that is under way hides the next: it is looked at again and again.
    for (let time = 0; time < 20; ++time) if ((await askedOnReturn()) > 0) return false;
    return true;
  });
  const runs = stand.train("runs", "--seconds", "120", "--data", join(here, "..", "..", "docs"));
  await show(`#/compare?t=${await trialId("base")}&t=${await trialId("runs")}`);
  await seen('.compared li:has-text("runs"):has-text("running")');
  await seen(`${rowOf("timing/train_batch")}`);
  await tab.focus(`${rowOf("timing/step")} input`);
  await tab.evaluate(() => { window.kept = [document.activeElement, document.querySelector('select[aria-label="Add a trial"]'), document.querySelector(".charts canvas"), document.querySelector(".compared a")]; });
  const before = await text(cell("timing/train_batch", 1));
  await until("its numbers are others", async () => {
    await askedOnReturn();
    return (await text(cell("timing/train_batch", 1))) !== before;
  });
  assert.deepEqual(await tab.evaluate(() => window.kept.map((one) => one.isConnected)), [true, true, true, true]);
  assert.ok(await tab.evaluate(() => window.kept[0] === document.activeElement), "what has the focus keeps it");
  runs.kill("SIGINT");
});

test("a side that is incomplete is told", { skip }, async () => {
  await show(`#/compare?t=${await trialId("base")}&t=${await trialId("live")}`);
  await seen('.compared li:has-text("live") a.badge:has-text("incomplete")[href*="/completeness"]');
  await seen('.compared li:has-text("base") a.badge:text("complete")');
});

test("nothing went wrong in the page, and nothing was asked of others", () => {
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
