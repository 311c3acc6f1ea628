// What the list of trials tells of each, and the list of agents: how long, how busy, in which state, silent for how long.
//
//   STEPWELL_BROWSER_TEST=BIN-FOLDER:PAGE-FOLDER:PLAYWRIGHT:CHROMIUM:RECORDER-LIBRARY node --test list_test.mjs
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { causes, RawWriters } from "./raw_writer.mjs";
import { deadlineMs, Stand, until } from "./stand.mjs";
import { bin, closesAtEnd, foreign, openTab, page, seen, show, tab, text, troubles } from "./tab.mjs";

const stand = new Stand(bin, page);
/** A writer that says nothing for so long is lost. */
const lostMs = 60_000;
let raw;

before(async () => {
  await stand.startMaster();
  raw = new RawWriters(stand.ports.grpc);
  const startUs = (Math.floor(Date.now() / 1000) - 1500) * 1e6;
  const machine = (of) => Object.entries(of).map(([group, percent]) => ({ group, name: { gpu: "gpu_util", cpu: "cpu_util_simple" }[group], unit: "percent", value: () => percent }));
  const clock = { startUs, stepUs: 1_000_000 };
  await raw.write({ trial: "of-both", ...clock, ticks: 50, series: machine({ cpu: 20, gpu: 80 }) });
  await raw.write({ trial: "of-processors", ...clock, ticks: 1321, series: machine({ cpu: 35 }) });
  const losses = (counts) => counts.map((sampleCount) => ({ cause: causes.sensorFailed, metricGroup: "cpu", sampleCount, reason: "" }));
  await raw.write({ trial: "lacks-some", ...clock, ticks: 2, series: machine({ cpu: 1 }), losses: losses([1234n, 0n]) });
  await raw.write({ trial: "lacks-unknown", ...clock, ticks: 2, series: machine({ cpu: 1 }), losses: losses([0n]) });
  await raw.write({ trial: "lacks-nothing", ...clock, ticks: 2, series: machine({ cpu: 1 }), losses: [{ cause: causes.noPermission, metricGroup: "gpu", sampleCount: 0n, reason: "" }] });
  await raw.write({ trial: "broken", ...clock, ticks: 2, died: true, series: machine({ cpu: 1 }) });
  await raw.write({ trial: "bare" });
  await raw.write({ trial: "kept-open", open: true, ...clock, ticks: 5, series: machine({ cpu: 1 }) });
  raw.connect({ trial: "silent", agent: "quiet-host", version: "1" });
  await openTab(stand);
  await tab.goto(stand.url);
}, { timeout: 3 * deadlineMs });

closesAtEnd(stand, () => raw?.close());

const row = (trial) => `tbody tr:has(td.name bdi:text-is("${trial}"))`;
const cell = async (trial, label) => (await text(`${row(trial)} td[data-label="${label}"]`)).trim();

test("an agent is red once it was silent for thirty seconds, and not before", async () => {
  await show("#/admin");
  const last = 'section[aria-label="Agents"] tr:has-text("quiet-host") td[data-label="Last message"]';
  await seen(last);
  const heard = [];
  await until("it is red", async () => {
    const { words, isRed } = await tab.locator(last).evaluate((one) => ({ words: one.innerText, isRed: one.classList.contains("worse") }));
    const seconds = words.trim() === "now" ? 0 : Number(words.match(/(\d+) s ago/)?.[1]);
    heard.push([seconds, isRed]);
    if (isRed) return true;
    assert.ok(seconds <= 30, JSON.stringify(heard.at(-1)));
    return false;
  }, 2 * deadlineMs);
  const [seconds] = heard.at(-1);
  assert.ok(seconds >= 30 && heard.length > 1, JSON.stringify(heard));
});

test("how long a trial lasted is from its first sample to its last", async () => {
  await show("#/trials");
  await seen(row("of-both"));
  assert.equal(await cell("of-both", "Lasted"), "49.0 s");
  assert.equal(await cell("of-processors", "Lasted"), "22.0 min");
  assert.equal(await cell("bare", "Lasted"), "–");
});

test("what is missing is told in number, and as unknown where nobody knows it", async () => {
  const missing = async (trial) => [await cell(trial, "Missing"), await tab.locator(`${row(trial)} td[data-label="Missing"]`).evaluate((one) => one.classList.contains("worse"))];
  assert.deepEqual(await missing("lacks-some"), ["1,234", true]);
  assert.deepEqual(await missing("lacks-unknown"), ["unknown", true]);
  for (const trial of ["lacks-nothing", "of-both", "bare"]) assert.deepEqual(await missing(trial), ["none", false], trial);
});

test("a trial is as busy as its GPUs, and as its processors where it has none", async () => {
  const words = async (trial) => (await tab.locator(`${row(trial)} .spark svg`).count()) > 0 && tab.locator(`${row(trial)} .spark svg`).getAttribute("aria-label");
  assert.equal(await until("a line of GPUs", () => words("of-both")), "GPUs: 80.0 % busy on average");
  assert.equal(await until("a line of processors", () => words("of-processors")), "processors: 35.0 % busy on average");
});

test("trials are listed by each of their states", async () => {
  const listed = (what, state, wanted, ms) => until(what, async () => {
    const rows = await tab.locator("tbody tr").evaluateAll((all) => all.map((one) => [one.querySelector("td.name a").innerText, one.querySelector('td[data-label="State"]').innerText.trim()]));
    return rows.every(([, shown]) => shown.endsWith(state)) && JSON.stringify(rows.map(([name]) => name).sort()) === JSON.stringify(wanted);
  }, ms);
  for (const [state, wanted] of [["completed", ["bare", "lacks-nothing", "lacks-some", "lacks-unknown", "of-both", "of-processors"]], ["failed", ["broken"]]]) {
    await tab.selectOption('select[aria-label="State"]', state);
    await listed(state, state, wanted);
  }
  // Nobody has heard of it since it was written.
  await tab.selectOption('select[aria-label="State"]', "lost");
  await listed("lost", "lost", ["kept-open", "silent"], lostMs + deadlineMs);
  await tab.selectOption('select[aria-label="State"]', "running");
  await seen('[data-absence="empty"]:has-text("No trial matches")');
});

test("nothing went wrong in the page, and nothing was asked of others", () => {
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
