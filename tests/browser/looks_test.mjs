// How the page looks and reads, whatever it shows: names as long and as bad as the contract lets them be, both themes,
// phones and desks, boxes that say why there is nothing, the bar of a lost connection.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { lowContrast, unnamedControls } from "./looks.mjs";
import { RawWriters } from "./raw_writer.mjs";
import { hostile, writeCluster, writeHostile } from "./scenes.mjs";
import { deadlineMs, Stand, until } from "./stand.mjs";
import { anything, assertUnharmed, bin, closeTab, count, foreign, graveFindings, loaded, openTab, page, seen, tab, text, troubles } from "./tab.mjs";
import { composerCycle } from "./viewer.mjs";

const stand = new Stand(bin, page);
let raw;
let bad;
let cluster;

before(async () => {
  await stand.startMaster();
  raw = new RawWriters(stand.ports.grpc);
  ({ trialId: cluster } = await writeCluster(raw));
  bad = await writeHostile(raw);
  raw.connect({ trial: "kept", agent: hostile.agent, version: hostile.version });
  const trace = join(stand.folder, hostile.file);
  writeFileSync(trace, composerCycle(0, 1_000_000));
  await stand.command("trace", "import", `id:${bad}`, trace);
  await stand.command("caps", "set", "--trial", `id:${bad}`, "--group", hostile.group, "--samples", "1M");
  await openTab(stand);
  await tab.goto(stand.url);
}, { timeout: 3 * deadlineMs });

after(async () => {
  await closeTab();
  raw?.close();
  await stand.close();
}, { timeout: deadlineMs });

/** The page that is left is gone when it returns. */
const goTo = (hash) => tab.evaluate((to) => new Promise((done) => {
  if (location.hash === to) return done();
  addEventListener("hashchange", () => done(), { once: true });
  location.hash = to;
}), hash);

/** Nothing reaches out of the page sideways, and on a phone no list of cards scrolls. */
async function assertFits(where, width) {
  await tab.setViewportSize({ width, height: 900 });
  const over = await tab.evaluate(() => {
    const wide = document.documentElement.scrollWidth - innerWidth;
    const last = wide > 0 ? [...document.querySelectorAll("main *")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".scroll")).at(-1) : null;
    const scrolling = [...document.querySelectorAll(".scroll")].filter((one) => one.querySelector("table.cards") && one.scrollWidth > one.clientWidth);
    return { wide, who: last?.outerHTML.slice(0, 200), scrolling: scrolling.map((one) => `${one.ariaLabel}: ${one.scrollWidth} px in ${one.clientWidth}`) };
  });
  assert.ok(over.wide <= 0, `${where} is ${over.wide} px too wide at ${width}: ${over.who}`);
  if (width < 640) assert.deepEqual(over.scrolling, [], where);
}

test("names as long as they may be are text on each page, and fit a phone", async () => {
  const trial = `#/trial/${bad}`;
  const metric = encodeURIComponent(`${encodeURIComponent(hostile.group)}/${hostile.metric}`);
  const shown = "<script>window.harmed=1</script>";
  const pages = [
    ["#/trials", `tbody a:has-text("${shown}")`],
    [`${trial}/timings`, `td.name:has-text("<script>")`], [`${trial}/metrics`, `[data-metric] h3:has-text("${shown}")`],
    [`${trial}/metrics?m=${metric}`, `.legend bdi:has-text("${shown}")`],
    [`${trial}/heat`, "canvas"], [`${trial}/traces`, `tr[data-trace] :text("<script>")`],
    [`${trial}/completeness`, `td:has-text("${shown}")`], [`#/compare?t=${bad}&t=${cluster}`, `.compared li:has-text("${shown}")`],
    ["#/admin", `section[aria-label="Agents"] td:has-text("${shown}")`],
  ];
  for (const [hash, selector] of pages) {
    await tab.setViewportSize({ width: 1280, height: 900 });
    await goTo(hash);
    await seen(selector);
    await loaded(hash);
    await assertUnharmed(hash);
    assert.doesNotMatch(await tab.innerText("main"), /[\u202a-\u202e\u2066-\u2069]/, `${hash}: nothing turns text around`);
    for (const width of [360, 1280]) await assertFits(hash, width);
    assert.deepEqual(await tab.evaluate(unnamedControls), [], hash);
  }
});

test("names as long as they may be are text in what is opened, and fit a phone", async () => {
  await tab.setViewportSize({ width: 360, height: 900 });
  await goTo("#/admin");
  await seen("#cap-seriesSamples");
  await tab.click('summary:has-text("Set elsewhere")');
  await tab.click('.places button:has-text("<script>")');
  await seen('h2:has-text("<script>")');
  await assertUnharmed("the caps of a group");
  await assertFits("the caps of a group", 360);
  await goTo(`#/trial/${bad}/metrics`);
  for (const what of ["Agents", "Metrics"]) {
    await tab.click(`details[data-choice="${what}"] summary`);
    await seen(`details[data-choice="${what}"][open] label:has-text("<script>")`);
    await assertFits(`the choice of ${what}`, 360);
    await tab.keyboard.press("Escape");
  }
  await assertUnharmed("choices");
  // The cause of a gap is told over the chart.
  await goTo(`#/trial/${bad}/metrics?m=${encodeURIComponent(`${encodeURIComponent(hostile.group)}/${hostile.metric}`)}`);
  await seen(".charts canvas");
  await tab.locator(".chart-canvas").first().focus();
  await tab.keyboard.press("ArrowLeft");
  await until("the cursor in the gap", async () => {
    await tab.keyboard.press("ArrowLeft");
    return (await count(".gap-words")) > 0;
  });
  assert.match(await text(".gap-words"), /ring full .*<script>/s);
  await assertFits("the words of a gap", 360);
  await assertUnharmed("the words of a gap");
});

