// How the page looks and reads, whatever it shows: names as long and as bad as the contract lets them be, both themes,
// phones and desks, boxes that say why there is nothing, the bar of a lost connection.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { lowContrast, unnamedControls } from "./looks.mjs";
import { decode, encode, RawWriters } from "./raw_writer.mjs";
import { hostile, nasty, writeCluster, writeHostile } from "./scenes.mjs";
import { deadlineMs, Stand, until } from "./stand.mjs";
import { anything, assertUnharmed, bin, closesAtEnd, count, foreign, gone, graveFindings, loaded, openTab, page, seen, tab, text, troubles } from "./tab.mjs";

const stand = new Stand(bin, page);
let raw;
let bad;
let cluster;
let clusterStartUs;

/** Of PyTorch's profiler: two steps, each with an event in it. */
function profileOf(steps, event) {
  const one = (name, ts, dur, cat) => ({ name, ph: "X", ts, dur, cat, pid: 1, tid: 1 });
  return JSON.stringify({ traceEvents: steps.flatMap((step, at) => [
    one(step, 1000 + 400 * at, 400, "user_annotation"), one(event, 1100 + 400 * at, 100 + 200 * at, "cpu_op"), one(event, 1520 + 400 * at, 10, "kernel"),
  ]) });
}

before(async () => {
  await stand.startMaster();
  raw = new RawWriters(stand.ports.grpc);
  ({ trialId: cluster, startUs: clusterStartUs } = await writeCluster(raw));
  bad = await writeHostile(raw);
  raw.connect({ trial: "kept", agent: hostile.agent, version: hostile.version });
  const trace = join(stand.folder, hostile.file);
  writeFileSync(trace, profileOf([`${hostile.step}1`, `${hostile.step}2`], hostile.event));
  await stand.command("trace", "import", `id:${bad}`, trace);
  const profile = join(stand.folder, "rank0.7.pt.trace.json");
  writeFileSync(profile, profileOf(["ProfilerStep#7", "ProfilerStep#8"], "aten::mm"));
  await stand.command("trace", "import", `id:${cluster}`, profile);
  await stand.command("caps", "set", "--trial", `id:${bad}`, "--group", hostile.group, "--samples", "1M", "--yes");
  await stand.command("caps", "set", "--project", hostile.project, "--group", hostile.group, "--samples", "2M", "--yes");
  await openTab(stand);
  await tab.goto(stand.url);
}, { timeout: 3 * deadlineMs });

closesAtEnd(stand, () => raw?.close());

/** The page that is left is gone when it returns. */
const goTo = (hash) => tab.evaluate((to) => new Promise((done) => {
  if (location.hash === to) return done();
  addEventListener("hashchange", () => done(), { once: true });
  location.hash = to;
}), hash);

/** On a phone choices stand behind a button. */
async function unfold() {
  if (await tab.locator('[data-focus=fold][aria-expanded="false"]').isVisible()) await tab.click("[data-focus=fold]");
}

/** Nothing reaches out of the page sideways, and on a phone no list of cards scrolls. */
async function assertFits(where, width) {
  await tab.setViewportSize({ width, height: 900 });
  // What is drawn anew for the width is, with the next frame.
  await tab.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
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
    ["#/trials", `tbody a:has-text("${hostile.project}/")`], [`${trial}/completeness`, `h1:has-text("${hostile.project}/<script>")`], [`${trial}/traces?steps=1`, `.scroll[aria-label="Steps"] td:has-text("${shown}")`],
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
    for (const width of [320, 360, 1280]) await assertFits(hash, width);
    assert.deepEqual(await tab.evaluate(unnamedControls), [], hash);
  }
});

