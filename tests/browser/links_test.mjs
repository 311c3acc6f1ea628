// A link restores what it was copied from: the page of the list, whose caps are shown, what filters a comparison and a list of
// traces. And back goes back.
//
//   STEPWELL_BROWSER_TEST=BIN-FOLDER:PAGE-FOLDER:PLAYWRIGHT:CHROMIUM:RECORDER-LIBRARY node --test links_test.mjs
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { before, test } from "node:test";
import { join } from "node:path";
import { duration, RawWriters } from "./raw_writer.mjs";
import { deadlineMs, Stand, until } from "./stand.mjs";
import { bin, closesAtEnd, count, foreign, gone, openTab, page, seen, show, tab, text, troubles } from "./tab.mjs";
import { composerCycle } from "./viewer.mjs";

const stand = new Stand(bin, page);
const many = 103;
const sides = [];

before(async () => {
  await stand.startMaster();
  const raw = new RawWriters(stand.ports.grpc);
  const startUs = (Math.floor(Date.now() / 1000) - 60) * 1e6;
  for (const trial of ["left", "right"]) {
    sides.push(await raw.write({
      trial, rank: 0, startUs, stepUs: 1_000_000, ticks: 40, firstBatch: 0,
      series: [{ group: "timing", name: "step", unit: "seconds", kind: duration, value: () => 1 }, { group: "training", name: "loss", value: () => 2 }],
    }));
  }
  for (let at = 1; at <= many - 2; ++at) await raw.write({ trial: `sweep-${String(at).padStart(3, "0")}`, project: "many" });
  raw.close();
  for (const rank of [0, 1]) {
    const file = join(stand.folder, `ep0-ba1-rank${rank}.json`);
    writeFileSync(file, composerCycle(rank, 0));
    await stand.command("trace", "import", `id:${sides[0]}`, file);
  }
  await openTab(stand);
  await tab.goto(stand.url);
}, { timeout: 4 * deadlineMs });

closesAtEnd(stand);

/** Follows the address as somebody does who was sent it: in a page that knows nothing else. */
async function followLink(has) {
  const link = await until(`${has} in the address`, async () => {
    const href = await tab.evaluate(() => location.href);
    return href.includes(has) && href;
  });
  await tab.goto("about:blank");
  await tab.goto(link);
}

const pager = 'nav[aria-label="Pages of trials"]';
const names = () => tab.locator("tbody td.name a").allInnerTexts();
const listed = (what, first, length) => until(what, async () => {
  const all = await names();
  return all[0] === first && all.length === length;
});

test("a page of the list is linked to, and turned from there", async () => {
  await listed("the newest", `many/sweep-${many - 2}`, 50);
  await tab.click('button:has-text("Older")');
  await listed("the second page", "many/sweep-051", 50);
  await tab.click('button:has-text("Older")');
  await listed("the last page", "many/sweep-001", 3);
  await followLink("page=3");
  await listed("the last page, of a link", "many/sweep-001", 3);
  assert.match(await text(pager), /page 3, 3 trials/);
  // What lies between was never seen: only the first is known.
  await tab.click('button:has-text("« Newest")');
  await listed("the newest", `many/sweep-${many - 2}`, 50);
  await tab.click('button:has-text("Older")');
  await listed("the second page", "many/sweep-051", 50);
  await tab.click('button:has-text("‹ Newer")');
  await listed("the newest again", `many/sweep-${many - 2}`, 50);
  await tab.goBack();
  await listed("the page before, of the browser", "many/sweep-051", 50);
  await tab.fill('input[type="search"][aria-label="Search trials by name"]', "sweep-00");
  await listed("another list begins at its first page", "many/sweep-009", 9);
  await until("an address without a page", () => tab.evaluate(() => !location.hash.includes("page=")));
  // Of another list, or made up.
  await show("#/trials?page=2&after=nonsense");
  await seen('[data-absence="failed"]');
  await tab.click('button:has-text("Try again")');
  await listed("the first page", `many/sweep-${many - 2}`, 50);
});

