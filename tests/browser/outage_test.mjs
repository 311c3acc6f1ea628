// What stays in sight while the master is killed, or its database hangs, and that it goes on when they are back: real ones.
//
//   STEPWELL_BROWSER_TEST=BIN-FOLDER:PAGE-FOLDER:PLAYWRIGHT:CHROMIUM:RECORDER-LIBRARY node --test outage_test.mjs
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { duration, RawWriters } from "./raw_writer.mjs";
import { writeCluster } from "./scenes.mjs";
import { deadlineMs, Stand, until } from "./stand.mjs";
import { bin, closesAtEnd, count, foreign, loaded, openTab, page, seen, show, tab, text, troubles } from "./tab.mjs";
import { composerCycle } from "./viewer.mjs";

const stand = new Stand(bin, page);
/** A bar or its end is there sooner than that. */
const soonMs = 12_000;
let raw;
let cluster;
let other;

before(async () => {
  await stand.startMaster();
  raw = new RawWriters(stand.ports.grpc);
  ({ trialId: cluster } = await writeCluster(raw));
  ({ trialId: other } = await writeCluster(raw, "other"));
  raw.close();
  const file = join(stand.folder, "ep0-ba3-rank0.json");
  writeFileSync(file, composerCycle(0, 1_000_000));
  await stand.command("trace", "import", `id:${cluster}`, file);
  await openTab(stand);
  await tab.goto(stand.url);
}, { timeout: 3 * deadlineMs });

closesAtEnd(stand, () => {
  stand.goOnDatabase();
  raw?.close();
});

const bars = () => tab.locator(".lost:visible").count();

test("a master that is killed is told on each page, over what was there, and so is its return", async () => {
  const pages = [
    ["#/trials", 'tbody tr:has-text("other")'], [`#/trial/${cluster}/timings`, 'tr.total:has-text("step")'], [`#/trial/${cluster}/traces`, 'tr[data-trace="1"]'],
    [`#/compare?t=${cluster}&t=${other}`, 'tr[data-metric="timing/step"]'], ["#/admin", "dl.facts"],
  ];
  for (const [hash, shows] of pages) {
    await tab.goto(`${stand.url}${hash}`);
    await tab.reload();
    await seen(shows);
    await loaded(hash);
    assert.equal(await bars(), 0, hash);
    await stand.killMaster();
    await until(`the bar over ${hash}`, async () => (await bars()) === 1, soonMs);
    assert.match(await text(".lost"), /Lost the connection to the master at/);
    const stays = async (when) => {
      assert.ok(await tab.locator(shows).first().isVisible(), `${hash}: what was there stays ${when}`);
      assert.equal(await count('[role="alert"]:not(.lost)'), 0, hash);
    };
    await stays("below the bar");
    await stand.startMaster();
    await until(`no bar over ${hash}`, async () => (await bars()) === 0, soonMs);
    await stays("behind it");
    await until(`nothing of ${hash} is of before`, async () => (await count("[data-trouble]:visible")) === 0, soonMs);
  }
});

const refusal = (status, code) => (route) => route.fulfill({ status, contentType: "application/json", body: JSON.stringify({ code, message: "told by a test" }) });

test("a comparison that fails leaves no chart of the question before it, and has it again when that is asked", async () => {
  const charts = ".charts canvas:visible";
  const question = "**/stepwell.v1.QueryService/CompareTrials";
  await tab.goto(`${stand.url}#/compare?t=${cluster}&t=${other}`);
  await tab.reload();
  await seen(charts);
  await tab.route(question, refusal(503, "unavailable"));
  await show(`#/compare?t=${cluster}&t=${other}&axis=time&from=0&to=5000000`);
  await seen('[data-absence="unavailable"]:visible');
  assert.equal(await count(charts), 0);
  assert.equal(await count('[data-focus="png"]:enabled, [data-focus="csv"]:enabled'), 0, "nothing is seen that could be saved");
  // What is of what is asked for stays.
  await show(`#/compare?t=${cluster}&t=${other}`);
  await seen('[data-trouble="unavailable"]:visible');
  await seen(charts);
  await tab.unroute(question);
  await show(`#/compare?t=${cluster}&t=${other}&axis=time`);
  await seen('[data-focus="png"]:enabled');
  await until("no trouble", async () => (await count("[data-trouble]:visible, [data-absence]:visible")) === 0);
  assert.ok((await count(charts)) > 0);
});

