// What needs no pointer, in a real browser before a real master: from the link that skips the top bar to a comparison, a
// choice and a closer look, by Tab, Enter, the space bar and keys of the charts alone. A closer look is of finer data.
//
//   STEPWELL_BROWSER_TEST=BIN-FOLDER:PAGE-FOLDER:PLAYWRIGHT:CHROMIUM:RECORDER-LIBRARY node --test keys_test.mjs
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { duration, RawWriters } from "./raw_writer.mjs";
import { clusterSeconds, writeCluster } from "./scenes.mjs";
import { deadlineMs, Stand, until } from "./stand.mjs";
import { bin, closesAtEnd, count, foreign, gone, loaded, openTab, page, saved, seen, tab, text, troubles } from "./tab.mjs";
import { composerCycle } from "./viewer.mjs";

const stand = new Stand(bin, page);
const cpu = '[data-metric="cpu/cpu_util_simple"]';
/** More than there are on any way here. */
const stopsMax = 40;
let raw;
let cluster;

before(async () => {
  await stand.startMaster();
  raw = new RawWriters(stand.ports.grpc);
  cluster = await writeCluster(raw);
  await writeCluster(raw, "other");
  for (const rank of [0, 1]) {
    const trace = join(stand.folder, `ep0-ba3-rank${rank}.json`);
    writeFileSync(trace, composerCycle(rank, 1_000_000));
    await stand.command("trace", "import", `id:${cluster.trialId}`, trace);
  }
  await openTab(stand);
}, { timeout: 3 * deadlineMs });

closesAtEnd(stand, () => raw?.close());

const holdsFocus = (selector) => tab.evaluate((of) => document.activeElement?.matches(of) ?? false, selector);

/** From where the focus is, key by key; each stop on the way can be seen. */
async function tabTo(selector, key = "Tab") {
  for (let stop = 0; stop < stopsMax; ++stop) {
    await tab.keyboard.press(key);
    const { outline, width } = await tab.evaluate(() => {
      const focused = document.activeElement;
      return { outline: getComputedStyle(focused).outlineStyle, width: focused.getBoundingClientRect().width };
    });
    assert.ok(outline !== "none" && width > 0, `the focus is seen: ${await tab.evaluate(() => document.activeElement.outerHTML.slice(0, 120))}`);
    if (await holdsFocus(selector)) return;
  }
  assert.fail(`${selector} is not reached by ${stopsMax} times ${key}`);
}

async function begin(hash, selector) {
  await tab.goto(`${stand.url}${hash}`);
  await tab.reload();
  await seen(selector);
  await loaded(hash);
  await tabTo(".skip");
  await tab.keyboard.press("Enter");
  assert.ok(await holdsFocus("main"), "behind the top bar");
}

test("two trials are chosen and compared by keys, and one of their rows gets a chart", async () => {
  await begin("#/trials", 'tbody a:has-text("cluster")');
  for (const name of ["other", "cluster"]) {
    await tabTo(`input[aria-label="Compare ${name}"]`);
    await tab.keyboard.press("Space");
  }
  await seen('button:text-is("Compare 2")');
  await tabTo(".tools button", "Shift+Tab");
  await tab.keyboard.press("Enter");
  await seen('tr[data-metric="timing/train_batch"]');
  await seen('[data-metric="timing/step"] canvas');
  await tabTo('tr[data-metric="timing/train_batch"] input');
  await tab.keyboard.press("Space");
  await seen('.charts [data-metric="timing/train_batch"] canvas');
  assert.ok(await holdsFocus('tr[data-metric="timing/train_batch"] input'), "who chose stays there");
});

test("a machine is chosen by keys, and the choice closes behind who leaves it", async () => {
  await begin(`#/trial/${cluster.trialId}/metrics`, `${cpu} .legend li >> nth=2`);
  await tabTo('details[data-choice="Agents"] summary');
  await tab.keyboard.press("Enter");
  await seen('details[data-choice="Agents"][open]');
  await tabTo('details[data-choice="Agents"] input[type="checkbox"]');
  await tab.keyboard.press("Space");
  await until("one machine is left", async () => (await count(`${cpu} .legend li`)) === 1);
  await until("the machine in the address", () => tab.evaluate(() => location.hash.includes("l.agent=node-1")));
  assert.ok(await tab.evaluate(() => document.querySelector('details[data-choice="Agents"]').contains(document.activeElement)), "who chose stays there");
  await tab.keyboard.press("Escape");
  await until("the choice is closed", async () => (await count('details[data-choice="Agents"][open]')) === 0);
});

