// What is drawn is told by the question that it answers: between a question and its answer, and where no answer comes.
//
//   STEPWELL_BROWSER_TEST=BIN-FOLDER:PAGE-FOLDER:PLAYWRIGHT:CHROMIUM:RECORDER-LIBRARY node --test asked_test.mjs
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { before, beforeEach, test } from "node:test";
import { join } from "node:path";
import { duration, RawWriters } from "./raw_writer.mjs";
import { deadlineMs, soon, Stand, until } from "./stand.mjs";
import { bin, closesAtEnd, count, foreign, gone, openTab, page, saved, seen, show, tab, text, troubles } from "./tab.mjs";
import { composerCycle } from "./viewer.mjs";

const stand = new Stand(bin, page);
const ticks = 100;
const startUs = (Math.floor(Date.now() / 1000) - ticks - 10) * 1e6;
const buckets = "**/stepwell.v1.QueryService/QueryBuckets";
const summaries = "**/stepwell.v1.QueryService/SummarizeTimings";
/** Of ranks 0 and 1. */
const stepSeconds = [0.1, 0.5];
/** More than a chart has buckets, and no multiple of what one of them covers. */
const longTicks = 1003;
let [trial, long, running] = [];

before(async () => {
  await stand.startMaster();
  await openTab(stand);
  const raw = new RawWriters(stand.ports.grpc);
  const timing = (name, seconds) => ({ group: "timing", name, unit: "seconds", kind: duration, value: () => seconds });
  for (const [rank, seconds] of stepSeconds.entries()) {
    trial = await raw.write({ trial: "a", rank, startUs, stepUs: 1_000_000, ticks, firstBatch: 0, series: [timing("step", seconds), timing("forward", seconds / 2), { group: "training", name: "loss", value: (tick) => 1 / (tick + 1) }] });
  }
  const loss = { group: "training", name: "loss", value: (tick) => 1 / (tick + 1) };
  long = await raw.write({ trial: "long", rank: 0, startUs: startUs - longTicks * 1e6, stepUs: 1_000_000, ticks: longTicks, firstBatch: 0, series: [timing("step", 0.1), loss] });
  raw.close();
  await tab.goto(stand.url);
  // What is written into pictures.
  await tab.addInitScript(() => {
    const { fillText } = CanvasRenderingContext2D.prototype;
    window.written = [];
    CanvasRenderingContext2D.prototype.fillText = function (words, ...more) {
      window.written.push(words);
      return fillText.call(this, words, ...more);
    };
  });
  await tab.reload();
}, { timeout: 4 * deadlineMs });

// Whatever a test before has left.
beforeEach(() => tab.unrouteAll({ behavior: "ignoreErrors" }));
closesAtEnd(stand);

const refuse = (route) => route.fulfill({ status: 503, contentType: "application/json", body: JSON.stringify({ code: "unavailable", message: "recovering" }) });
const sentence = 'p:has-text("A step takes"):has-text("on average")';
const rate = '[data-metric="throughput"]';
const busy = '[aria-busy="true"]';
const unavailable = '[data-absence="unavailable"]';
/** Whatever was shown before; `shows` is seen of it. */
async function openAnew(hash, shows) {
  await show("#/trials");
  await seen("tbody tr");
  await show(hash);
  await seen(shows);
}

/** The head of the picture that is saved. */
async function headOfPng() {
  await tab.evaluate(() => { window.written = []; });
  await saved('button:has-text("PNG")');
  return tab.evaluate((name) => window.written.find((words) => words.startsWith(name)), "a, ");
}

/** Holds the answers to questions from now on; `letGo` gives them, or what `answer` makes of each. */
async function held(url) {
  const routes = [];
  const hold = (route) => void routes.push(route);
  await tab.route(url, hold);
  return {
    asked: () => until("a question", () => routes.length > 0),
    letGo: async (answer = (route) => route.continue()) => {
      for (const route of routes) await answer(route).catch(() => undefined); // The page may have given it up.
      await tab.unroute(url, hold); // Which lets go what nobody answered.
    },
  };
}