test("on a phone tables are cards, and that of timings keeps its scopes in sight", async () => {
  await tab.setViewportSize({ width: 360, height: 900 });
  const cards = (label) => tab.locator(`.scroll[aria-label="${label}"]`).evaluateAll((all) => all.map((one) => one.querySelector("table").className));
  for (const [hash, labels] of [[`#/compare?t=${cluster}&t=${bad}`, ["Comparison"]], [`#/trial/${cluster}/completeness`, ["Gaps", "Writers"]], ["#/admin", ["Caps", "Agents"]]]) {
    await goTo(hash);
    for (const label of labels) {
      await seen(`.scroll[aria-label="${label}"] tbody tr`);
      assert.deepEqual(await cards(label), ["cards"], label);
    }
    await assertFits(hash, 360);
  }
  // Help is no heading, and a label does not run into its value.
  assert.equal(await tab.locator("#cap-seriesSamples-help").evaluate((one) => getComputedStyle(one).fontWeight), "400");
  const since = await tab.locator('td[data-label="Connected since"]').first().evaluate((one) => ({
    wraps: getComputedStyle(one, "::before").whiteSpace, gap: one.firstElementChild.getBoundingClientRect().left - one.getBoundingClientRect().left,
  }));
  assert.ok(since.wraps === "normal" && since.gap > 104, JSON.stringify(since));
  await goTo(`#/trial/${cluster}/timings`);
  await seen('tr.total:has-text("step")');
  const places = await tab.locator('.scroll[aria-label="Timings, rank 0"]').evaluate((one) => {
    one.scrollLeft = one.scrollWidth;
    const [box, row, heads] = [one.getBoundingClientRect(), one.querySelector("tr.total").children, one.querySelector("thead tr").children];
    const shown = (cell) => cell.getBoundingClientRect().width > 0;
    return {
      scrolled: one.scrollLeft > 0, name: row[0].getBoundingClientRect().left - box.left, last: box.right - row[row.length - 1].getBoundingClientRect().right,
      // What stands below a heading is its column.
      below: [...heads].filter(shown).every((head, at) => Math.abs(head.getBoundingClientRect().right - [...row].filter(shown)[at].getBoundingClientRect().right) < 1),
    };
  });
  assert.ok(places.scrolled && places.below && Math.abs(places.name) < 1 && Math.abs(places.last) < 1, JSON.stringify(places));
});

test("a name of a thousand characters makes no row higher than a screen", async () => {
  await tab.setViewportSize({ width: 1280, height: 900 });
  await goTo(`#/trial/${bad}/timings`);
  await seen('td.name:has-text("<script>")');
  const highest = await tab.evaluate(() => Math.max(...[...document.querySelectorAll("table[data-rank] tbody tr")].map((row) => row.getBoundingClientRect().height)));
  assert.ok(highest < 400, `${highest} px`);
});

/** Both themes on a phone and at a desk: what axe finds, contrast, names of controls. */
async function assertReadable(where, widths = [360, 1280]) {
  for (const colorScheme of ["light", "dark"]) {
    await tab.emulateMedia({ colorScheme });
    for (const width of widths) {
      await assertFits(where, width);
      assert.deepEqual(await tab.evaluate(lowContrast), [], `${where} ${colorScheme} ${width}`);
      assert.deepEqual(await graveFindings(), [], `${where} ${colorScheme} ${width}`);
    }
  }
  assert.deepEqual(await tab.evaluate(unnamedControls), [], where);
}

test("each page is readable in both themes, on a phone and at a desk", async () => {
  for (const hash of ["#/trials", ...["timings", "metrics", "heat", "traces", "completeness"].map((view) => `#/trial/${cluster}/${view}`), `#/compare?t=${cluster}&t=${bad}`, "#/admin"]) {
    await goTo(hash);
    await until(`something at ${hash}`, async () => (await count(anything)) > 0);
    await loaded(hash);
    await assertReadable(hash);
  }
});

test("boxes that say why there is nothing are readable, and so is the bar of a lost connection", async () => {
  const refuse = (status, code) => (route) => route.fulfill({ status, contentType: "application/json", body: JSON.stringify({ code, message: "w".repeat(300) }) });
  const ways = [["lost", (route) => route.abort("connectionrefused")], ["unavailable", refuse(503, "unavailable")], ["not permitted", refuse(403, "permission_denied")], ["failed", refuse(500, "internal")]];
  for (const [absence, answer] of ways) {
    await tab.route("**/stepwell.v1.*/*", answer);
    await tab.goto(`${stand.url}#/trial/${cluster}/metrics`);
    await tab.reload();
    await seen(`[data-absence="${absence}"]`);
    assert.equal(await tab.locator(".lost:visible").count(), absence === "lost" ? 1 : 0);
    await assertReadable(`a box of ${absence}`);
    await tab.unroute("**/stepwell.v1.*/*");
  }
  // Over what was there before.
  await tab.goto(`${stand.url}#/trials`);
  await tab.reload();
  await seen("tbody tr");
  await tab.route("**/stepwell.v1.*/*", ways[0][1]);
  await seen(".lost:visible");
  await assertReadable("trials below the bar");
  await tab.unroute("**/stepwell.v1.*/*");
});

test("nothing went wrong in the page, and nothing was asked of others", () => {
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
