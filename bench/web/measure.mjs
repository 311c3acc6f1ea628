// What a person waits for, in a real browser: web_bench.py starts it beside a master that holds a cluster's
// trial and a training that records.
//
//   node measure.mjs '{"playwright": FILE, "chromium": FILE, "url": URL, "quick": BOOL, "trial": NAME}'
//   node measure.mjs '{..., "trial": NAME, "once": true}'    one look; prints its milliseconds
//   node measure.mjs '{..., "live": NAME, "startMs": UNIX, "followMinutes": N}'
// The first looks at a cluster's trial, the second at a training that records meanwhile. Prints rows of bench/README.md.
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const asked = JSON.parse(process.argv[2]);
const { chromium } = await import(pathToFileURL(asked.playwright).href);
const deadlineMs = 60_000;
/** So long nothing is drawn any more: the page has shown what it was asked for. */
const quietMs = 400;
const chartsWanted = 15;
/** Of Chromium's trace. A canvas is painted in the commit. */
const paintingNames = new Set(["Paint", "Layerize", "Commit"]);

/** Runs in the page before its own script: notes when lines are drawn, and when a frame first showed the trial's name. */
function watchDrawing() {
  const seen = { last: 0, named: 0 };
  Object.defineProperty(window, "drawn", { value: seen });
  const watch = new MutationObserver(() => {
    if (!document.querySelector("h1 bdi")?.textContent) return;
    watch.disconnect();
    // The frame that shows it is over when the next one begins.
    requestAnimationFrame(() => requestAnimationFrame(() => (seen.named = performance.now())));
  });
  watch.observe(document, { childList: true, subtree: true, characterData: true });
  // Once a path: a clock that is read for each of its points would be a part of what is measured.
  const stroke = CanvasRenderingContext2D.prototype.stroke;
  CanvasRenderingContext2D.prototype.stroke = function (...path) {
    seen.last = performance.now();
    return stroke.apply(this, path);
  };
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const quantile = (values, share) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))];

/** `promised`: by the product; else the bar is our own. */
function row(name, values, unit, against, bar, { share = 0.5, promised = true } = {}) {
  const round = (value) => Number(value.toPrecision(4));
  console.log(JSON.stringify({ name: `web.${name}`, value: round(quantile(values, share)), unit, against, bar, promised, n: values.length, spread: [round(Math.min(...values)), round(Math.max(...values))] }));
}

