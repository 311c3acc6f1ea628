// What moves a chart along its axis: buttons, keys, a double click, windows until the newest sample. And that a cluster has the
// nine charts that a profile begins with.
//
//   STEPWELL_BROWSER_TEST=BIN-FOLDER:PAGE-FOLDER:PLAYWRIGHT:CHROMIUM:RECORDER-LIBRARY node --test charts_test.mjs
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { decode, RawWriters } from "./raw_writer.mjs";
import { clusterSeconds, writeCluster } from "./scenes.mjs";
import { deadlineMs, Stand, until } from "./stand.mjs";
import { bin, closesAtEnd, count, foreign, loaded, openTab, page, seen, show, tab, text, troubles } from "./tab.mjs";

const stand = new Stand(bin, page);
const cpu = '[data-metric="cpu/cpu_util_simple"]';
/** As docs/web.md names them, each in its group. */
const nine = [
  "gpu/gpu_util", "gpu/gpu_free_memory", "cpu/cpu_util_simple", "memory/memory_free", "network/net_throughput_sent",
  "network/net_throughput_recv", "disk/disk_iops", "disk/disk_throughput_read", "disk/disk_throughput_write",
];
let cluster;
/** Of its samples, in seconds since its start: ten a second. */
const wholeSeconds = clusterSeconds - 0.1;

before(async () => {
  await stand.startMaster();
  const raw = new RawWriters(stand.ports.grpc);
  cluster = await writeCluster(raw, "cluster", { isWhole: true });
  raw.close();
  await openTab(stand);
  await tab.goto(stand.url);
}, { timeout: 3 * deadlineMs });

closesAtEnd(stand);

test("a profile begins with what the training recorded itself, then nine charts of its machines, and has them all", async () => {
  await show(`#/trial/${cluster.trialId}/metrics`);
  await seen(`${cpu} canvas`);
  await loaded("metrics");
  const ids = await tab.locator(".charts > [data-metric]").evaluateAll((all) => all.map((one) => one.dataset.metric));
  const own = ids.filter((id) => id.startsWith("training/"));
  assert.ok(own.length > 0);
  assert.deepEqual(ids.slice(0, own.length + nine.length), [...own, ...nine]);
  assert.equal(await count("[data-absent]"), 0);
  for (const id of nine) {
    const chart = `[data-metric="${id}"]`;
    await tab.locator(chart).scrollIntoViewIfNeeded();
    await until(`lines of ${id}`, async () => (await count(`${chart} .legend li`)) >= 3);
    assert.equal(await count(`${chart} [data-absence]`), 0, id);
    // A value and its unit each.
    for (const line of await tab.locator(`${chart} .legend li`).allInnerTexts()) assert.match(line.replace(/\s+/g, " "), /=node-\d( device=\d)? ?-?[\d.,]+ ?(%|[KMGT]?i?B(\/s)?|\/s)/, `${id}: ${line}`);
  }
});

/** What the address says of the range, in seconds since the trial's start; null = all. */
const addressed = () => tab.evaluate((startUs) => {
  const query = new URLSearchParams(location.hash.split("?")[1] ?? "");
  return { range: query.has("from") ? [query.get("from"), query.get("to")].map((us) => (Number(us) - startUs) / 1e6) : null, live: Number(query.get("live") ?? 0) / 1e6 };
}, cluster.startUs);

const spanText = () => text("[data-range]").then((words) => words.match(/\(([^)]+)\)$/)?.[1]);

/** Waits until the address and the words of what is shown are of `wanted`; null = all. */
async function ranges(what, wanted) {
  let found;
  await until(what, async () => {
    found = { ...(await addressed()), span: await spanText() };
    const isThere = wanted === null ? found.range === null : found.range?.every((at, end) => Math.abs(at - wanted[end]) < 0.5);
    return isThere && Math.abs(Number(found.span?.match(/^([\d.]+) s$/)?.[1]) - (wanted === null ? wholeSeconds : wanted[1] - wanted[0])) < 1;
  }).catch((error) => { throw new Error(`${error.message}: ${JSON.stringify(wanted)}, not ${JSON.stringify(found)}`); });
}

const button = (name) => `.group[aria-label="Move and zoom"] button[aria-label="${name}"]`;
const quarters = [0, 1, 2, 3, 4].map((at) => (wholeSeconds * at) / 4);
const part = (from, to) => [quarters[from], quarters[to]];