test("whose caps are shown stands in the address", async () => {
  await show("#/admin");
  await seen('h2:has-text("Caps of all trials")');
  await tab.selectOption("#place-owner", "project");
  await tab.fill("#place-name", "many");
  await tab.fill("#place-group", "cpu");
  await tab.click('button:has-text("Show its caps")');
  await seen('h2:has-text("Caps of project many, group cpu")');
  await followLink("name=many");
  await seen('h2:has-text("Caps of project many, group cpu")');
  assert.deepEqual(await Promise.all(["#place-owner", "#place-name", "#place-group"].map((field) => tab.inputValue(field))), ["project", "many", "cpu"]);
  await seen("#cap-rawAgeSeconds");
  await tab.click('section[aria-label="Caps"] button:text-is("All trials")');
  await seen('h2:has-text("Caps of all trials")');
  await tab.goBack();
  await seen('h2:has-text("Caps of project many, group cpu")');
});

test("what filters a comparison stands in the address", async () => {
  await show(`#/compare?t=${sides[0]}&t=${sides[1]}`);
  const row = (name) => `tbody tr:has(td.name:has-text("${name}"))`;
  await seen(row("step"));
  await seen(row("loss"));
  await tab.fill('main input[aria-label="Filter"]', "LOSS");
  await gone(row("step"));
  await followLink("q=LOSS");
  await seen(row("loss"));
  assert.equal(await count(row("step")), 0);
  assert.equal(await tab.inputValue('main input[aria-label="Filter"]'), "LOSS");
  await tab.fill('main input[aria-label="Filter"]', "");
  await seen(row("step"));
  await until("an address without a filter", () => tab.evaluate(() => !location.hash.includes("q=")));
});

test("what filters the list of traces stands in the address", async () => {
  await show(`#/trial/${sides[0]}/traces`);
  await seen('tr[data-trace="2"]');
  await tab.fill('main input[aria-label="Filter"]', "rank1");
  await gone('tr[data-trace="1"]');
  await followLink("q=rank1");
  await seen('tr[data-trace="2"]');
  assert.equal(await count('tr[data-trace="1"]'), 0);
  assert.equal(await tab.inputValue('main input[aria-label="Filter"]'), "rank1");
});

test("a trace is opened in no window where the browser lets none open, and no button says so where the master names no viewer", async () => {
  await seen('tr[data-trace="2"] button:text-is("Open")');
  await seen('button:text-is("Open in Perfetto")');
  const [opened, asked] = [[], []];
  await tab.exposeFunction("wasOpened", (...of) => { opened.push(of); });
  await tab.evaluate(() => { window.open = (...of) => { void window.wasOpened(...of); return null; }; });
  tab.on("request", (request) => { if (request.url().includes("GetTrace")) asked.push(request.url()); });
  await tab.click('tr[data-trace="2"] button:text-is("Open")');
  await seen('[data-absence="failed"]:has-text("The browser let no window open")');
  assert.deepEqual(opened, [["https://ui.perfetto.dev", "_blank"]]);
  assert.deepEqual(asked, []); // a trace that nobody would see is not fetched
  await stand.killMaster();
  stand.options = ["--trace-viewer", ""];
  await stand.startMaster();
  await tab.reload();
  await seen('tr[data-trace="2"] button:text-is("Download")');
  await seen('button:has-text("Download merged")');
  assert.equal(await count('button:text-is("Open"), button:text-is("Open in Perfetto")'), 0);
});

test("an address of more charts than the master takes at once has the first of them", async () => {
  const metrics = ["training/loss", ...Array.from({ length: 1500 }, (_, at) => `training/gone-${at}`)].map((id) => `&m=${encodeURIComponent(id)}`).join("");
  await show(`#/compare?t=${sides[0]}&t=${sides[1]}${metrics}`);
  await seen('.charts [data-metric="training/loss"] canvas');
  assert.equal(await count("main [data-absence]:visible"), 0);
});

test("nothing went wrong in the page, and nothing was asked of others", () => {
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
