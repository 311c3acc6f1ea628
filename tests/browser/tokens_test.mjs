// The page for who may not see all: a browser whose token reads one project, before a master that speaks TLS and asks for tokens, until the token
// is revoked while it looks.
//
//   STEPWELL_BROWSER_TEST=BIN-FOLDER:PAGE-FOLDER:PLAYWRIGHT:CHROMIUM:RECORDER-LIBRARY node --test tokens_test.mjs
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { before, test } from "node:test";
import { join } from "node:path";
import { duration, RawWriters } from "./raw_writer.mjs";
import { deadlineMs, soon, Stand } from "./stand.mjs";
import { bin, closesAtEnd, count, foreign, gone, loaded, openTab, page, seen, show, tab, text, troubles } from "./tab.mjs";
import { composerCycle } from "./viewer.mjs";

const stand = new Stand(bin, page);
let raw;
let ours;
let theirs;
let reader;

const write = (project, trial, open = true) => raw.write({
  project, trial, rank: 0, open, firstBatch: 0, startUs: (Date.now() - 20_000) * 1000, stepUs: 100_000, ticks: 150,
  series: [
    { group: "timing", name: "step", unit: "seconds", kind: duration, value: () => 0.1 }, { group: "training", name: "loss", value: (tick) => 1 / (tick + 1) },
  ],
});

before(async () => {
  const certificates = join(stand.folder, "certs");
  const made = stand.start("tls init", join(bin, "stepwell"), ["tls", "init", certificates, "--name", "127.0.0.1"]);
  assert.equal((await made.ended).code, 0, made.said);
  const tokenFile = join(stand.folder, "token");
  stand.scheme = "https";
  stand.options = ["--tls-cert", join(certificates, "server.pem"), "--tls-key", join(certificates, "server.key"), "--token-file", tokenFile];
  await stand.startMaster();
  const token = readFileSync(tokenFile, "utf8").trim();
  stand.environment = { STEPWELL_TLS_CA: join(certificates, "ca.pem"), STEPWELL_TOKEN: token };
  raw = new RawWriters(stand.ports.grpc, { ca: readFileSync(join(certificates, "ca.pem")), token });
  ours = await write("vision", "resnet");
  theirs = await write("speech", "conformer");
  reader = JSON.parse(await stand.command("token", "create", "page", "--grant", "read:vision", "--json"));
  await openTab(stand, [], { ignoreHTTPSErrors: true, httpCredentials: { username: "any", password: reader.text } });
}, { timeout: 3 * deadlineMs });

closesAtEnd(stand, () => raw?.close());

test("who may read one project sees its trials, and of others that they are not found", async () => {
  await tab.goto(stand.url);
  await seen('tbody tr:has-text("vision/resnet")');
  assert.equal(await count("tbody tr"), 1);
  await show(`#/trial/${ours}/metrics`);
  await seen('[data-metric="training/loss"] canvas');
  await seen('[data-follow="live"]');
  await show(`#/trial/${theirs}/timings`);
  await seen('[data-absence="failed"]:has-text("Not found")');
  assert.ok(!(await text("main")).includes("conformer"));
  await show(`#/compare?t=${ours}&t=${theirs}`);
  await seen('[data-absence="failed"]:has-text("Not found")');
});

test("the master's state is not permitted, with the grant that is missing; the caps of one's own are seen", async () => {
  await show("#/admin");
  await seen('[data-absence="not permitted"]');
  await loaded("the master's page");
  assert.equal(await count('[data-absence="not permitted"]'), 1, "its state");
  assert.match(await text('[data-absence="not permitted"]'), /Ask whoever runs the master for access/);
  assert.match(await text('[data-absence="not permitted"] .detail'), /read:\*/);
  await seen('section[aria-label="Caps"] tr:has-text("Age of samples"):has-text("default")');
  await tab.fill("#cap-rawAgeSeconds", "30d");
  await tab.click('section[aria-label="Caps"] button[type="submit"].primary');
  await seen('section[aria-label="Caps"] [data-absence="not permitted"]');
  assert.match(await text('section[aria-label="Caps"] [data-absence="not permitted"]'), /admin/);
});

test("what may be read and not changed is told where it was tried", async () => {
  const file = join(stand.folder, "ep0-ba3-rank0.json");
  writeFileSync(file, composerCycle(0, 1_000_000));
  await stand.command("trace", "import", `id:${ours}`, file);
  await show(`#/trial/${ours}/traces`);
  await tab.click('tr[data-trace="1"] button:has-text("Delete")');
  await tab.click('tr[data-trace="1"] button:text-is("Delete")');
  await seen('[data-absence="not permitted"]:has-text("write:vision")');
  assert.equal(await count('tr[data-trace="1"]'), 1);
});

/** Of a page that was open when its token was revoked: that it is told, and that nothing which was there is left. */
async function isDenied(of, what, ms = deadlineMs) {
  await of.waitForSelector('main [data-absence="not permitted"]:has-text("may have been revoked")', { timeout: ms });
  await soon(async () => {
    assert.equal(await of.locator("main :is(canvas, tbody tr, dl, .legend, .facts):visible").count(), 0, what);
    assert.doesNotMatch(await of.locator("main").innerText(), /resnet|alexnet|vgg|node-1|vision/, what);
  }, ms);
}