test("until another rank's timings are there, the words and the picture are of the rank that is drawn", async () => {
  await openAnew(`#/trial/${trial}/timings?rank=0`, sentence);
  assert.match(await text(sentence), /A step takes 100 ms on average, 10 steps per second of stepping, rank 0;/);
  assert.equal(await count(busy), 0);
  const answers = await held(buckets);
  await tab.selectOption('select[aria-label="Rank"]', "1");
  await answers.asked();
  await seen(busy);
  await seen('table[data-rank="1"]'); // of which all ranks are known
  await tab.click(".top > button");
  assert.match(await text(sentence), /100 ms on average.* rank 0;/);
  assert.match(await headOfPng(), /^a, rank 0, batches 0 to 99$/);
  await answers.letGo();
  await until("rank 1", async () => /500 ms on average, 2 steps per second of stepping, rank 1;/.test(await text(sentence)));
  assert.equal(await count(busy), 0);
  assert.match(await headOfPng(), /^a, rank 1, batches 0 to 99$/);
});

test("timings of another rank that are not answered take away what is drawn, and say so on a trial that has ended", async () => {
  await openAnew(`#/trial/${trial}/timings?rank=0`, sentence);
  await tab.route(buckets, refuse);
  await tab.selectOption('select[aria-label="Rank"]', "1");
  await seen(unavailable);
  await seen('[data-follow="stale"]');
  await seen('table[data-rank="1"]');
  assert.equal(await count(`${rate}:visible`), 0);
  assert.equal(await count(sentence), 0);
  assert.ok(await tab.isDisabled('button:has-text("PNG")'));
  await tab.click(".top > button");
  assert.equal(await count(sentence), 0);
  await tab.unroute(buckets, refuse);
  await tab.click(`${unavailable} button:has-text("Try again")`);
  await until("rank 1", async () => (await count(sentence)) === 1 && /500 ms on average/.test(await text(sentence)));
  await seen('[data-follow="ended"]');
  assert.equal(await count(unavailable), 0);
});

test("a table of other batches than those that are asked for goes, and its CSV with it", async () => {
  await openAnew(`#/trial/${trial}/timings?rank=0`, 'table[data-rank="0"]');
  await tab.route(summaries, refuse);
  await show(`#/trial/${trial}/timings?rank=0&axis=batch&from=10&to=20`);
  await seen(unavailable);
  await until("the range that the charts have", async () => (await text("[data-range]")) === "batches 10 to 19");
  await seen(sentence);
  await seen('[data-follow="stale"]');
  assert.equal(await count("table[data-rank]"), 0);
  assert.ok(await tab.isDisabled('button:has-text("CSV")'));
  await tab.unroute(summaries, refuse);
  await tab.click(`${unavailable} button:has-text("Try again")`);
  await seen('h2:has-text("batches 10 to 19")');
  assert.ok(await tab.isEnabled('button:has-text("CSV")'));
  await seen('[data-follow="paused"], [data-follow="ended"]');
});

test("what a refusal has taken away is back once it is taken back", async () => {
  await openAnew(`#/trial/${trial}/timings?rank=0`, 'table[data-rank="0"]');
  await seen(sentence);
  // Once the table is there: it is fresh enough then not to be asked for again at once.
  const summary = tab.waitForResponse(summaries);
  await tab.route(buckets, async (route) => {
    await (await summary).finished();
    await route.fulfill({ status: 403, contentType: "application/json", body: JSON.stringify({ code: "permission_denied", message: "no" }) });
  });
  await tab.selectOption('select[aria-label="Rank"]', "1");
  await seen('[data-absence="not permitted"]');
  assert.equal(await count("table[data-rank]:visible"), 0);
  await tab.unroute(buckets);
  await tab.click('button:has-text("Try again")');
  await until("rank 1", async () => (await count(sentence)) === 1 && /500 ms on average/.test(await text(sentence)));
  await seen('table[data-rank="1"]');
});