/** Whatever was shown before. */
async function showAll() {
  await show(`#/trial/${cluster.trialId}/metrics`);
  await seen(`${cpu} canvas`);
  await ranges("all of it", null);
  await tab.mouse.move(0, 0);
}

test("buttons zoom about the middle, and move by half of what is shown", async () => {
  await showAll();
  for (const name of ["Earlier", "Later", "Zoom out", "Show all"]) assert.ok(await tab.isDisabled(button(name)), name);
  const ways = [
    ["Zoom in", part(1, 3)], ["Later", part(2, 4)], ["Later", part(2, 4)], ["Earlier", part(1, 3)], ["Earlier", part(0, 2)],
    ["Earlier", part(0, 2)], ["Later", part(1, 3)], ["Zoom out", null], ["Zoom in", part(1, 3)], ["Show all", null],
  ];
  for (const [name, wanted] of ways) {
    await tab.click(button(name));
    await ranges(`${name} to ${JSON.stringify(wanted)}`, wanted);
  }
});

test("keys do the same to a chart that has the focus", async () => {
  await showAll();
  await tab.locator(`${cpu} .chart-canvas`).focus();
  const ways = [
    ["+", part(1, 3)], ["PageDown", part(2, 4)], ["PageUp", part(1, 3)], ["PageUp", part(0, 2)], ["PageDown", part(1, 3)], ["-", null], ["=", part(1, 3)], ["Home", null],
  ];
  for (const [key, wanted] of ways) {
    await tab.keyboard.press(key);
    await ranges(`${key} to ${JSON.stringify(wanted)}`, wanted);
  }
});

test("a double click on a chart shows all", async () => {
  await showAll();
  await tab.click(button("Zoom in"));
  await ranges("closer", part(1, 3));
  const place = tab.locator(`${cpu} .u-over`);
  await place.scrollIntoViewIfNeeded();
  const { width, height } = await place.boundingBox();
  await place.dblclick({ position: { x: width / 2, y: height / 2 } });
  await ranges("all of it", null);
});

test("a window reaches from the newest sample so far back", async () => {
  await showAll();
  const window = 'select[aria-label="What is shown"]';
  const ended = async () => (await tab.locator("[data-range] .hint").textContent()).split(" to ").map((iso) => Date.parse(`${iso.slice(0, 23)}Z`) / 1000 - cluster.startUs / 1e6);
  await tab.selectOption(window, { label: "the last minute" });
  await until("a minute", async () => (await spanText()) === "60.0 s");
  assert.deepEqual(await addressed(), { range: null, live: 60 });
  const [from, to] = await ended();
  assert.ok(Math.abs(to - wholeSeconds) < 0.01 && Math.abs(from - (wholeSeconds - 60)) < 0.01, `${from} to ${to}`);
  // As far as there is something.
  await tab.selectOption(window, { label: "the last 5 minutes" });
  await until("all of it", async () => Math.abs((await ended())[0]) < 0.01);
  assert.deepEqual(await addressed(), { range: null, live: 300 });
  await tab.selectOption(window, { label: "all there is" });
  await ranges("all of it", null);
});

test("timings ask for a bucket for each two pixels of the window, 400 at most, from the first question on", async () => {
  for (const [width, least, most] of [[1280, 400, 400], [360, 140, 175]]) {
    await tab.setViewportSize({ width, height: 900 });
    await show("#/trials");
    await seen("tbody tr");
    const question = tab.waitForRequest((request) => request.url().endsWith("/QueryBuckets") && decode("QueryBucketsRequest", request.postDataBuffer()).axis.case === "batchRange");
    await show(`#/trial/${cluster.trialId}/timings`);
    const { maxBuckets } = decode("QueryBucketsRequest", (await question).postDataBuffer());
    assert.ok(maxBuckets >= least && maxBuckets <= most, `${maxBuckets} buckets at ${width}`);
    await seen('[data-metric="throughput"] canvas');
    if (width === 1280) assert.equal(Number(await tab.getAttribute('[data-metric="throughput"] .chart-canvas', "data-values")), cluster.steps, "a bucket for each batch");
  }
  await tab.setViewportSize({ width: 1280, height: 900 });
});

test("nothing went wrong in the page, and nothing was asked of others", () => {
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