test("names as long as they may be are text in what is opened, and fit a phone", async () => {
  await tab.setViewportSize({ width: 360, height: 900 });
  await goTo("#/admin");
  await seen("#cap-seriesSamples");
  await tab.click('summary:has-text("Set elsewhere")');
  await assertFits("caps that are set elsewhere", 360);
  await assertUnharmed("caps that are set elsewhere");
  for (const whose of [`project ${hostile.project}, group`, `trial <script>`]) {
    await tab.click(`.places button:has-text("${whose}"):has-text(", group <script>")`);
    await seen(`h2:has-text("${whose}"):has-text(", group <script>")`);
    await seen("#cap-seriesSamples");
    await assertUnharmed("the caps of a group");
    await assertFits("the caps of a group", 360);
    await tab.click('button:text-is("All trials")');
    await seen('h2:has-text("all trials")');
    await tab.click('summary:has-text("Set elsewhere")');
  }
  await goTo(`#/trial/${bad}/metrics`);
  await seen("[data-focus=fold]");
  await unfold();
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

test("between a phone and a desk the list of trials fits, and what still scrolls has a sign of it", async () => {
  const wide = (label) => tab.locator(`.scroll[aria-label^="${label}"]`).first().evaluate((one) => one.scrollWidth - one.clientWidth);
  for (const width of [768, 1024]) {
    await goTo("#/trials");
    await seen("tbody a");
    await assertFits("the list", width);
    assert.equal(await wide("Trials"), 0, `the list at ${width}`);
  }
  await goTo(`#/trial/${cluster}/timings`);
  await seen('tr.total:has-text("step")');
  for (const width of [1024, 896, 768, 700]) {
    await assertFits("timings", width);
    assert.equal(await wide("Timings"), 0, `timings at ${width}`);
  }
  // What it can do without goes from the right; heads and cells alike.
  const columns = () => tab.evaluate(() => ["thead tr", "tr.total"].map((row) => [...document.querySelector(`.timings ${row}`).children].filter((cell) => cell.checkVisibility()).length));
  assert.deepEqual(await columns(), [8, 8], "neither steps nor counts");
  await assertFits("timings", 768);
  assert.deepEqual(await columns(), [9, 9], "no counts");
  await assertFits("timings", 600);
  assert.deepEqual(await columns(), [10, 10]);
  assert.ok(await wide("Timings") > 0, "or nothing is to be told");
  assert.match(await tab.locator('.scroll[aria-label^="Timings"]').evaluate((one) => getComputedStyle(one).backgroundAttachment), /local.*scroll/);
});

test("a name of a thousand characters makes no row higher than a screen", async () => {
  await tab.setViewportSize({ width: 1280, height: 900 });
  await goTo(`#/trial/${bad}/timings`);
  await seen('td.name:has-text("<script>")');
  const highest = await tab.evaluate(() => Math.max(...[...document.querySelectorAll("table[data-rank] tbody tr")].map((row) => row.getBoundingClientRect().height)));
  assert.ok(highest < 400, `${highest} px`);
});

test("a project that no master of today lets in is text, too", async () => {
  await tab.setViewportSize({ width: 360, height: 900 });
  const changes = { GetTrial: ({ trial }) => [trial], ListTrials: ({ trials }) => trials };
  for (const [method, trialsOf] of Object.entries(changes)) {
    await tab.route(`**/stepwell.v1.QueryService/${method}`, async (route) => {
      const answer = await route.fetch();
      const told = decode(`${method}Response`, await answer.body());
      for (const trial of trialsOf(told)) trial.project = nasty;
      await route.fulfill({ response: answer, body: Buffer.from(encode(`${method}Response`, told)) });
    });
  }
  await tab.route("**/stepwell.v1.AdminService/GetCaps", async (route) => {
    const answer = await route.fetch();
    const told = decode("GetCapsResponse", await answer.body());
    for (const { place } of told.places) if (place.owner.case === "project") place.owner.value = nasty;
    await route.fulfill({ response: answer, body: Buffer.from(encode("GetCapsResponse", told)) });
  });
  for (const [hash, selector, open] of [["#/trials", 'tbody a:has-text("<script>")'], [`#/trial/${cluster}/completeness`, 'h1:has-text("<script>")'],
    ["#/admin", '.places button:has-text("project <script>")', 'summary:has-text("Set elsewhere")']]) {
    await goTo(hash);
    await tab.reload();
    if (open) await tab.click(open);
    await seen(selector);
    await assertUnharmed(hash);
    assert.doesNotMatch(await tab.innerText("main"), /[\u202a-\u202e\u2066-\u2069]/, hash);
    await assertFits(hash, 360);
  }
  await tab.unroute("**/stepwell.v1.*/*");
  await tab.unrouteAll({ behavior: "wait" });
});

/** Whether what `selectors` name stands in one line. */
const inLine = (...selectors) => Promise.all(selectors.map(async (one) => Math.round((await tab.locator(one).first().boundingBox()).y))).then((tops) => new Set(tops).size === 1);

test("at a desk tools that belong together stand in one line, and so do the actions of a trace", async () => {
  await tab.setViewportSize({ width: 1280, height: 900 });
  for (const hash of [...["timings", "metrics", "heat"].map((view) => `#/trial/${bad}/${view}`), `#/compare?t=${cluster}&t=${bad}`]) {
    await goTo(hash);
    await seen('button:text-is("CSV")');
    await loaded(hash);
    assert.ok(await inLine(...["CSV", "PNG", "Copy link"].map((text) => `button:text-is("${text}")`)), hash);
    const [tools, last] = [await tab.locator(".status-line:has(.ends), .tools:has(.ends), .through .ends").first().boundingBox(), await tab.locator('button:text-is("Copy link")').boundingBox()];
    assert.ok(Math.abs(tools.x + tools.width - last.x - last.width) < 1, `${hash}: at the right end`);
  }
  await goTo(`#/trial/${cluster}/metrics`);
  await loaded("metrics");
  assert.ok(await inLine("[data-focus=axis-time]", "[data-focus=choice-Metrics]"), "all that moves and chooses");
  await goTo(`#/trial/${bad}/traces`);
  await seen("tr[data-trace]");
  assert.ok(await inLine("tr[data-trace] .actions button:has-text('Steps')", "tr[data-trace] .actions button:has-text('Delete')"), "the actions");
  assert.ok(await inLine("[data-focus=clocks]", "input.filter"), "the filter");
  await tab.setViewportSize({ width: 360, height: 900 });
  const [panel, placed] = [await tab.locator(".panel:has([data-focus=align])").boundingBox(), await tab.locator("[data-focus=align]").boundingBox()];
  assert.ok(placed.x + placed.width < panel.x + panel.width - 8, `${JSON.stringify(placed)} in ${JSON.stringify(panel)}`);
});

test("an axis has its ticks whole, and a low chart has some, too", async () => {
  await tab.setViewportSize({ width: 1280, height: 900 });
  // A tick on the last place of the range.
  const from = Math.ceil(clusterStartUs / 60e6) * 60e6;
  await goTo(`#/trial/${cluster}/metrics?from=${from}&to=${from + 60e6}`);
  await seen('[data-metric="cpu/cpu_util_simple"] canvas');
  await loaded("metrics");
  const inked = () => tab.evaluate(() => {
    const canvas = document.querySelector('[data-metric="cpu/cpu_util_simple"] canvas');
    const scale = canvas.width / canvas.clientWidth;
    const high = Math.round(26 * scale);
    const { data, width } = canvas.getContext("2d").getImageData(0, canvas.height - high, canvas.width, high);
    const columns = new Set();
    for (let at = 3; at < data.length; at += 4) if (data[at] > 60) columns.add(((at - 3) / 4) % width);
    return { last: Math.max(...columns), width };
  });
  const { last, width } = await inked();
  const plotEnd = await tab.evaluate(() => { const [over, canvas] = [".u-over", "canvas"].map((one) => document.querySelector(`[data-metric="cpu/cpu_util_simple"] ${one}`).getBoundingClientRect()); return over.right - canvas.left; });
  assert.ok(last > plotEnd && last < width - 1, `a tick reaches beyond ${plotEnd}, to ${last} of ${width}`);
  await goTo(`#/trial/${cluster}/timings`);
  await seen('[data-metric="throughput"] canvas');
  await loaded("timings");
  const ticks = await tab.evaluate(() => {
    const canvas = document.querySelector('[data-metric="throughput"] canvas');
    const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, 60, canvas.height - 34);
    const rows = Array.from({ length: height }, (_, y) => data.subarray(y * width * 4, (y + 1) * width * 4).some((part, at) => at % 4 === 3 && part > 60));
    return rows.filter((ink, y) => ink && !rows[y - 1]).length;
  });
  assert.ok(ticks >= 3, `${ticks} ticks`);
  await goTo("#/trials");
  await seen(".spark svg");
  assert.equal(await tab.locator(".spark svg").first().locator("path.base").count(), 1);
});

/** Both themes, on phones and at a desk (320 px is what a page of 1280 has that is enlarged four times): what axe finds, contrast, names of controls. */
async function assertReadable(where, widths = [320, 360, 1280, 2560]) {
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

test("a choice that is open is readable, too", async () => {
  await goTo(`#/trial/${cluster}/metrics`);
  await loaded("metrics");
  await tab.setViewportSize({ width: 360, height: 900 });
  await unfold();
  for (const what of ["Agents", "Metrics"]) {
    const isOpen = async () => (await count(`details[data-choice="${what}"][open] input`)) > 0;
    await tab.click(`details[data-choice="${what}"] summary`);
    await until(`the choice of ${what}`, isOpen);
    await assertReadable(`the choice of ${what}`);
    assert.ok(await isOpen(), what);
    await tab.keyboard.press("Escape");
    await gone(`details[data-choice="${what}"][open]`);
  }
});

test("what is opened, asked or kept on a page is readable, too", async () => {
  const opened = async (what, hash, there, open, selector) => {
    await tab.setViewportSize({ width: 1280, height: 900 });
    await goTo(hash);
    await seen(there);
    await loaded(hash);
    await open();
    await seen(selector);
    await assertReadable(what, [320, 1280, 2560]);
    assert.ok((await count(selector)) > 0, `${what} is still there`);
  };
  const traces = `#/trial/${cluster}/traces`;
  await opened("the steps of a trace", traces, "tr[data-trace]", () => tab.click("tr[data-trace] button:text-is('Steps')"), '.scroll[aria-label="Classes"]');
  await tab.click("[data-focus=close-steps]");
  await opened("a question before a trace is deleted", traces, "tr[data-trace]", () => tab.click("tr[data-trace] button:has-text('Delete')"), "tr[data-trace] :text('For good?')");
  await tab.click("tr[data-trace] button:text-is('Keep')");
  await opened("what a cap would remove", "#/admin", "#cap-seriesSamples", async () => {
    await tab.fill("#cap-seriesSamples", "1k");
    await tab.click('button:has-text("Show what it would remove")');
  }, 'button:text-is("Set these caps")');
  await tab.click('button:text-is("Take back")');
  await gone('button:text-is("Set these caps")');
  await opened("caps that are set elsewhere", "#/admin", 'summary:has-text("Set elsewhere")', () => tab.click('summary:has-text("Set elsewhere")'), "details[open] .places button");
  await opened("a cell that is kept", `#/trial/${cluster}/heat`, ".heat canvas[tabindex]", async () => {
    await tab.focus(".heat canvas[tabindex]");
    await tab.keyboard.press("ArrowRight");
  }, ".heat-leads a");
  await opened("a chart that was chosen", `#/compare?t=${cluster}&t=${bad}`, 'tr[data-metric="timing/train_batch"]',
    () => tab.check('tr[data-metric="timing/train_batch"] input'), '.charts [data-metric="timing/train_batch"] canvas');
  await opened("the exact times of a range", `#/trial/${cluster}/metrics`, "[data-range]", () => tab.focus("[data-range]"), "[data-range] .hint");
});

test("what a mark or a label that is cut off means is readable where it is told", async () => {
  for (const [hash, on, told] of [["#/trials", ".states", ".states .hint"], [`#/trial/${cluster}/timings`, ".head [data-focus=state]", ".head [data-focus=state] .hint"]]) {
    await goTo(hash);
    await seen(on);
    await loaded(hash);
    await tab.focus(on);
    await seen(told);
    await assertReadable(told, [320, 1280, 2560]);
    assert.ok(await tab.locator(told).isVisible(), told);
  }
  await goTo(`#/trial/${bad}/timings`);
  await seen("td.name .labels[tabindex]");
  await loaded("timings");
  await tab.setViewportSize({ width: 1280, height: 900 });
  const cut = () => tab.locator("td.name .labels[tabindex]").first().evaluate((one) => one.scrollHeight - one.clientHeight);
  assert.ok((await cut()) > 20, "three lines of them");
  await tab.focus("td.name .labels[tabindex]");
  assert.ok((await cut()) < 2, "all of them");
  for (const width of [320, 1280]) await assertFits("labels", width);
});

test("what says why there is nothing to see is readable", async () => {
  const over = await raw.write({ trial: "over" });
  const boxes = [
    ["empty", () => `#/trial/${over}/metrics`], ["no data yet", (bare) => `#/trial/${bare}/timings`],
    ["not enabled", (bare) => `#/trial/${bare}/metrics`, (bare) => stand.command("admin", "profiling", `id:${bare}`, "off")],
    ["failed", () => "#/trial/abc/metrics"], ["loading", () => `#/trial/${cluster}/heat`, () => tab.route("**/stepwell.v1.*/*", () => {})],
  ];
  for (const [absence, hashOf, first] of boxes) {
    // Of its own: nobody hears of one that was opened a minute ago, and then it runs no more.
    const bare = await raw.write({ trial: `bare ${absence}`, open: true });
    await first?.(bare);
    await tab.goto(`${stand.url}${hashOf(bare)}`);
    await tab.reload();
    await seen(`[data-absence="${absence}"]`);
    await assertReadable(`a box of ${absence}`, [320, 1280, 2560]);
    assert.ok((await count(`[data-absence="${absence}"]`)) > 0, `${absence} is still there`);
  }
  await tab.unrouteAll({ behavior: "ignoreErrors" });
});

test("what says why there is nothing stands apart from what is above it", async () => {
  /** Of each box in a panel: how far it is below what is seen before it. */
  const distances = () => tab.evaluate(() => [...document.querySelectorAll(".panel .state-box")].filter((one) => one.checkVisibility()).map((box) => {
    let [at, above] = [box, null];
    while (!above && !at.matches(".panel")) {
      for (above = at.previousElementSibling; above && above.getBoundingClientRect().height === 0;) above = above.previousElementSibling;
      at = at.parentElement;
    }
    return above ? Math.round(box.getBoundingClientRect().top - above.getBoundingClientRect().bottom) : 99;
  }));
  const assertApart = async (where) => {
    const found = await distances();
    assert.ok(found.length > 0 && found.every((one) => one >= 8), `${where}: ${found}`);
  };
  for (const width of [1280, 360]) {
    await tab.setViewportSize({ width, height: 900 });
    await goTo("#/trials?q=nothing");
    await seen('[data-absence="empty"]');
    await assertApart(`an empty list at ${width}`);
    await goTo("#/admin");
    await seen("#cap-seriesSamples");
    await tab.click('button:has-text("Show what it would remove")');
    await seen('[data-absence="empty"]:has-text("Nothing is changed")');
    await assertApart(`what caps would remove at ${width}`);
    assert.ok(await tab.locator("#place-name").evaluate((one) => one.disabled && Number(getComputedStyle(one).opacity) < 1), "a field that is off looks so");
  }
  for (const answer of [(route) => route.abort("connectionrefused"), (route) => route.fulfill({ status: 503, contentType: "application/json", body: '{"code":"unavailable"}' })]) {
    await tab.route("**/stepwell.v1.*/*", answer);
    await goTo("#/trials?q=nothing");
    await tab.reload();
    await seen('.panel [role="alert"]');
    await assertApart("a list without an answer");
    await tab.unroute("**/stepwell.v1.*/*");
  }
});

test("a trial without timings has one box that says so, and no tools that do nothing", async () => {
  const untimed = await raw.write({ trial: "untimed" });
  await goTo(`#/trial/${untimed}/timings`);
  await tab.reload();
  await seen('[data-absence="empty"]:has-text("No timings in this trial")');
  await loaded("timings");
  assert.equal(await count("[data-absence]:visible"), 1);
  assert.equal(await count('select[aria-label="Rank"], [data-range]'), 0);
  for (const what of ["csv", "png"]) assert.ok(await tab.isDisabled(`[data-focus=${what}]`), what);
});

test("a trial and a writer that are lost are told so, and nothing of them runs", async () => {
  const seenUs = Date.UTC(2026, 10, 20, 20, 46, 55) * 1000;
  const gone = await raw.write({ trial: "gone", open: true });
  await tab.route("**/stepwell.v1.QueryService/GetTrial", async (route) => {
    const answer = await route.fetch();
    const told = decode("GetTrialResponse", await answer.body());
    told.trial.state = told.writers[0].state = 4;
    told.writers[0].seenTimeUs = BigInt(seenUs);
    await route.fulfill({ response: answer, body: Buffer.from(encode("GetTrialResponse", told)) });
  });
  await goTo(`#/trial/${gone}/timings`);
  await tab.reload();
  await seen('[data-absence="no data yet"]:has-text("Nobody has heard of this trial for a minute")');
  await goTo(`#/trial/${gone}/completeness`);
  await seen('td[data-label="State"] .badge[data-tone="warn"]:has-text("lost")');
  assert.equal(await text('td[data-label="Last heard of (UTC)"]'), "2026-11-20 20:46:55");
  assert.match(await text("main"), /No sample has come so far\./);
  assert.equal(await count("main .dot"), 0);
  await tab.unrouteAll({ behavior: "wait" });
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
  assert.deepEqual(await tab.locator("tbody .dot").evaluateAll((all) => [...new Set(all.map((one) => getComputedStyle(one).animationName))]), ["none"], "what was heard last runs no more");
  await assertReadable("trials below the bar");
  await tab.unroute("**/stepwell.v1.*/*");
});

test("nothing went wrong in the page, and nothing was asked of others", () => {
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