test("a heat map of another metric than the chosen one does not stay", async () => {
  const metric = 'select[aria-label="Metric or scope"]';
  const head = (name) => `.heat h2:has-text("${name} by rank")`;
  await openAnew(`#/trial/${trial}/heat?axis=batch`, head("step"));
  const answers = await held(buckets);
  await tab.selectOption(metric, "timing/forward");
  await answers.asked();
  await seen(busy);
  await seen(head("step"));
  await answers.letGo();
  await seen(head("forward"));
  await until("the answer", async () => (await count(busy)) === 0);
  await tab.route(buckets, refuse);
  await tab.selectOption(metric, "timing/step");
  await seen(unavailable);
  await seen('[data-follow="stale"]');
  assert.equal(await count(".heat canvas:visible"), 0);
  assert.ok(await tab.isDisabled('button:has-text("PNG")'));
  await tab.unroute(buckets, refuse);
  await tab.click(`${unavailable} button:has-text("Try again")`);
  await seen(head("step"));
  await seen('[data-follow="ended"]');
});

test("until the charts of a range are there, the words and the picture are of the range that is drawn", async () => {
  const range = () => text("[data-range]");
  const hash = `#/trial/${trial}/metrics?axis=batch&m=training%2Floss`;
  await openAnew(hash, '[data-metric="training/loss"] canvas');
  assert.equal(await range(), "batches 0 to 99");
  const answers = await held(buckets);
  await show(`${hash}&from=10&to=20`);
  await answers.asked();
  await seen(busy);
  assert.equal(await range(), "batches 0 to 99");
  assert.equal(await headOfPng(), "a, batches 0 to 99");
  // Moves go on from what was asked for last.
  await tab.click('button[aria-label="Later"]');
  await until("the next range", () => /from=15&to=25/.test(tab.url()));
  assert.equal(await range(), "batches 0 to 99");
  await answers.letGo();
  await until("the range", async () => (await range()) === "batches 15 to 24");
  await until("the charts", async () => (await count(busy)) === 0);
  assert.equal(await headOfPng(), "a, batches 15 to 24");
  // Of time after batches, too.
  const later = await held(buckets);
  await show(`#/trial/${trial}/metrics?m=training%2Floss`);
  await later.asked();
  await seen(busy);
  assert.equal(await headOfPng(), "a, batches 15 to 24");
  await later.letGo();
  await until("the range in time", async () => (await count(busy)) === 0 && /UTC/.test(await range()));
  // Where none comes nothing of before is saved.
  await tab.route(buckets, refuse);
  await show(`${hash}&from=30&to=40`);
  await seen(unavailable);
  await until("what is asked for", async () => (await range()) === "batches 30 to 39");
  assert.ok(await tab.isDisabled('button:has-text("PNG")'));
  assert.ok(await tab.isDisabled('button:has-text("CSV")'));
  await tab.unroute(buckets, refuse);
});

