// What needs no pointer, in a real browser before a real master: from the link that skips the top bar to a comparison, a
// choice and a closer look, by Tab, Enter, the space bar and keys of the charts alone. A closer look is of finer data.
//
//   STEPWELL_BROWSER_TEST=BIN-FOLDER:PAGE-FOLDER:PLAYWRIGHT:CHROMIUM:RECORDER-LIBRARY node --test keys_test.mjs
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { RawWriters } from "./raw_writer.mjs";
import { clusterSeconds, writeCluster } from "./scenes.mjs";
import { deadlineMs, Stand, until } from "./stand.mjs";
import { bin, closesAtEnd, count, foreign, loaded, openTab, page, saved, seen, tab, text, troubles } from "./tab.mjs";

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

test("what a cap would remove is asked and the cap is set by keys", async () => {
  await begin("#/admin", "#cap-seriesSamples");
  await tabTo("#cap-seriesSamples");
  await tab.keyboard.type("1M");
  await tab.keyboard.press("Enter");
  await seen('button:text-is("Set these caps")');
  assert.match(await text('.state-box:has(button:text-is("Set these caps"))'), /It would remove/);
  assert.equal(await text('tr:has(#cap-seriesSamples) td[data-label="Decided by"]'), "default", "nothing is set by looking");
  await tabTo(".state-box button.primary");
  await tab.keyboard.press("Enter");
  await until("the cap holds", async () => (await count("#cap-seriesSamples")) === 1 && (await text('tr:has(#cap-seriesSamples) td[data-label="Holds"]')) === "1M");
  assert.match(await stand.command("caps", "get"), /\nsamples +1000000 +1000000 /);
});

test("the exact times of a range are told to who comes to it by keys", async () => {
  await begin(`#/trial/${cluster.trialId}/metrics`, `${cpu} canvas`);
  assert.equal(await tab.locator("[data-range] .hint").isVisible(), false);
  await tabTo("[data-range]");
  assert.equal(await tab.locator("[data-range] .hint").isVisible(), true);
  assert.match(await text("[data-range] .hint"), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\S* to \d{4}-/);
  // Of what a chart is stands in it, for all.
  assert.equal(await text(`${cpu} .chart-head`).then((words) => words.replace(/\s+/g, " ")), "cpu_util_simple cpu, single samples");
});

/** Of one series: how far its buckets are apart, at least, and how many samples each has, at most. */
async function bucketsOf(agent) {
  const { bytes } = await saved('button:text-is("CSV")');
  const rows = bytes.toString("utf8").split("\r\n").filter((row) => row.startsWith(`cpu,cpu_util_simple,agent=${agent},`)).map((row) => row.split(","));
  const starts = rows.map((cells) => Date.parse(`${cells[4].slice(0, 23)}Z`));
  return { distanceMs: Math.min(...starts.slice(1).map((start, at) => start - starts[at])), samples: Math.max(...rows.map((cells) => Number(cells.at(-1)))), count: rows.length };
}

test("a zoom by keys loads finer data", async () => {
  await begin(`#/trial/${cluster.trialId}/metrics`, `${cpu} .legend li >> nth=2`);
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
  assert.ok(near.distanceMs <= whole.distanceMs / 3 && near.count > 200, `${JSON.stringify(near)} after ${JSON.stringify(whole)}`);
});

test("nothing went wrong in the page, and nothing was asked of others", () => {
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