test("on a phone what is drawn is chosen behind a button, by keys, too", async () => {
  const [desk, choice] = [tab.viewportSize(), 'details[data-choice="Agents"] summary'];
  await tab.setViewportSize({ width: 360, height: 800 });
  await begin(`#/trial/${cluster.trialId}/metrics`, `${cpu} .legend li >> nth=2`);
  assert.equal(await tab.locator(choice).isVisible(), false);
  await tabTo("[data-focus=fold]");
  await tab.keyboard.press("Enter");
  await seen('[data-focus=fold][aria-expanded="true"]');
  await tabTo(choice);
  await tab.setViewportSize(desk);
  assert.equal(await tab.locator("[data-focus=fold]").isVisible(), false, "at a desk they stand there");
  assert.ok(await tab.locator(choice).isVisible());
});

test("on a phone a rank, a heat map's metric and what saves are behind a button that tells what is chosen", async () => {
  const desk = tab.viewportSize();
  await tab.setViewportSize({ width: 360, height: 800 });
  for (const [hash, there, first, told, value, toldThen] of [
    [`#/trial/${cluster.trialId}/timings`, "tr.total", "[data-focus=rank]", "rank 0", "all", "all ranks"],
    [`#/trial/${cluster.trialId}/heat`, ".heat canvas[tabindex]", "[data-focus=metric]", "timing/step", "cpu/cpu_util_simple", "cpu/cpu_util_simple"],
  ]) {
    await begin(hash, there);
    for (const part of [first, "[data-focus=csv]", "[data-focus=png]", "[data-focus=link]"]) assert.equal(await tab.locator(part).isVisible(), false, `${part} of ${hash}`);
    assert.equal(await tab.locator("[data-focus=fold]").innerText(), told);
    await tabTo("[data-focus=fold]");
    await tab.keyboard.press("Enter");
    await seen('[data-focus=fold][aria-expanded="true"]');
    await tabTo(first);
    await tab.selectOption(first, value);
    await until("the choice is told", async () => (await tab.locator("[data-focus=fold]").innerText()) === toldThen);
    assert.ok(await tab.locator(first).isVisible(), "what was opened stays open");
    assert.ok(await tab.locator("[data-focus=csv]").isVisible());
  }
  await tab.setViewportSize(desk);
  assert.equal(await tab.locator("[data-focus=fold]").isVisible(), false, "at a desk they stand there");
});

test("what a cap would remove is asked and the cap is set by keys", async () => {
  await begin("#/admin", "#cap-seriesSamples");
  await tabTo("#cap-seriesSamples");
  await tab.keyboard.type("1M");
  await tab.keyboard.press("Enter");
  await seen('button:text-is("Set these caps")');
  assert.match(await text('.plan:has(button:text-is("Set these caps"))'), /It would remove/);
  assert.equal(await text('tr:has(#cap-seriesSamples) td[data-label="Decided by"]'), "default", "nothing is set by looking");
  await tabTo(".plan button.primary");
  await tab.keyboard.press("Enter");
  await until("the cap holds", async () => (await count("#cap-seriesSamples")) === 1 && (await text('tr:has(#cap-seriesSamples) td[data-label="Holds"]')) === "1M");
  assert.match(await stand.command("caps", "get"), /\nsamples +1000000 +1000000 /);
  assert.ok(await holdsFocus("#cap-seriesSamples"), "who set it is back where they typed it");
  await tab.keyboard.type("2M");
  await tabTo("[data-focus=take-back]");
  await tab.keyboard.press("Enter");
  await until("what was typed is gone", async () => (await count("#cap-seriesSamples")) === 1 && (await tab.inputValue("#cap-seriesSamples")) === "1M");
  assert.ok(await holdsFocus("[data-focus=take-back]"), "the form was made anew around it");
});