test("a comparison shows the charts of the range before, dimmed and under their own range, until those of the next are there", async () => {
  const comparison = "**/stepwell.v1.QueryService/CompareTrials";
  const hash = `#/compare?t=${long}&t=${trial}&m=training%2Floss`;
  const range = () => text("[data-range]");
  const dimmed = () => tab.locator('[data-metric="training/loss"] .chart-canvas').evaluate((one) => Number(getComputedStyle(one).opacity) < 1);
  await openAnew(`${hash}&from=0&to=20`, '[data-metric="training/loss"] canvas');
  await until("the answer", async () => (await count(busy)) === 0 && (await range()) === "batches 0 to 19");
  const answers = await held(comparison);
  await show(`${hash}&from=30&to=40`);
  await answers.asked();
  await until("dimmed charts", dimmed);
  assert.equal(await range(), "batches 0 to 19");
  await seen('h2:has-text("Means of batches 0 to 19")');
  // One more chart meanwhile leaves them what they are.
  await show(`${hash}&m=timing%2Fstep&from=30&to=40`);
  assert.ok(await dimmed());
  await answers.letGo();
  await until("the next range", async () => (await count(busy)) === 0 && (await range()) === "batches 30 to 39");
  await until("clear charts", async () => !(await dimmed()));
  await seen('[data-metric="timing/step"] canvas');
  // Opening one dims none of the others.
  const later = await held(comparison);
  await show(`${hash}&m=timing%2Fforward&from=30&to=40`);
  await later.asked();
  assert.equal(await count(busy), 0);
  await later.letGo();
  await seen('[data-metric="timing/forward"] canvas');
  // What is not answered is not dimmed, but gone.
  await tab.route(comparison, refuse);
  await show(`${hash}&from=50&to=60`);
  await seen(unavailable);
  assert.equal(await count(busy), 0);
  assert.equal(await range(), "batches 50 to 59");
});

test("all batches of a comparison are as many as there are, however its charts divide them", async () => {
  await openAnew(`#/compare?t=${long}&t=${trial}&m=training%2Floss`, '[data-metric="training/loss"] canvas');
  assert.equal(await count("[data-range]"), 0);
  const { x, y, width, height } = await tab.locator('[data-metric="training/loss"] .u-over').boundingBox();
  await tab.mouse.move(x + 1, y + height / 2);
  await tab.mouse.down();
  await tab.mouse.move(x + width + 20, y + height / 2, { steps: 5 });
  await tab.mouse.up();
  await until("a range", async () => (await count("[data-range]")) === 1);
  await soon(async () => assert.equal(await text("[data-range]"), `batches 0 to ${(longTicks - 1).toLocaleString("en")}`));
});

test("a tab whose question is not accepted is not live, though its trial's stream is", async () => {
  const raw = new RawWriters(stand.ports.grpc);
  const now = { startUs: (Math.floor(Date.now() / 1000) - 20) * 1e6, stepUs: 500_000, ticks: 40, firstBatch: 0 };
  running = await raw.write({ trial: "running", rank: 0, open: true, ...now, series: [{ group: "timing", name: "step", unit: "seconds", kind: duration, value: () => 0.5 }, { group: "training", name: "loss", value: () => 1 }] });
  raw.close();
  const invalid = (route) => route.fulfill({ status: 400, contentType: "application/json", body: JSON.stringify({ code: "invalid_argument", message: "told by a test" }) });
  for (const [view, shows] of [["metrics", ".charts canvas"], ["heat", ".heat canvas"], ["timings", sentence]]) {
    await openAnew(`#/trial/${running}/${view}`, shows);
    await seen('[data-follow="live"]');
    await tab.route(buckets, invalid);
    // Of whatever is asked next.
    if (view === "metrics") await show(`#/trial/${running}/metrics?lines=one&live=60000000`);
    else if (view === "heat") await tab.selectOption('select[aria-label="Metric or scope"]', "training/loss");
    else await tab.selectOption('select[aria-label="Rank"]', "all");
    await seen('[data-absence="failed"]:has-text("did not accept the question")');
    await seen('[data-follow="denied"]:text-is("not answered")');
    assert.equal(await count('[data-follow="live"], [data-stale]'), 0, view);
    await tab.unroute(buckets, invalid);
    await tab.click('[data-absence="failed"] button:has-text("Try again")');
    await seen('[data-follow="live"]');
    assert.equal(await count('[data-follow="denied"]'), 0, view);
  }
});