test("why no trial is offered to be compared is told, and where those are that are not offered", async () => {
  const list = "**/stepwell.v1.QueryService/ListTrials";
  const options = () => tab.locator('select[aria-label="Add a trial"] option').allInnerTexts();
  await tab.route(list, refusal(403, "permission_denied"));
  await tab.goto(`${stand.url}#/compare`);
  await tab.reload();
  await seen('[data-absence="not permitted"]:has-text("told by a test")');
  assert.deepEqual(await options(), ["Choose a trial …"]);
  await tab.unroute(list);
  await tab.click('button:text-is("Try again")');
  await seen('[data-absence="empty"]:has-text("Choose two trials or more")');
  assert.equal(await count('[data-absence="not permitted"]'), 0);
  assert.ok((await options()).includes("cluster"));
  assert.ok(!(await options()).some((option) => option.startsWith("older ones")), "all are offered");
  // As where there are more than are listed: a page of one.
  await tab.route(list, (route) => route.continue({ postData: Buffer.from([0x20, 1]) }));
  await tab.reload();
  await until("one, and where the others are", async () => (await options()).length === 3);
  assert.equal((await options()).at(-1), "older ones: by their boxes in the list of trials");
  assert.equal(await tab.locator('select[aria-label="Add a trial"] option').last().isDisabled(), true);
  await tab.unroute(list);
});

test("a database that hangs is told on the master's page, and what a trial's pages show stays", async () => {
  const second = await tab.context().newPage();
  await second.goto(`${stand.url}#/admin`);
  const database = second.locator('dl.facts div:has(dt:text-is("Database")) dd');
  await until("a database that answers", async () => (await database.count()) === 1 && (await database.innerText()) === "up");
  // Of one that has ended nothing is asked for a minute.
  raw = new RawWriters(stand.ports.grpc);
  const runs = await raw.write({
    trial: "runs", rank: 0, open: true, startUs: (Math.floor(Date.now() / 1000) - 20) * 1e6, stepUs: 500_000, ticks: 40, firstBatch: 0,
    series: [{ group: "timing", name: "step", unit: "seconds", kind: duration, value: () => 0.5 }],
  });
  await tab.goto(`${stand.url}#/trial/${runs}/timings`);
  await tab.reload();
  await seen('tr.total:has-text("step")');
  stand.stopDatabase();
  await until("that it is down", async () => /^down: PostgreSQL connection: no answer in time/.test(await database.innerText()));
  assert.match(await second.innerText(".note"), /The database does not answer: agents keep what they have/);
  // What was there stays, with a word of its age; what was not is told to be missing.
  await seen('[data-trouble="unavailable"]:has-text("The master cannot answer now: what you see is as of before")');
  assert.ok(await tab.locator('tr.total:has-text("step")').first().isVisible());
  assert.equal(await count('[role="alert"]:not(.lost)'), 0);
  await show(`#/trial/${other}/timings`);
  await seen('[data-absence="unavailable"]:has-text("The master cannot answer now")');
  assert.equal(await count("tr.total"), 0, "nothing of the trial before");
  assert.equal(await bars(), 0, "the master answers");
  stand.goOnDatabase();
  await until("a database that answers again", async () => (await database.innerText()) === "up", soonMs);
  assert.equal(await second.locator('.note:has-text("database")').count(), 0);
  await seen('tr.total:has-text("step")');
  assert.equal(await count('[data-absence="unavailable"]'), 0);
  await second.close();
});

test("nothing went wrong in the page, and nothing was asked of others", () => {
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