test("a token that is revoked while the page is open takes away what was shown, and says what to do", async () => {
  const second = await write("vision", "alexnet");
  const views = [
    ["#/trials", "tbody tr"], [`#/trial/${ours}/timings`, "tr.total"], [`#/trial/${ours}/completeness`, '.scroll[aria-label="Writers"]'],
    [`#/compare?t=${ours}&t=${second}`, ".charts canvas"],
  ];
  const tabs = [];
  for (const [hash, shows] of views) {
    const opened = await tab.context().newPage();
    await opened.goto(`${stand.url}${hash}`);
    await opened.waitForSelector(shows, { timeout: deadlineMs });
    await opened.waitForSelector('main :text("resnet")', { timeout: deadlineMs });
    tabs.push([hash, opened]);
  }
  await tab.goto(`${stand.url}#/trial/${ours}/metrics`);
  await seen('[data-metric="training/loss"] canvas');
  await stand.command("token", "revoke", reader.token.token_id);
  for (const [hash, opened] of tabs) {
    // It asks every ten seconds, and at once what is new.
    if (hash.startsWith("#/compare")) await opened.click('button:has-text("By time since start")');
    await isDenied(opened, hash);
    if (!hash.startsWith("#/trial/")) continue;
    // What was kept of it is on none of its views.
    for (const view of ["Completeness", "Traces", "Timings"]) {
      await opened.click(`nav.tabs a:text-is("${view}")`);
      await opened.waitForSelector(`nav.tabs a[aria-current="page"]:text-is("${view}")`);
      await isDenied(opened, `${hash}, then ${view}`);
      assert.equal(await opened.locator("main [data-absence]").count(), 1);
    }
    assert.equal(await opened.title(), `Trial ${ours} · Stepwell`);
  }
  for (const [, opened] of tabs) await opened.close();
  await seen('main [data-absence="not permitted"]:has-text("may have been revoked")');
  await gone("main canvas");
  assert.match(await text('main [data-absence="not permitted"]'), /Reload the page/);
  assert.equal(await tab.locator(".lost:visible").count(), 0, "the master is there");
  for (const hash of ["#/trials", "#/admin", `#/compare?t=${ours}&t=${theirs}`, `#/trial/${ours}/traces`]) {
    await show(hash);
    await seen('main [data-absence="not permitted"]:has-text("may have been revoked")');
    await loaded(hash);
    assert.equal(await count("main canvas:visible, tbody tr:visible"), 0, hash);
  }
});

test("of a trial that has ended all goes at once, whichever of its questions is told first", async () => {
  const ended = await write("vision", "vgg", false);
  const watcher = JSON.parse(await stand.command("token", "create", "watcher of what has ended", "--grant", "read:vision", "--json"));
  const context = await tab.context().browser().newContext({ ignoreHTTPSErrors: true, httpCredentials: { username: "any", password: watcher.text } });
  const opened = await context.newPage();
  await opened.goto(`${stand.url}#/trial/${ended}/metrics`);
  await opened.waitForSelector('[data-metric="training/loss"] canvas', { timeout: deadlineMs });
  // One that runs is looked at every two seconds, one that has ended each half minute.
  await opened.waitForSelector('.head:has(h1:has-text("vision/vgg")) .badge:has-text("completed")', { timeout: deadlineMs });
  await stand.command("token", "revoke", watcher.token.token_id);
  await opened.click('button:text-is("Batch")');
  await isDenied(opened, "its head", 12_000);
  assert.equal(await opened.locator("main [data-absence]").count(), 1);
  assert.equal(await opened.title(), `Trial ${ended} · Stepwell`);
  await context.close();
});

test("who saw the master's agents and caps sees neither when the token is revoked", async () => {
  const watcher = JSON.parse(await stand.command("token", "create", "watcher", "--grant", "read:*", "--json"));
  raw.connect({ trial: "resnet", agent: "node-1", version: "stepwell-agent/1" });
  const context = await tab.context().browser().newContext({ ignoreHTTPSErrors: true, httpCredentials: { username: "any", password: watcher.text } });
  const opened = await context.newPage();
  await opened.goto(`${stand.url}#/admin`);
  await opened.waitForSelector('section[aria-label="Agents"] tr:has-text("node-1")', { timeout: deadlineMs });
  await opened.waitForSelector("#cap-rawAgeSeconds", { timeout: deadlineMs });
  await stand.command("token", "revoke", watcher.token.token_id);
  await isDenied(opened, "the master's page");
  assert.equal(await opened.locator('section[aria-label="Agents"]:visible').count(), 0);
  assert.equal(await opened.locator('section[aria-label="Caps"] [data-absence="not permitted"]').count(), 1);
  await context.close();
});

test("nothing went wrong in the page, and nothing was asked of others", () => {
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