test("what was previewed cannot be set once the form says something else", async () => {
  const set = [];
  const hears = (request) => request.url().endsWith("AdminService/SetCaps") && set.push(request.url());
  tab.on("request", hears);
  await begin("#/admin", "#cap-rawAgeSeconds");
  await tab.fill("#cap-rawAgeSeconds", "3d");
  await tab.keyboard.press("Enter");
  const sets = 'button:text-is("Set these caps")';
  await seen(sets);
  assert.match(await text(`.plan:has(${sets})`), /It sets: age of samples 3d\./);
  assert.ok(await holdsFocus("#cap-rawAgeSeconds"));
  await tab.keyboard.press("End");
  await tab.keyboard.type("h");
  await gone(sets);
  // Nor what is answered once it is too late.
  const previews = "**/stepwell.v1.AdminService/PreviewCaps";
  let goesOn;
  const held = new Promise((done) => (goesOn = done));
  let answered = false;
  await tab.route(previews, async (route) => {
    const answer = await route.fetch();
    await held;
    await route.fulfill({ response: answer }).catch(() => {}); // Nobody waits for it.
    answered = true;
  });
  await tab.fill("#cap-rawAgeSeconds", "3d");
  await tab.keyboard.press("Enter");
  await seen('section[aria-label="Caps"] [data-absence="loading"]');
  await tab.fill("#cap-rawAgeSeconds", "6d");
  goesOn();
  await until("the late answer", () => answered);
  // It would be shown in the frames behind it.
  await tab.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))));
  assert.equal(await count(sets), 0, "a preview that came too late");
  await tab.unroute(previews);
  await tab.keyboard.press("Enter");
  await seen(sets);
  assert.match(await text(`.plan:has(${sets})`), /It sets: age of samples 6d\./);
  assert.deepEqual(set, []);
  await tab.click(sets);
  await until("the cap holds", async () => (await count("#cap-rawAgeSeconds")) === 1 && (await text('tr:has(#cap-rawAgeSeconds) td[data-label="Holds"]')) === "6d");
  await tab.fill("#cap-rawAgeSeconds", "");
  await tab.keyboard.press("Enter");
  await seen(sets);
  assert.match(await text(`.plan:has(${sets})`), /It sets: age of samples no longer set here\./);
  await tab.click("[data-focus=take-back]");
  await gone(sets);
  tab.off("request", hears);
});

test("a trial's views are gone to by keys, and the focus stays on them", async () => {
  await begin(`#/trial/${cluster.trialId}/timings`, "tr.total");
  for (const view of ["metrics", "heat"]) {
    await tabTo(`nav.tabs a[href*="/${view}"]`);
    await tab.keyboard.press("Enter");
    await seen(`nav.tabs a[aria-current="page"][href*="/${view}"]`);
    assert.ok(await holdsFocus(`nav.tabs a[href*="/${view}"]`), `on the link to ${view}`);
  }
});

test("caps of other places are gone to by keys", async () => {
  await stand.command("caps", "set", "--trial", `id:${cluster.trialId}`, "--samples", "3M", "--yes");
  await begin("#/admin", 'summary:has-text("Set elsewhere (1)")');
  await tabTo('section[aria-label="Caps"] summary');
  await tab.keyboard.press("Enter");
  await tabTo(".places button");
  await tab.keyboard.press("Enter");
  await seen('h2:has-text("Caps of trial cluster")');
  assert.ok(await holdsFocus('section[aria-label="Caps"] h2'), "the button is gone");
  await until("its caps", async () => (await count("#cap-seriesSamples")) === 1 && (await tab.inputValue("#cap-seriesSamples")) === "3M");
  await tabTo("[data-focus=all-trials]");
  await tab.keyboard.press("Enter");
  await seen('h2:has-text("Caps of all trials")');
  assert.ok(await holdsFocus('section[aria-label="Caps"] h2'), "the button is gone");
});

test("what states mean, and labels that are cut off, are told to who comes to them by keys", async () => {
  const label = `shard=${"w".repeat(300)}`;
  const timed = await raw.write({
    trial: "labelled", rank: 0, startUs: (Math.floor(Date.now() / 1000) - 30) * 1e6, stepUs: 1_000_000, ticks: 20, firstBatch: 0,
    series: ["step", "load"].map((name) => ({ group: "timing", name, unit: "seconds", kind: duration, labels: name === "load" ? { shard: "w".repeat(300) } : {}, value: () => 1 })),
  });
  const told = (selector) => tab.locator(selector).isVisible();
  await begin("#/trials", 'tbody a:has-text("cluster")');
  assert.equal(await told(".states .hint"), false);
  await tabTo(".states");
  assert.match(await text(".states .hint"), /^running: A writer is open.*\ncompleted: .*\nfailed: .*\nlost: An open writer has not been heard of for a minute$/);
  assert.ok(await told(".states .hint"));
  await begin(`#/trial/${timed}/timings`, "td.name .labels");
  await tabTo(".head [data-focus=state]");
  assert.ok(await told(".head [data-focus=state] .hint"));
  await until("its state in words", async () => (await text(".head [data-focus=state] .hint")) === "All writers closed by themselves");
  const cut = () => tab.locator("td.name .labels").evaluate((one) => one.scrollHeight - one.clientHeight);
  await tab.setViewportSize({ width: 700, height: 900 });
  assert.ok((await cut()) > 10, "three lines of them");
  await tabTo("td.name .labels");
  assert.ok((await cut()) < 2, "all of them");
  assert.equal((await text("td.name .labels")).trim(), label);
  await tab.setViewportSize({ width: 1280, height: 900 });
});

