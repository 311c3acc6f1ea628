// The page in a real browser, before a real master: what each page shows, the states in which there is nothing
// to show, hostile names, a master that is killed and comes back, keys, widths, contrast.
//
//   STEPWELL_BROWSER_TEST=BIN-FOLDER:PAGE-FOLDER:PLAYWRIGHT:CHROMIUM:RECORDER-LIBRARY node --test page_test.mjs
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { before, test } from "node:test";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { deadlineMs, soon, Stand, until } from "./stand.mjs";
import { lowContrast, unnamedControls } from "./looks.mjs";
import { assertUnharmed, bin, closesAtEnd, count, foreign, gone, graveFindings, library, openTab, openView, page, seen, show, tab, text, troubles } from "./tab.mjs";
import { composerCycle, Viewer } from "./viewer.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const hostileName = `<script>window.harmed=1</script> \u202egnp.exe שלום ${"x".repeat(120)}`;

const viewer = new Viewer();
const stand = new Stand(bin, page);
let streams;
let training;

/** The live streams of a tab: all that were asked for, and those that are open. */
function streamsOf(page) {
  const streams = { asked: [], open: new Set() };
  const ended = (request) => streams.open.delete(request);
  page.on("request", (request) => {
    if (!request.url().endsWith("/FollowSamples")) return;
    streams.asked.push(request);
    streams.open.add(request);
  });
  page.on("requestfailed", ended);
  page.on("requestfinished", ended);
  return streams;
}

