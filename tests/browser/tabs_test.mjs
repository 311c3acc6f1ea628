// What tabs and lists do while somebody reads them, in a real browser before a real master: tables that are
// refreshed in place, failures that pass, actions that throw.
//
//   STEPWELL_BROWSER_TEST=BIN-FOLDER:PAGE-FOLDER:PLAYWRIGHT:CHROMIUM:RECORDER-LIBRARY node --test tabs_test.mjs
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { before, test } from "node:test";
import { join } from "node:path";
import { deadlineMs, Stand, until } from "./stand.mjs";
import { bin, closesAtEnd, count, foreign, gone, openTab, page, seen, show, tab, text, troubles } from "./tab.mjs";
import { composerCycle } from "./viewer.mjs";

const stand = new Stand(bin, page);
let trial;

before(async () => {
  await stand.startMaster();
  stand.startAgent();
  stand.train("reading", "--seconds", "150");
  await openTab(stand);
  await tab.goto(stand.url);
  await seen('tbody tr:has-text("reading") .badge[data-tone="live"]');
  trial = (await tab.locator('tbody tr:has-text("reading") td a').first().getAttribute("href")).match(/\d+/)[0];
}, { timeout: 4 * deadlineMs });

closesAtEnd(stand);

/** What stays of a table while `changing`, a cell of it, gets another text. */
async function assertKept(changing) {
  await tab.evaluate(() => {
    const scroller = document.querySelector("main .scroll");
    scroller.reader = true;
    scroller.focus();
    getSelection().selectAllChildren(scroller.querySelector("tbody td.name"));
    window.selectedText = String(getSelection());
  });
  const before = await text(changing);
  await until("the table is refreshed", async () => (await text(changing)) !== before);
  assert.deepEqual(await tab.evaluate(() => [
    document.querySelector("main .scroll").reader, document.activeElement === document.querySelector("main .scroll"),
    String(getSelection()) === window.selectedText && window.selectedText !== "",
  ]), [true, true, true]);
}

test("a list that is refreshed keeps its place, the focus and the selection", async () => {
  await assertKept('tbody td[data-label="Samples"]');
});

test("so do the tables of timings", async () => {
  await show(`#/trial/${trial}/timings`);
  await seen('tr.total:has-text("step")');
  await assertKept("tr.total td:nth-child(10)");
});

test("a failure of the list of traces passes, and the list stays meanwhile", async () => {
  const file = join(stand.folder, "ep0-ba1-rank0.json");
  writeFileSync(file, composerCycle(0, 0));
  await stand.command("trace", "import", "reading", file);
  await show(`#/trial/${trial}/traces`);
  await seen('tr[data-trace="1"]');
  await tab.route("**/ListTraces", (route) => route.fulfill({ status: 503, contentType: "application/json", body: '{"code":"unavailable","message":"the database is gone"}' }));
  await seen('[data-trouble="unavailable"]:has-text("the database is gone")');
  assert.equal(await count('tr[data-trace="1"]:visible'), 1);
  await tab.unroute("**/ListTraces");
  await gone('[data-trouble="unavailable"]');
  await seen('tr[data-trace="1"]');
});

test("an action that the browser has no memory for says so, and the next one goes on", async () => {
  await tab.evaluate(() => {
    window.realBlob = Blob;
    window.Blob = function () { throw new RangeError("Array buffer allocation failed"); };
  });
  await tab.click('[data-focus="save-1"]');
  await seen('[data-absence="failed"]:has-text("Array buffer allocation failed")');
  troubles.splice(0, troubles.length, ...troubles.filter((said) => !said.includes("Array buffer allocation failed")));
  await tab.evaluate(() => { window.Blob = window.realBlob; });
  await Promise.all([tab.waitForEvent("download"), tab.click('[data-focus="save-1"]')]);
  await gone('[data-absence="failed"]');
});

test("nothing went wrong in the page, and nothing was asked of others", () => {
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