test("what a writer's state means, and what buttons do, is told to who comes to them by keys", async () => {
  await begin(`#/trial/${cluster.trialId}/completeness`, '.scroll[aria-label="Writers"]');
  const told = () => tab.locator(".states .hint").isVisible();
  assert.equal(await told(), false);
  await tabTo(".states");
  assert.ok(await told());
  assert.match(await text(".states .hint"), /^running: It is open .*\ncompleted: It closed by itself\nfailed: .*\nlost: It is open and has not been heard of for a minute$/);
  const inSight = await tab.locator(".states .hint").evaluate((one) => one.getBoundingClientRect().left >= 0 && one.getBoundingClientRect().right <= innerWidth);
  assert.ok(inSight, "all of it");
  const words = (key) => tab.locator(`[data-focus=${key}]`).evaluate((one) => getComputedStyle(one, "::after").content);
  await begin(`#/trial/${cluster.trialId}/traces`, 'tr[data-trace="1"]');
  assert.equal(await words("open"), "none");
  await tabTo("[data-focus=open]");
  assert.match(await words("open"), /^"Opens https:.* in a window of this browser and hands the trace to it; it is sent nowhere else"/);
  await begin(`#/trial/${cluster.trialId}/metrics`, `${cpu} canvas`);
  for (const [key, wanted] of [["nearer", "Zoom in"], ["link", "Copies a link that shows just this"]]) {
    await tabTo(`[data-focus=${key}]`);
    assert.ok((await words(key)).startsWith(`"${wanted}"`), await words(key));
  }
});

test("a rank's timings are chosen by keys", async () => {
  await begin(`#/trial/${cluster.trialId}/timings`, 'table[data-rank="0"] tr.total');
  await tabTo('select[aria-label="Rank"]');
  await tab.keyboard.press("ArrowDown");
  await seen('table[data-rank="1"] tr.total');
  assert.ok(await holdsFocus('select[aria-label="Rank"]'), "who chose stays there");
  assert.equal(await count('table[data-rank="0"]'), 0);
});

test("a cell of the heat map is found by keys, and leads to its chart", async () => {
  await begin(`#/trial/${cluster.trialId}/heat`, ".heat canvas[tabindex]");
  await tabTo('select[aria-label="Metric or scope"]');
  await tab.keyboard.press("ArrowDown");
  await until("another metric", () => tab.evaluate(() => location.hash.includes("m=")));
  await seen(".heat canvas[tabindex]");
  await loaded("heat");
  assert.ok(await holdsFocus('select[aria-label="Metric or scope"]'), "who chose stays there");
  await tabTo(".heat canvas[tabindex]");
  for (const key of ["ArrowRight", "ArrowDown"]) await tab.keyboard.press(key);
  await seen(".heat-leads a");
  const leads = await tab.getAttribute(".heat-leads a", "href");
  await tab.keyboard.press("Enter");
  await until("where it leads", () => tab.evaluate((to) => location.hash === to, leads));
  assert.match(leads, /l\.agent=node-2/, "the second row");
});