/** As when another tab comes before it, which no browser without a screen does. */
function hide(page, hidden) {
  return page.evaluate((to) => {
    Object.defineProperty(document, "hidden", { value: to, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
}

before(async () => {
  await viewer.start();
  stand.options = ["--trace-viewer", viewer.origin];
  await stand.startMaster();
  stand.startAgent();
  await openTab(stand, [viewer.origin]);
  streams = streamsOf(tab);
}, { timeout: 3 * deadlineMs });

closesAtEnd(stand, () => viewer.close());

test("without a trial the page says how to get one, and a trial that begins appears by itself", async () => {
  await tab.goto(stand.url);
  await seen('[data-absence="no data yet"]');
  assert.match(await text('[data-absence="no data yet"]'), /stepwell\.init\(\)/);
  training = stand.train("first", "--seconds", "150", "--data", join(here, "..", "..", "docs"));
  await seen('tbody tr:has-text("first") .badge[data-tone="live"]');
  await seen('tbody tr:has-text("first") .spark svg[aria-label*="busy on average"]');
});

test("timings divide the step, in a chart and in a table", async () => {
  await tab.click('tbody a:has-text("first")');
  await seen('tr.total:has-text("step")');
  await seen(".legend li:has-text('train_batch/backward')");
  const shares = await tab.locator("table[data-rank] tbody tr td:nth-child(2)").allInnerTexts();
  const sum = shares.slice(0, shares.indexOf("100.0 %")).reduce((total, share) => total + parseFloat(share), 0);
  assert.ok(Math.abs(sum - 100) < 0.25, `shares add to ${sum}: ${shares}`);
  await seen('[data-metric="throughput"] canvas');
  assert.match(await text('[data-metric="throughput"] .legend'), /steps per second/);
  await tab.selectOption('select[aria-label="Rank"]', "all");
  await seen('table[data-rank="1"]');
});

test("the table of timings is of the batches that its chart is zoomed to", async () => {
  await tab.locator(".chart-canvas").first().focus();
  await tab.keyboard.press("+");
  await seen('h2:has-text(", batches ")');
  const steps = () => text('table[data-rank="0"] tr.total td:nth-child(10)');
  await until("each batch of the range is a step", async () => {
    const found = (await text('h2:has-text(", batches ")')).replaceAll(",", "").match(/batches (\d+) to (\d+)$/);
    return found && (await steps()).replaceAll(",", "") === String(Number(found[2]) - Number(found[1]) + 1);
  });
  const zoomed = Number((await steps()).replaceAll(",", ""));
  await tab.locator(".chart-canvas").first().focus();
  await tab.keyboard.press("Home");
  await until("all is shown", async () => Number((await steps()).replaceAll(",", "")) > zoomed && (await count('h2:has-text(", batches ")')) === 0);
  // The chosen range was one of batches for the other tabs, too.
  await show(new URL(tab.url()).hash.split("?")[0]);
});

test("system metrics follow the trial, hold at a pause, and say what is not measured", async () => {
  await tab.click('nav.tabs a:has-text("System metrics")');
  await seen('[data-metric="cpu/cpu_util_simple"] canvas');
  await seen('[data-follow="live"]');
  const range = () => text("[data-range]");
  const first = await range();
  await until("the range grows", async () => (await range()) !== first);
  await tab.click('button:has-text("Pause")');
  await seen('[data-follow="paused"]');
  const held = await range();
  assert.match(tab.url(), /from=\d+&to=\d+/);
  await tab.waitForResponse((answer) => answer.url().endsWith("/GetTrial"));
  await tab.waitForResponse((answer) => answer.url().endsWith("/GetTrial"));
  assert.equal(await range(), held);
  await tab.click('button:has-text("Follow")');
  await seen('[data-follow="live"]');
});

test("an answer that takes longer than the pulses is shown", async () => {
  const slow = "**/stepwell.v1.QueryService/QueryBuckets";
  await tab.route(slow, async (route) => {
    await new Promise((done) => setTimeout(done, 2000));
    await route.continue().catch(() => undefined); // The page may have given it up.
  });
  const range = () => text("[data-range]");
  for (const time of ["first", "second"]) {
    const before = await range();
    await until(`a slow answer is shown the ${time} time`, async () => (await range()) !== before);
  }
  await tab.unroute(slow);
});

test("a machine that another trial uses, too, is told", async () => {
  const beside = stand.train("beside", "--seconds", "120", "--data", join(here, "..", "..", "docs"));
  await seen("[data-shared]");
  assert.match(await text("[data-shared]"), /^machine shared with 1 other trial$/);
  beside.kill("SIGTERM");
  await beside.ended;
});

test("of the tabs that are seen one has a stream, hidden ones have none and go on from their place", async () => {
  const second = await tab.context().newPage();
  const others = streamsOf(second);
  await second.goto(tab.url());
  await second.waitForSelector('[data-follow="polling"]');
  const range = () => second.locator("[data-range]").first().innerText();
  const before = await range();
  await until("the second tab shows what is new", async () => (await range()) !== before);
  assert.equal(others.asked.length, 0);
  await hide(tab, true);
  await second.waitForSelector('[data-follow="live"]');
  assert.equal(others.open.size, 1);
  assert.equal(streams.open.size, 0);
  await second.close();
  await hide(tab, false);
  await until("the first tab has a stream again", () => streams.open.size === 1);
  assert.ok(streams.asked.at(-1).postDataBuffer().length > others.asked.at(-1).postDataBuffer().length, "it names its place");
  await hide(tab, true);
  await until("its stream is ended", () => streams.open.size === 0);
  await hide(tab, false);
  await until("it has one again", () => streams.open.size === 1);
  await seen('[data-follow="live"]');
});

test("a master that is killed is told, what was there stays, and all goes on when it is back", async () => {
  const sampled = () => text('[data-metric="training/loss"] .legend-value');
  await until("a value of the loss", async () => /\d/.test(await sampled()));
  await tab.evaluate(() => {
    window.boxes = [];
    new MutationObserver(() => {
      for (const box of document.querySelectorAll('main [role="alert"]')) window.boxes.push(box.textContent);
    }).observe(document.querySelector("main"), { childList: true, subtree: true });
  });
  await stand.killMaster();
  await seen(".lost:visible");
  await seen('[data-follow="lost"]');
  assert.match(await text(".lost"), /Lost the connection to the master at/);
  assert.match(await sampled(), /\d/);
  await stand.startMaster();
  await gone(".lost");
  await seen('[data-follow="live"]');
  const before = await text("[data-range]");
  await until("the charts go on", async () => (await text("[data-range]")) !== before);
  assert.deepEqual(await tab.evaluate(() => window.boxes), [], "no chart gave way to an error that passes");
});

test("keys zoom a chart, the link restores what is shown, and Home shows all", async () => {
  const chart = tab.locator('[data-metric="training/loss"] .chart-canvas');
  await chart.focus();
  await tab.keyboard.press("ArrowLeft");
  assert.match(await text('[data-metric="training/loss"] .chart-place'), /UTC/);
  const all = await text("[data-range]");
  await tab.keyboard.press("+");
  await seen('[data-follow="paused"]');
  const asked = tab.url();
  // The words are of what is drawn.
  const range = await until("another range is drawn", async () => {
    const words = await text("[data-range]");
    return words !== all && words;
  });
  await tab.reload();
  await seen('[data-metric="training/loss"] canvas');
  assert.equal(tab.url(), asked);
  await until("the same range is drawn", async () => (await text("[data-range]")) === range);
  await tab.click('button:has-text("Batch")');
  await until("the axis is of batches", async () => /batches 0 to/.test(await text("[data-range]")));
  await tab.locator('[data-metric="training/loss"] .chart-canvas').focus();
  await tab.keyboard.press("+");
  await until("some batches", async () => !/batches 0 to/.test(await text("[data-range]")));
  await tab.reload();
  await seen('[data-metric="training/loss"] canvas');
  const some = await until("some batches, drawn", async () => {
    const words = await text("[data-range]");
    return /^batches/.test(words) && words;
  });
  await tab.locator('[data-metric="training/loss"] .chart-canvas').focus();
  await tab.keyboard.press("+");
  await until("fewer batches, though nobody asked how many there are", async () => (await text("[data-range]")) !== some);
  await tab.goBack();
  await tab.goBack();
  await tab.goBack();
  await until("back to the range", async () => (await text("[data-range]")) === range);
  await tab.locator('[data-metric="training/loss"] .chart-canvas').focus();
  await tab.keyboard.press("Home");
  await until("all is shown", () => !tab.url().includes("from="));
});

test("dragging zooms a chart that follows", async () => {
  const over = tab.locator('[data-metric="training/loss"] .u-over');
  // Whatever moves below the pointer while the page fills: a person would try again, too.
  await until("the view is zoomed", async () => {
    const box = await over.scrollIntoViewIfNeeded().then(() => over.boundingBox()).catch(() => null);
    if (!box) return false;
    const before = await tab.evaluate(() => history.length);
    await tab.mouse.move(box.x + box.width * 0.3, box.y + 40);
    await tab.mouse.down();
    await tab.mouse.move(box.x + box.width * 0.6, box.y + 40, { steps: 5 });
    await tab.mouse.up();
    assert.ok((await tab.evaluate(() => history.length)) <= before + 1, "charts that share its cursor push nothing");
    // Of the time, also where the chart was of batches a moment ago.
    return /from=\d{16}&to=\d{16}/.test(tab.url());
  });
  await seen('[data-follow="paused"]');
});

test("a CSV has what the charts show", async () => {
  const [saved] = await Promise.all([tab.waitForEvent("download"), tab.click('button:has-text("CSV")')]);
  const lines = readFileSync(await saved.path(), "utf8").split("\r\n");
  assert.equal(lines[0], "metric_group,name,labels,unit,bucket_start,min,max,mean,last,samples,nan");
  assert.ok(lines.some((line) => line.startsWith("training,loss,agent=")), lines.slice(0, 5).join("\n"));
});

test("a PNG has the charts", async () => {
  const charts = await count(".charts canvas");
  const [saved] = await Promise.all([tab.waitForEvent("download"), tab.click('button:has-text("PNG")')]);
  assert.match(saved.suggestedFilename(), /^stepwell-trial-\d+-metrics\.png$/);
  const bytes = readFileSync(await saved.path());
  assert.equal(bytes.subarray(1, 4).toString(), "PNG");
  const [width, height] = [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
  assert.ok(width > 700 && width * height > 30_000 * charts, `${width} x ${height} of ${charts} charts`);
});

test("a heat map tells its cells by keys", async () => {
  await openView("heat");
  await seen(".heat canvas[tabindex]");
  await tab.locator(".heat canvas[tabindex]").focus();
  await tab.keyboard.press("ArrowDown");
  await until("the cell of rank 1", async () => /^rank 1, .*: (no samples|[\d.]+ (ms|s|µs))/.test(await text(".heat .chart-place")));
});

test("a PNG has the heat map, the names of its rows and its scale", async () => {
  const [saved] = await Promise.all([tab.waitForEvent("download"), tab.click('button:has-text("PNG")')]);
  assert.match(saved.suggestedFilename(), /^stepwell-trial-\d+-heat\.png$/);
  const bytes = readFileSync(await saved.path());
  const box = await tab.locator(".heat canvas[tabindex]").boundingBox();
  const [width, height] = [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
  assert.ok(width > box.width + 40 && height > box.height + 60, `${width} x ${height} of ${JSON.stringify(box)}`);
});

/** As the Connect protocol ends a stream. */
function lastEnvelope(end) {
  const json = Buffer.from(JSON.stringify(end));
  const head = Buffer.from([2, 0, 0, 0, 0]);
  head.writeUInt32BE(json.length, 1);
  return Buffer.concat([head, json]);
}

const traceRow = (number) => `tr[data-trace="${number}"]`;
const importTrace = async (name, bytes, ...more) => {
  writeFileSync(join(stand.folder, name), bytes);
  return stand.command("trace", "import", "first", join(stand.folder, name), ...more);
};

test("without traces the page says how to bring some, and what is brought appears by itself", async () => {
  await openView("traces");
  await seen('[data-absence="no data yet"]');
  assert.match(await text('[data-absence="no data yet"]'), /stepwell trace import id:\d+ FILE/);
  await importTrace("ep0-ba7-rank0.json", composerCycle(0, 1_000_000));
  await seen(traceRow(1));
  // Seven batches are over, as the name says: the last is number 6.
  assert.match(await text(traceRow(1)), /ep0-ba7-rank0\.json\.gz\s+0\s+ep0-ba6\s+json\s+\d+ B\s+not compared\s+complete/);
});

test("traces say how far their clocks may be off, and what cannot be merged is not", async () => {
  await importTrace("ep0-ba7-rank1.json", composerCycle(1, 6_000_000));
  await seen(`${traceRow(2)}:has-text("±240 µs shifted by −5.00 s")`);
  await importTrace("host.xplane.pb", Buffer.from([10, 3, 120, 121, 122]));
  await seen(`${traceRow(3)}:has-text("xplane")`);
  assert.equal(await count(`${traceRow(3)} button:text-is("Open")`), 0);
  await tab.check(`${traceRow(3)} input`);
  await seen('button:has-text("Download merged"):disabled');
  // What is chosen stands in the address, and is chosen again where that is opened.
  assert.match(tab.url(), /\/traces\?(.*&)?traces=3$/);
  await tab.reload();
  await seen(`${traceRow(3)} input:checked`);
  await seen('span:text-is("1 chosen")');
  await tab.uncheck(`${traceRow(3)} input`);
  await seen('button:has-text("Download merged"):enabled');
});

test("a trace is downloaded as it came, and several as one", async () => {
  const [one] = await Promise.all([tab.waitForEvent("download"), tab.click(`${traceRow(3)} button:text-is("Download")`)]);
  assert.equal(one.suggestedFilename(), "host.xplane.pb");
  assert.deepEqual([...readFileSync(await one.path())], [10, 3, 120, 121, 122]);
  const [merged] = await Promise.all([tab.waitForEvent("download"), tab.click('button:has-text("Download merged")')]);
  assert.match(merged.suggestedFilename(), /^stepwell-trial-\d+\.json\.gz$/);
  const { traceEvents } = JSON.parse(gunzipSync(readFileSync(await merged.path())));
  const begins = traceEvents.filter(({ name, ph }) => name === "forward" && ph === "B").map(({ ts }) => ts);
  assert.deepEqual(begins, [1_000_100, 1_000_100]);
  await seen('p:has-text("events of 2 traces")');
});

test("traces are handed to the window of the viewer, and only in a click", async () => {
  const [window] = await Promise.all([tab.context().waitForEvent("page"), tab.click('button:text-is("Open in Perfetto")')]);
  await seen(`[data-handed]:has-text("${viewer.origin}")`);
  const handed = await (await window.waitForFunction(() => window.handed)).jsonValue();
  assert.equal(handed.origin, new URL(stand.url).origin);
  assert.match(handed.title, /^trial \d+, 2 traces$/);
  // In Perfetto's own form: packets, each behind the tag of its field and its length.
  const merged = gunzipSync(Buffer.from(handed.bytes));
  assert.equal(merged[0], 0x0a, merged.subarray(0, 32).toString("hex"));
  assert.ok(merged.includes("forward") && !merged.includes("traceEvents"));
  await window.close();
  const [another] = await Promise.all([tab.context().waitForEvent("page"), tab.click(`${traceRow(2)} button:text-is("Open")`)]);
  const alone = await (await another.waitForFunction(() => window.handed)).jsonValue();
  assert.equal(alone.title, "ep0-ba7-rank1.json.gz");
  assert.deepEqual(JSON.parse(gunzipSync(Buffer.from(alone.bytes))), JSON.parse(composerCycle(1, 6_000_000)));
  await another.close();
});

test("the steps of a trace are divided, on a link too", async () => {
  const at = (name, ph, ts, dur, cat) => ({ name, ph, ts, dur, cat, pid: 1, tid: 1 });
  await importTrace("rank0.7.pt.trace.json", JSON.stringify({ traceEvents: [
    at("ProfilerStep#7", "X", 1000, 400, "user_annotation"), at("aten::mm", "X", 1100, 100, "cpu_op"),
    at("ProfilerStep#8", "X", 1400, 400, "user_annotation"), at("aten::mm", "X", 1500, 300, "cpu_op"),
  ] }));
  await tab.click(`${traceRow(4)} button:text-is("Steps")`);
  await seen('section[aria-label="Steps of a trace"] p:has-text("2 steps of 400 µs on average")');
  await tab.reload();
  await seen('section[aria-label="Steps of a trace"] tr:has-text("processor"):has-text("50.0 %")');
  await seen('tr:has-text("ProfilerStep#8"):has-text("75.0 %")');
  await tab.click('button:text-is("Close")');
  await gone('section[aria-label="Steps of a trace"]');
  assert.doesNotMatch(tab.url(), /steps=/);
});

test("a trace that the master refuses to hand out is told, and its window closed", async () => {
  await tab.route("**/stepwell.v1.TraceService/GetTrace", (route) => route.fulfill({
    status: 200, contentType: "application/connect+proto", body: lastEnvelope({ error: { code: "permission_denied", message: "<b>not you" } }),
  }));
  const [window] = await Promise.all([tab.context().waitForEvent("page"), tab.click(`${traceRow(2)} button:text-is("Open")`)]);
  await seen('[data-absence="not permitted"]');
  assert.match(await text('[data-absence="not permitted"]'), /<b>not you/);
  await until("the window is closed", () => window.isClosed());
  await tab.unroute("**/stepwell.v1.TraceService/GetTrace");
});

test("a trace is deleted when it was asked twice", async () => {
  await tab.click(`${traceRow(3)} button:has-text("Delete")`);
  await tab.click(`${traceRow(3)} button:has-text("Keep")`);
  await tab.click(`${traceRow(3)} button:has-text("Delete")`);
  await tab.click(`${traceRow(3)} button:text-is("Delete")`);
  await seen('p:has-text("Trace 3 is deleted")');
  await gone(traceRow(3));
  assert.match(await stand.command("trace", "list", "first"), /rank0[^]*rank1/);
});

test("a hostile name of a trial is text and nothing else", async () => {
  training.kill("SIGINT");
  await training.ended;
  const hostile = library ? stand.start("hostile", "python3", [join(here, "hostile_trial.py"), library], stand.recording(hostileName))
    : stand.train(hostileName, "--steps", "20", "--data", join(here, "..", "..", "docs"));
  const { code } = await hostile.ended;
  assert.equal(code, 0, hostile.said);
  await show("#/trials");
  await seen('tbody a:has-text("<script>")');
  assert.ok((await text('tbody a:has-text("<script>")')).includes("\\u202egnp.exe"));
  await assertUnharmed("trials");
  await tab.click('tbody a:has-text("<script>")');
  await seen('h1:has-text("<script>")');
  for (const name of ["timings", "metrics", "heat", "completeness"]) {
    await openView(name);
    await assertUnharmed(name);
  }
});

test("hostile names of series are text wherever they are shown", { skip: library ? false : "the build has no shared library of the recorder" }, async () => {
  await openView("metrics");
  await tab.click('summary:has-text("Metrics")');
  await seen('details[data-choice="Metrics"] label:has-text("<script>")');
  await assertUnharmed("the choice of metrics");
  await tab.locator('details[data-choice="Metrics"] label:has-text("onerror")').first().click();
  await tab.keyboard.press("Escape");
  await seen('h3:has-text("onerror")');
  await assertUnharmed("metrics");
  await openView("heat");
  const metric = 'select[aria-label="Metric or scope"]';
  await tab.selectOption(metric, await tab.locator(`${metric} option:text("onerror")`).first().getAttribute("value"));
  await seen('.heat h2:has-text("onerror")');
  await assertUnharmed("heat");
  const [trial] = new URL(tab.url()).hash.match(/\d+/);
  await show(`#/compare?t=${trial}&t=1000000000`);
  await tab.click('button:has-text("By time since start")');
  await seen('td.name:has-text("onerror")');
  await assertUnharmed("the table of comparisons");
  await tab.locator('tr:has-text("onerror") input').first().check();
  await seen('.charts h3:has-text("onerror")');
  await assertUnharmed("charts of comparisons");
});

test("a trial that has ended says so, and its completeness is told", async () => {
  await show("#/trials");
  await tab.click('tbody bdi:text-is("first")');
  await tab.click('nav.tabs a:has-text("Completeness")');
  await seen("[data-completeness]");
  assert.match(await text("[data-completeness]"), /^(Complete|Incomplete|Perhaps)/);
  await tab.click('nav.tabs a:has-text("System metrics")');
  await seen('[data-follow="ended"]');
});

test("trials are compared", async () => {
  await show("#/trials");
  const boxes = tab.locator('tbody input[type="checkbox"]');
  await boxes.nth(0).check();
  await boxes.nth(1).check();
  await tab.click('button:has-text("Compare 2")');
  await seen('td.name:has-text("step")');
  await seen(".compared li >> nth=1");
  await seen(".charts canvas");
  const [saved] = await Promise.all([tab.waitForEvent("download"), tab.click('button:text-is("PNG")')]);
  assert.match(saved.suggestedFilename(), /^stepwell-compare-\d+-\d+\.png$/);
  const bytes = readFileSync(await saved.path());
  assert.ok(bytes.readUInt32BE(16) > 300 && bytes.readUInt32BE(20) > 200, `${bytes.readUInt32BE(16)} x ${bytes.readUInt32BE(20)}`);
});

test("the master says which agents are connected", async () => {
  await show("#/admin");
  await seen('section[aria-label="Agents"] tr:has-text("stepwell-agent/")');
  assert.match(await stand.command("admin", "status"), /HOST +VERSION +WRITERS +CONNECTED SINCE +SILENT FOR\n\S+ +stepwell-agent\//);
});

test("caps are shown, wrong ones marked, and none set before what it removes is told", async () => {
  await show("#/admin");
  await seen('dd:has-text("owner")');
  await tab.fill("#cap-seriesSamples", "many");
  await tab.click('button:has-text("Show what it would remove")');
  await seen('#cap-seriesSamples[aria-invalid="true"]');
  await tab.fill("#cap-seriesSamples", "1M");
  await tab.click('button:has-text("Show what it would remove")');
  await tab.click('button:has-text("Set these caps")');
  await seen('tr:has-text("Samples of a series") td:text-is("1M")');
});

test("caps of a project and of a metric group are set where they are looked at, and found again", async () => {
  await tab.selectOption("#place-owner", "project");
  await tab.fill("#place-name", "default");
  await tab.fill("#place-group", "cpu");
  await tab.click('button:has-text("Show its caps")');
  await seen('h2:has-text("project default, group cpu")');
  await seen("#cap-trialBytes");
  assert.equal(await count("#cap-profilingWindowSeconds"), 0, "no group has a window");
  await tab.fill("#cap-trialBytes", "50GiB");
  await tab.click('button:has-text("Show what it would remove")');
  await tab.click('button:has-text("Set these caps")');
  await seen('tr:has-text("Bytes of a trial") td:text-is("50GiB")');
  await seen('tr:has-text("Samples of a series") td:text-is("all trials")');
  await tab.click('button:text-is("All trials")');
  await tab.click('summary:has-text("Set elsewhere")');
  await tab.click('.places button:has-text("project default, group cpu")');
  await until("what was set", async () => (await count("#cap-trialBytes")) === 1 && (await tab.inputValue("#cap-trialBytes")) === "50GiB");
  await tab.fill("#place-name", "");
  await tab.selectOption("#place-owner", "trial");
  await tab.fill("#place-name", "999999");
  await tab.click('button:has-text("Show its caps")');
  await seen('[data-absence="failed"]');
});

test("what a cap would remove of one place is never offered for another", async () => {
  const asked = [];
  await tab.route("**/stepwell.v1.AdminService/PreviewCaps", (route) => { asked.push(route); });
  await show("#/trials");
  await show("#/admin");
  await seen("#cap-seriesSamples");
  await tab.fill("#cap-seriesSamples", "2M");
  await tab.click('button:has-text("Show what it would remove")');
  await until("the question", () => asked.length === 1);
  await tab.selectOption("#place-owner", "project");
  await tab.fill("#place-name", "default");
  await tab.click('button:has-text("Show its caps")');
  await seen('h2:has-text("project default")');
  await seen("#cap-seriesSamples");
  await asked[0].continue().catch(() => {}); // it was given up
  await tab.unroute("**/stepwell.v1.AdminService/PreviewCaps");
  await tab.fill("#cap-seriesSamples", "3M");
  await tab.click('button:has-text("Show what it would remove")');
  await seen('button:has-text("Set these caps")');
  await tab.click('button:text-is("All trials")');
  await gone('button:has-text("Set these caps")');
});

const refusals = [
  { name: "not permitted", status: 403, code: "permission_denied", absence: "not permitted" },
  { name: "unavailable", status: 503, code: "unavailable", absence: "unavailable" },
  { name: "a failure of the master's", status: 500, code: "internal", absence: "failed" },
];
for (const { name, status, code, absence } of refusals) {
  test(`${name}: told apart, with what to do and the master's words`, async () => {
    await tab.route("**/stepwell.v1.QueryService/ListTrials", (route) => route.fulfill({
      status, contentType: "application/json", body: JSON.stringify({ code, message: "because <b>so</b>" }),
    }));
    await tab.goto(`${stand.url}#/trials`);
    await tab.reload();
    await seen(`[data-absence="${absence}"]`);
    assert.match(await text(`[data-absence="${absence}"]`), /because <b>so<\/b>/);
    await tab.unroute("**/stepwell.v1.QueryService/ListTrials");
    await tab.click('button:has-text("Try again")');
    await seen("tbody tr");
  });
}

test("what is not there is told", async () => {
  await show("#/trial/999999/timings");
  await seen('[data-absence="failed"]');
  assert.match(await text('[data-absence="failed"]'), /Not found/);
});

test("each page fits each width, has names for its controls, and contrast in both themes", async () => {
  const pages = ["#/trials", "#/trial/1000000000/timings", "#/trial/1000000000/metrics", "#/trial/1000000000/heat", "#/trial/1000000000/traces",
    "#/trial/1000000000/completeness",
    "#/compare?t=1000000000&t=1000000001", "#/admin"];
  for (const hash of pages) {
    await show(hash);
    await seen("table, canvas, dl");
    // Comes after the charts, and is the longest of what stands beside their tools.
    if (hash.endsWith("/metrics")) await seen("[data-shared]");
    for (const width of [320, 360, 1280, 2560]) {
      await tab.setViewportSize({ width, height: 900 });
      // Ticks that stood in a wider map are placed anew with the next frame.
      await soon(async () => {
        const over = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(over <= 0, `${hash} is ${over} px too wide at ${width}`);
      });
    }
    for (const colorScheme of ["light", "dark"]) {
      await tab.emulateMedia({ colorScheme });
      assert.deepEqual(await tab.evaluate(lowContrast), [], `${hash} ${colorScheme}`);
    }
    assert.deepEqual(await tab.evaluate(unnamedControls), [], hash);
    assert.deepEqual(await graveFindings(), [], hash);
  }
});

test("nothing went wrong in the page, and nothing was asked of others", () => {
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
