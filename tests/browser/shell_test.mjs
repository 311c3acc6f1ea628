// What stands there before the page's script runs, and what a first look must not wait for.
//
//   STEPWELL_BROWSER_TEST=BIN-FOLDER:PAGE-FOLDER:PLAYWRIGHT:CHROMIUM:RECORDER-LIBRARY node --test shell_test.mjs
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { RawWriters } from "./raw_writer.mjs";
import { deadlineMs, Stand, until } from "./stand.mjs";
import { bin, closesAtEnd, openTab, page, seen, tab } from "./tab.mjs";

const stand = new Stand(bin, page);
let raw;

before(async () => {
  await stand.startMaster();
  raw = new RawWriters(stand.ports.grpc);
  const startUs = (Math.floor(Date.now() / 1000) - 60) * 1e6;
  await raw.write({ trial: "seen", startUs, stepUs: 1_000_000, ticks: 50, series: [{ group: "gpu", name: "gpu_util", unit: "percent", value: () => 40 }] });
  await openTab(stand);
}, { timeout: 3 * deadlineMs });

closesAtEnd(stand, () => raw?.close());

const looks = () => tab.evaluate(() => ({
  links: [...document.querySelectorAll("nav a")].map((link) => link.innerText), starts: document.querySelector("#main .starting")?.checkVisibility() ?? false,
  ground: getComputedStyle(document.body).backgroundColor, painted: performance.getEntriesByName("first-contentful-paint").length > 0,
}));

test("the top bar is painted in the person's theme while the script loads, and comes to life with it", async () => {
  await tab.goto(stand.url);
  await seen("tbody tr");
  await tab.evaluate(() => localStorage.setItem("stepwell-theme", "dark"));
  let go;
  const mayGo = new Promise((done) => (go = done));
  await tab.route("**/app-*.js", async (route) => {
    await mayGo;
    await route.continue();
  });
  await tab.reload({ waitUntil: "commit" });
  const shell = await until("the shell is painted", async () => {
    const now = await looks().catch(() => null);
    return now?.painted ? now : false;
  });
  assert.deepEqual(shell.links, ["Trials", "Compare", "Master"]);
  assert.ok(shell.starts);
  const [red] = shell.ground.match(/\d+/g).map(Number);
  assert.ok(red < 64, `a dark ground: ${shell.ground}`);
  go();
  await seen('nav a[aria-current="page"]:has-text("Trials")');
  await seen("tbody tr");
  assert.equal(await tab.locator(".starting").count(), 0);
  assert.deepEqual([await tab.locator("header.top").count(), (await looks()).ground], [1, shell.ground]);
  await tab.unroute("**/app-*.js");
});

test("without scripts it says so, and what to do", async () => {
  const context = await tab.context().browser().newContext({ javaScriptEnabled: false });
  try {
    const bare = await context.newPage();
    await bare.goto(stand.url);
    assert.match(await bare.locator("#main").innerText(), /needs JavaScript.*stepwell report/);
    assert.equal(await bare.locator(".starting").isVisible(), false);
  } finally {
    await context.close();
  }
});

// The first formatter or collator of a page costs 20 to 60 ms, before anything is drawn.
test("charts are drawn without anything of Intl", async () => {
  const context = await tab.context().browser().newContext();
  try {
    const fresh = await context.newPage();
    await fresh.addInitScript(() => {
      window.ofIntl = [];
      for (const name of ["NumberFormat", "DateTimeFormat", "Collator", "PluralRules"]) {
        Intl[name] = new Proxy(Intl[name], { construct: (made, words) => (window.ofIntl.push(name), Reflect.construct(made, words)) });
      }
      for (const [type, name] of [[Number, "toLocaleString"], [Date, "toLocaleString"], [Date, "toLocaleDateString"], [String, "localeCompare"]]) {
        const made = type.prototype[name];
        type.prototype[name] = function (...words) {
          window.ofIntl.push(name);
          return made.apply(this, words);
        };
      }
    });
    await fresh.goto(stand.url);
    await fresh.locator('tbody a:has-text("seen")').click();
    await fresh.locator("nav.tabs a", { hasText: "System metrics" }).click();
    await fresh.locator(".chart canvas").first().waitFor({ timeout: deadlineMs });
    await fresh.locator("nav.tabs a", { hasText: "Heat map" }).click();
    await fresh.locator("canvas").first().waitFor({ timeout: deadlineMs });
    assert.deepEqual(await fresh.evaluate(() => window.ofIntl), []);
  } finally {
    await context.close();
  }
});