test("traces are chosen, looked into, kept and deleted by keys", async () => {
  const row = 'tr[data-trace="1"]';
  await begin(`#/trial/${cluster.trialId}/traces`, row);
  await tabTo(`${row} input`);
  await tab.keyboard.press("Space");
  await seen('.tools :text("1 chosen")');
  assert.ok(await holdsFocus(`${row} input`), "who chose stays there");
  await tabTo(`${row} [data-focus=steps-1]`);
  await tab.keyboard.press("Enter");
  await seen('section[aria-label="Steps of a trace"] [data-absence], .scroll[aria-label="Classes"]');
  assert.ok(await holdsFocus("[data-focus=steps-1]"));
  await tabTo("[data-focus=close-steps]", "Shift+Tab");
  await tab.keyboard.press("Enter");
  await gone('section[aria-label="Steps of a trace"]');
  assert.ok(await holdsFocus("[data-focus=steps-1]"), "back at what opened them");
  await tabTo(`${row} input`, "Shift+Tab");
  await tab.keyboard.press("Space");
  await seen('.tools :text("All that can be merged (2)")');
  await tabTo("[data-focus=clocks]", "Shift+Tab");
  await tab.keyboard.press("Enter");
  await until("clocks were compared", () => holdsFocus("[data-focus=clocks]"));
  await tabTo(`${row} [data-focus=delete-1]`);
  await tab.keyboard.press("Enter");
  assert.ok(await holdsFocus("[data-focus=keep-1]"), "what harms nothing is at hand");
  await tab.keyboard.press("Enter");
  assert.ok(await holdsFocus("[data-focus=delete-1]"), "back at what asked");
  await tab.keyboard.press("Enter");
  await tabTo("[data-focus=delete-1]", "Shift+Tab");
  await tab.keyboard.press("Enter");
  await gone(row);
  await seen(':text("Trace 1 is deleted")');
  await until("the place beside it", () => holdsFocus('.scroll[aria-label="Traces"]'));
});

test("the theme is switched by keys", async () => {
  await tab.goto(`${stand.url}#/trials`);
  await tab.reload();
  await seen("tbody tr");
  const button = "header.top > button";
  await tabTo(button);
  for (const theme of ["dark", "light"]) {
    await tab.keyboard.press("Enter");
    await seen(`html[data-theme="${theme}"]`);
    assert.ok(await holdsFocus(button));
  }
});

test("the exact times of a range are told to who comes to it by keys", async () => {
  await begin(`#/trial/${cluster.trialId}/metrics`, `${cpu} canvas`);
  assert.equal(await tab.locator("[data-range] .hint").isVisible(), false);
  await tabTo("[data-range]");
  assert.equal(await tab.locator("[data-range] .hint").isVisible(), true);
  assert.match(await text("[data-range] .hint"), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\S* to \d{4}-/);
  // Of what a chart is stands in it, for all.
  assert.equal(await text(`${cpu} .chart-head`).then((words) => words.replace(/\s+/g, " ")), "cpu_util_simple cpu, from single samples");
});

/** Of one series: how far its buckets are apart, at least, and how many samples each has, at most (the column before `nan`). */
async function bucketsOf(agent) {
  const { bytes } = await saved('button:text-is("CSV")');
  const rows = bytes.toString("utf8").split("\r\n").filter((row) => row.startsWith(`cpu,cpu_util_simple,agent=${agent},`)).map((row) => row.split(","));
  const starts = rows.map((cells) => Date.parse(`${cells[4].slice(0, 23)}Z`));
  return { distanceMs: Math.min(...starts.slice(1).map((start, at) => start - starts[at])), samples: Math.max(...rows.map((cells) => Number(cells[9]))), count: rows.length };
}

test("a zoom by keys loads finer data", async () => {
  await begin(`#/trial/${cluster.trialId}/metrics`, `${cpu} .legend li >> nth=2`);
  const told = async (words) => until(words, async () => (await text('[data-metric="memory/memory_free"] .chart-place')) === words);
  await told("newest means");
  const whole = await bucketsOf("node-1");
  assert.ok(whole.distanceMs > 300 && whole.samples > 2, `of ${clusterSeconds} s: ${JSON.stringify(whole)}`);
  await tab.focus("main");
  await tabTo(`${cpu} .chart-canvas`);
  for (let time = 0; time < 3; ++time) {
    const before = await text("[data-range]");
    await tab.keyboard.press("+");
    await until("it is closer", async () => (await text("[data-range]")) !== before);
  }
  const near = await until("each sample has a bucket of its own", async () => {
    const found = await bucketsOf("node-1");
    return found.samples === 1 && found;
  });
  await tab.focus("main");
  await told("newest values");
  assert.ok(near.distanceMs <= whole.distanceMs / 3 && near.count > 200, `${JSON.stringify(near)} after ${JSON.stringify(whole)}`);
});

test("nothing went wrong in the page, and nothing was asked of others", () => {
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