async function call(method, request) {
  const answer = await fetch(`${asked.url}stepwell.v1.QueryService/${method}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(request) });
  if (!answer.ok) throw new Error(`${method}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

async function idOf(trial) {
  const { trials } = await call("ListTrials", {});
  const found = trials.find((one) => one.externalId === trial);
  if (!found) throw new Error(`no trial ${trial} in ${JSON.stringify(trials)}`);
  return found.trialId;
}

/** The range that the page says it shows, in words. */
const shownRange = (tab) => tab.evaluate(() => document.querySelector("[data-range]")?.textContent ?? "");

/** All charts have their lines and nothing was drawn for a while; when, in milliseconds of the page's clock. `zoomed`: of another range than
 *  `from`, after an answer to what was asked since `keyAt`: what is drawn for another reason, a cursor say, ends no wait. */
async function settled(tab, charts, since = 0, zoomed = null) {
  const end = Date.now() + deadlineMs;
  for (;;) {
    const now = await tab.evaluate(() => ({
      ...window.drawn, now: performance.now(), charts: document.querySelectorAll(".chart:not([hidden]) canvas").length, loading: document.querySelectorAll('[data-absence="loading"]').length,
      range: document.querySelector("[data-range]")?.textContent ?? "", keyAt: window.keyAt ?? 0,
      answeredAt: Math.max(0, ...performance.getEntriesByType("resource").filter((one) => one.name.endsWith("/QueryBuckets") && one.startTime >= (window.keyAt ?? 0)).map((one) => one.responseEnd)),
    }));
    const isZoomed = zoomed === null || (now.range !== zoomed.from && now.answeredAt > 0 && now.last > now.answeredAt);
    if (now.charts >= charts && now.loading === 0 && now.last > since && isZoomed && now.now - now.last > quietMs) return now.last;
    if (Date.now() > end) throw new Error(`not drawn: ${JSON.stringify(now)}\n${(await tab.innerText("body")).slice(0, 1500)}`);
    await pause(20);
  }
}

const browser = await chromium.launch({ executablePath: asked.chromium, args: ["--no-sandbox", "--disable-gpu"] });

/** A tab of a browser that has never been here. */
async function freshTab(height = 1000) {
  const context = await browser.newContext({ viewport: { width: 1600, height } });
  const tab = await context.newPage();
  await tab.addInitScript(watchDrawing);
  return tab;
}

/** By somebody who has never been here: until all charts are drawn, until the trial's name is and until anything is, and how many values
 *  that are. */
async function look(trial) {
  const tab = await freshTab();
  await tab.goto(`${asked.url}#/trial/${trial}/metrics`);
  const charts = await settled(tab, chartsWanted);
  const paint = await tab.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime);
  const values = await tab.evaluate(() => [...document.querySelectorAll("[data-values]")].reduce((sum, chart) => sum + Number(chart.dataset.values), 0));
  const named = await tab.evaluate(() => window.drawn.named);
  if (named === 0) throw new Error("no trial was named");
  await tab.context().close();
  return { charts, paint, named, values };
}

async function looks(trial) {
  const paints = [];
  const names = [];
  const charts = [];
  const values = [];
  for (let run = 0; run < (asked.quick ? 5 : 15); ++run) {
    const seen = await look(trial);
    charts.push(seen.charts);
    paints.push(seen.paint);
    names.push(seen.named);
    values.push(seen.values);
  }
  row("first_paint", paints, "ms", "nothing: first contentful paint of a trial's page, the top bar of index.html, empty cache, loopback", "<= 300");
  row("first_name", names, "ms", "nothing: until a frame has shown the trial's name, which the page's script asks for, likewise", "<= 300", { promised: false });
  row("charts_15", charts, "ms", `nothing: from the navigation until all ${chartsWanted} charts are drawn, 1065 series`, "<= 500");
  row("drawn_values", values, "values", "nothing: buckets of all lines of these charts", "<= 20000");
}

/** From a place of its own each time: what was read of the one before, the master may have kept. */
async function zooms(trial) {
  const tab = await freshTab();
  await tab.goto(`${asked.url}#/trial/${trial}/metrics`);
  await settled(tab, chartsWanted);
  await tab.locator(".chart-canvas").first().focus();
  const waits = [];
  const press = async (key) => {
    const from = await shownRange(tab);
    const before = await tab.evaluate(() => {
      // When the key comes, not when this process sends it.
      document.addEventListener("keydown", () => (window.keyAt = performance.now()), { once: true, capture: true });
      performance.clearResourceTimings();
      return window.drawn.last;
    });
    await tab.keyboard.press(key);
    const drawn = await settled(tab, chartsWanted, before, { from });
    return drawn - (await tab.evaluate(() => window.keyAt));
  };
  const keys = ["+", "PageUp", "+", "PageDown", "-", "+", "PageUp", "-", "PageDown", "-", "PageUp"];
  for (let cycle = 0; cycle < (asked.quick ? 2 : 10); ++cycle) {
    for (let i = 0; i < 3 + Math.floor(cycle / 3); ++i) await press("+");
    for (let i = 0; i <= cycle % 3; ++i) await press(cycle % 2 === 0 ? "PageUp" : "PageDown");
    for (const key of keys) waits.push(await press(key));
    await press("Home");
  }
  row("zoom", waits, "ms", `nothing: from a key until the last of ${chartsWanted} charts is drawn with what it asked for, 95th percentile`, "<= 100", { share: 0.95 });
  await tab.context().close();
}

/** How old the newest beat is when it is drawn, for each that is. */
async function recordToPixel(trial) {
  const tab = await freshTab();
  await tab.goto(`${asked.url}#/trial/${trial}/metrics?live=60000000&m=training%2Fbeat`);
  await settled(tab, 1).catch(() => null);
  const ages = await tab.evaluate(({ startMs, forMs }) => new Promise((done) => {
    const ages = [];
    let newest = -1;
    const end = performance.now() + forMs;
    const look = () => {
      const text = document.querySelector(".legend-value")?.textContent ?? "";
      const beat = Number((text.match(/[\d,]+/g) ?? ["-1"]).pop().replaceAll(",", ""));
      if (beat > newest) {
        // Of the first look nobody knows since when.
        if (newest >= 0) {
          const drawnAt = performance.timeOrigin + performance.now();
          for (let one = newest + 1; one <= beat; ++one) ages.push(drawnAt - (startMs + 100 * one));
        }
        newest = beat;
      }
      if (performance.now() < end) requestAnimationFrame(look);
      else done(ages);
    };
    requestAnimationFrame(look);
  }), { startMs: asked.startMs, forMs: asked.quick ? 15_000 : 60_000 });
  if (ages.length < 20) throw new Error(`only ${ages.length} beats were seen`);
  row("record_to_pixel", ages, "ms", "nothing: from the record of a sample to the frame that shows it, each of them, 95th percentile", "<= 300", { share: 0.95 });
  await tab.context().close();
}

/** The main thread's tasks, and how long in each the browser painted what script, style and layout had said: what has no name of painting
 *  counts as the page's. */
function mainThread(events) {
  const renderers = new Map();
  for (const event of events) {
    if (event.name === "thread_name" && event.args?.name === "CrRendererMain") renderers.set(`${event.pid}/${event.tid}`, { tasks: [], painting: [] });
  }
  for (const event of events) {
    if (event.ph !== "X") continue;
    const thread = renderers.get(`${event.pid}/${event.tid}`);
    if (event.name === "RunTask") thread?.tasks.push(event);
    else if (paintingNames.has(event.name)) thread?.painting.push(event);
  }
  const { tasks, painting } = [...renderers.values()].sort((a, b) => b.tasks.length - a.tasks.length)[0];
  if (tasks.length === 0 || painting.length === 0) throw new Error("the trace has no tasks, or none that paint");
  for (const list of [tasks, painting]) list.sort((a, b) => a.ts - b.ts || b.dur - a.dur);
  let at = 0;
  let end = -Infinity;
  for (const task of tasks) task.paintingMs = 0;
  for (const { ts, dur } of painting) {
    while (at + 1 < tasks.length && tasks[at + 1].ts <= ts) ++at;
    if (ts + dur > end) tasks[at].paintingMs += dur / 1000;
    end = Math.max(end, ts + dur);
  }
  return tasks.map(({ ts, dur, paintingMs }) => ({ ts, ms: dur / 1000, paintingMs }));
}

/** Tasks of frames that draw no chart (timers, answers that come in pieces) take less. */
const drawingLeastMs = 2;

/** Of each frame that has a task, what `ms` says of its tasks; frames are 16.7 ms apart, and a task counts in the one in which it begins. */
function byFrame(tasks, ms) {
  const frames = new Map();
  for (const task of tasks) frames.set(Math.floor(task.ts / 16_667), (frames.get(Math.floor(task.ts / 16_667)) ?? 0) + ms(task));
  return [...frames.values()];
}

/** Tasks in order, by which of `count` equal parts of the time they begin in. */
function byPart(tasks, count) {
  const [first, last] = [tasks[0].ts, tasks.at(-1).ts];
  const parts = Array.from({ length: count }, () => []);
  for (const task of tasks) parts[Math.min(count - 1, Math.floor(((task.ts - first) / (last - first)) * count))].push(task);
  if (parts.some((part) => part.length === 0)) throw new Error("a part of the trace has no task");
  return parts;
}

/** The main thread's time for each frame while 200 series in 10 charts are followed. */
async function following(trial) {
  const tab = await freshTab(2400);  // what is out of sight is not drawn
  const metrics = Array.from({ length: 10 }, (_, i) => `m=training%2Fmetric_${i}`).join("&");
  await tab.goto(`${asked.url}#/trial/${trial}/metrics?live=60000000&lines=each&${metrics}`);
  const end = Date.now() + deadlineMs;
  while ((await tab.evaluate(() => document.querySelectorAll(".chart:not([hidden]) canvas").length)) < 10) {
    if (Date.now() > end) throw new Error(`no 10 charts: ${(await tab.innerText("body")).slice(0, 1500)}`);
    await pause(100);
  }
  await pause(2000);
  const inSight = await tab.evaluate(() => [...document.querySelectorAll(".chart:not([hidden])")].filter((chart) => chart.getBoundingClientRect().bottom <= innerHeight).length);
  if (inSight < 10) throw new Error(`${inSight} of 10 charts are in sight`);
  await browser.startTracing(tab, { categories: ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"] });
  await pause(asked.quick ? 8000 : 30_000);
  const tasks = mainThread(JSON.parse((await browser.stopTracing()).toString()).traceEvents);
  row("frame", byFrame(tasks, ({ ms, paintingMs }) => ms - paintingMs), "ms", "nothing: script, style and layout in each frame that has a task, while 200 series are followed, 95th percentile", "<= 16", { share: 0.95 });
  const drawing = byFrame(tasks, ({ ms, paintingMs }) => ms - paintingMs).filter((ms) => ms >= drawingLeastMs);
  row("frame_drawing", drawing, "ms", `nothing: the same of frames whose tasks take ${drawingLeastMs} ms or more, 95th percentile`, "<= 16", { share: 0.95, promised: false });
  row("frame_whole", byFrame(tasks, ({ ms }) => ms), "ms", "nothing: the same with what the browser paints and commits on that thread without a GPU, 95th percentile", "<= 16", { share: 0.95, promised: false });
  row("longest_task", byPart(tasks, 3).map((part) => Math.max(...part.map(({ ms }) => ms))), "ms", "nothing: the longest task of each third of the time while 200 series are followed, the longest of all", "<= 50", { share: 1 });
  if (asked.followMinutes > 0) await memory(tab, asked.followMinutes);
  await tab.context().close();
}

/** A browser with the page of `tab` to which nobody is attached but for moments: a tool that is attached has the renderer keep what answers
 *  it had, some megabytes a minute. */
class LoneBrowser {
  constructor(tab) {
    this.home = mkdtempSync(join(tmpdir(), "stepwell-web-bench-"));
    const { width, height } = tab.viewportSize();
    const options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-crash-reporter", "--remote-debugging-port=0", `--user-data-dir=${this.home}`, `--window-size=${width},${height}`];
    this.process = spawn(asked.chromium, [...options, tab.url()], { stdio: "ignore" });
  }

  /** After a collection of garbage: what its largest renderer has to itself, and shares with the browser's painter, MB. Files that are
   *  mapped are left out, whose share depends on who else maps them. */
  async rendererMemory() {
    const port = readFileSync(join(this.home, "DevToolsActivePort"), "utf8").split("\n")[0];
    const attached = await chromium.connectOverCDP(`http://127.0.0.1:${port}`);
    const [tab] = attached.contexts()[0].pages();
    const session = await tab.context().newCDPSession(tab);
    // What one leaves to be freed by others is gone after the second.
    for (let i = 0; i < 2; ++i) await session.send("HeapProfiler.collectGarbage");
    await attached.close();
    const sizes = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map((id) => {
      try {
        const words = readFileSync(`/proc/${id}/cmdline`, "utf8");
        if (!words.includes("--type=renderer") || !words.includes(this.home)) return 0;
        const sums = readFileSync(`/proc/${id}/smaps_rollup`, "utf8");
        return ["Pss_Anon", "Pss_Shmem"].reduce((sum, name) => sum + Number(sums.match(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m"))[1]) / 1e3, 0);
      } catch {
        return 0; // it has ended
      }
    });
    const most = Math.max(...sizes);
    if (most === 0) throw new Error("the browser that nobody is attached to has no renderer");
    return most;
  }

  async end() {
    const ended = new Promise((done) => this.process.once("exit", done));
    this.process.kill();
    await ended;
    rmSync(this.home, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** After collections of garbage: the last quarter of the time beside the first, of the page's script, of what it has in the document and
 *  of its process. */
async function memory(tab, minutes) {
  const session = await tab.context().newCDPSession(tab);
  const lone = new LoneBrowser(tab);
  await session.send("Performance.enable");
  const seen = { heap: [], nodes: [], listeners: [], renderer: [] };
  const looks = 12;
  try {
    for (let i = 0; i < looks; ++i) {
      await pause((minutes * 60_000) / looks);
      await session.send("HeapProfiler.collectGarbage");
      const { metrics } = await session.send("Performance.getMetrics");
      const metric = (name) => metrics.find((one) => one.name === name).value;
      seen.heap.push(metric("JSHeapUsedSize") / 1e6);
      seen.nodes.push(metric("Nodes"));
      seen.listeners.push(metric("JSEventListeners"));
      seen.renderer.push(await lone.rendererMemory());
    }
  } finally {
    await lone.end();
  }
  for (const [name, values] of Object.entries(seen)) console.error(`web: ${name} ${values.map((value) => value.toFixed(1)).join(" ")}`);
  const grown = (name, values, against, promised) => {
    const [early, late] = [values.slice(0, 3), values.slice(-3)];
    console.log(JSON.stringify({
      name: `web.${name}`, value: quantile(late, 0.5) / quantile(early, 0.5), unit: "ratio", against: `${against} at the begin of ${minutes} minutes of following`, bar: "<= 1.1", promised,
      raw: { ours: quantile(late, 0.5), theirs: quantile(early, 0.5) }, n: 3, spread: [Math.min(...late) / Math.max(...early), Math.max(...late) / Math.min(...early)],
    }));
  };
  grown("memory", seen.heap, "the page's heap", true);
  grown("memory.nodes", seen.nodes, "nodes of the document", false);
  grown("memory.listeners", seen.listeners, "listeners of events", false);
  grown("memory.renderer", seen.renderer, "memory of a renderer's process that no tool is attached to meanwhile, without files", false);
}

try {
  if (asked.trial) {
    const trial = await idOf(asked.trial);
    if (asked.once) {
      const { charts } = await look(trial);
      console.log(charts);
    } else {
      await looks(trial);
      await zooms(trial);
    }
  }
  if (asked.live) {
    const live = await idOf(asked.live);
    await recordToPixel(live);
    await following(live);
  }
} finally {
  await browser.close();
}