test("caps that are being set are not taken back, and what is shown then is what was set", async () => {
  const takeBack = '[data-focus="take-back"]';
  const field = "#cap-seriesSamples";
  const place = `of=trial&name=${trial}`;
  await openAnew(`#/admin?${place}`, field);
  await tab.fill(field, "3M");
  await tab.click('button:has-text("Show what it would remove")');
  const answers = await held("**/stepwell.v1.AdminService/SetCaps");
  await tab.click('button:text-is("Set these caps")');
  await answers.asked();
  await until("nothing to be taken back", () => tab.isDisabled(takeBack));
  // Nor is anything of before shown by asking for the place anew.
  await tab.click('[data-focus="show-caps"]');
  await gone(field);
  await answers.letGo();
  await seen(field);
  assert.equal(await tab.inputValue(field), "3M");
  assert.ok(await tab.isEnabled(takeBack));
  await tab.fill(field, "4M");
  await tab.click(takeBack);
  await until("what was typed is gone", async () => (await count(field)) === 1 && (await tab.inputValue(field)) === "3M");
  // One that is refused can be changed, and taken back.
  await tab.route("**/stepwell.v1.AdminService/SetCaps", refuse);
  await tab.fill(field, "5M");
  await tab.click('button:has-text("Show what it would remove")');
  await tab.click('button:text-is("Set these caps")');
  await seen('section[aria-label="Caps"] [data-absence="unavailable"]');
  assert.ok(await tab.isEnabled(takeBack));
  assert.equal(await tab.inputValue(field), "5M");
  await tab.click(takeBack);
  await until("what was typed is gone", async () => (await count(field)) === 1 && (await tab.inputValue(field)) === "3M");
});

const again = 'button:text-is("Try again")';
/** What is told of an act that failed: that nobody does it again, and what is known of it. */
async function isTold(box, title, known) {
  await seen(`${box}:has-text("${title}"):has-text("${known}")`);
  const words = await text(box);
  assert.doesNotMatch(words, /asked again|tries again by itself|fewer series|let this page see/, words);
  assert.equal(words.match(/was not done|Nobody knows/g).length, 1, words);
}

const capsBox = 'section[aria-label="Caps"] .state-box';
const setCaps = "**/stepwell.v1.AdminService/SetCaps";
const [noAnswer, noConnection] = ["The master cannot answer now", "Lost the connection"];
const [notDone, unknown] = ["It was not done.", "Nobody knows whether it was done: look again."];

test("caps that were not previewed, or not set, are told so, and a press does it once more", async () => {
  const previews = "**/stepwell.v1.AdminService/PreviewCaps";
  const field = "#cap-seriesSamples";
  await openAnew(`#/admin?of=trial&name=${trial}`, field);
  await tab.fill(field, "6M");
  for (const [answer, title] of [[refuse, noAnswer], [(route) => route.abort(), noConnection]]) {
    await tab.route(previews, answer);
    await tab.click('button:has-text("Show what it would remove")');
    await isTold(capsBox, title, notDone);
    await tab.unroute(previews, answer);
    await tab.click(`${capsBox} ${again}`);
    await seen('button:text-is("Set these caps")');
  }
  // What the master says before it does anything was not done; where it cannot know, or nothing came, nobody knows.
  const [busy, invalid] = [["resource_exhausted", 429], ["invalid_argument", 400]].map(([code, status]) =>
    (route) => route.fulfill({ status, contentType: "application/json", body: JSON.stringify({ code, message: "told by a test" }) }));
  let once = 'button:text-is("Set these caps")';
  const answers = [[busy, "too much to do", notDone], [invalid, "did not accept", notDone], [refuse, noAnswer, unknown], [(route) => route.abort(), noConnection, unknown]];
  for (const [answer, title, known] of answers) {
    await tab.route(setCaps, answer);
    await tab.click(once);
    await isTold(capsBox, title, known);
    await tab.unroute(setCaps, answer);
    once = `${capsBox} ${again}`;
  }
  await tab.click(once);
  await gone(capsBox);
  await until("the caps", async () => (await text(`tr:has(${field}) td[data-label="Holds"]`)) === "6M");
});

test("caps that failed once somebody looked at another place are told there, until they are set again or it is closed", async () => {
  const field = "#cap-seriesSamples";
  const left = `[data-left="trial ${trial}"]`;
  const ofTrial = `h2:has-text("Caps of trial ${trial}")`;
  const preview = async (value) => {
    await seen(ofTrial);
    await tab.fill(field, value);
    await tab.click('button:has-text("Show what it would remove")');
    await seen('button:text-is("Set these caps")');
  };
  const failLate = async (answer, title) => {
    const answers = await held(setCaps);
    await tab.click('button:text-is("Set these caps")');
    await answers.asked();
    await tab.click('section[aria-label="Caps"] button:text-is("All trials")');
    await seen('h2:has-text("Caps of all trials")');
    await answers.letGo(answer);
    await seen(left);
    await isTold(`${left} .state-box`, title, unknown);
    assert.match(await text(left), /^Caps of trial \d+ that were to be set: samples of a series 7M\n/);
    await seen(`div:has(> ${left}) ~ div ${field}`); // below it
    assert.ok(await tab.isEditable(field));
  };
  await openAnew(`#/admin?of=trial&name=${trial}`, field);
  await preview("7M");
  await failLate(refuse, noAnswer);
  await tab.click(`${left} button:text-is("Close")`);
  await gone(left);
  assert.equal(await tab.evaluate(() => document.activeElement.tagName), "H2");
  await show(`#/admin?of=trial&name=${trial}`);
  await preview("7M");
  await failLate((route) => route.abort(), noConnection);
  // It goes along, to where it can be looked at and set.
  await tab.click(`${left} button:text-is("Show its caps")`);
  await seen(ofTrial);
  await seen(field);
  assert.equal(await count(left), 1);
  await preview("8M");
  await tab.click('button:text-is("Set these caps")');
  await gone(left);
  await until("the caps", async () => (await count(field)) === 1 && (await text(`tr:has(${field}) td[data-label="Holds"]`)) === "8M");
});

test("what a trace was wanted for and failed is told so, and a press does it once more", async () => {
  for (const rank of [0, 1]) {
    const file = join(stand.folder, `ep0-ba3-rank${rank}.json`);
    writeFileSync(file, composerCycle(rank, 1_000_000));
    await stand.command("trace", "import", `id:${trial}`, file);
  }
  const [row, box] = ['tr[data-trace="1"]', 'section[aria-label="Traces"] .state-box'];
  await openAnew(`#/trial/${trial}/traces`, row);
  for (const [method, press] of [["GetTrace", `${row} button:text-is("Download")`], ["MergeTraces", 'button:text-is("Download merged")']]) {
    const url = `**/stepwell.v1.TraceService/${method}`;
    await tab.route(url, refuse);
    await tab.click(press);
    await isTold(box, noAnswer, notDone);
    await tab.unroute(url, refuse);
    assert.ok((await saved(`${box} ${again}`)).bytes.length > 100, method);
    await gone(box);
  }
  const deletion = "**/stepwell.v1.TraceService/DeleteTrace";
  let deletions = 0;
  await tab.route(deletion, (route) => (++deletions, refuse(route)));
  await tab.click(`${row} button:has-text("Delete")`);
  await tab.click(`${row} button:text-is("Delete")`);
  await isTold(box, noAnswer, unknown);
  await seen(row);
  await tab.focus(`${box} ${again}`);
  await tab.keyboard.press("Enter");
  await until("it failed again, and who pressed is there", async () => deletions === 2 && tab.evaluate(() => document.activeElement.textContent === "Try again"));
  await tab.unroute(deletion);
  await tab.keyboard.press("Enter");
  await seen('p:has-text("Trace 1 is deleted")');
  await gone(row);
  assert.notEqual(await tab.evaluate(() => document.activeElement.tagName), "BODY");
});

test("nothing went wrong in the page, and nothing was asked of others", () => {
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
