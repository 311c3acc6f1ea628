// The one tab that a test file looks with, and what it says of it: each file of tests is a process of its own.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after } from "node:test";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { deadlineMs, until } from "./stand.mjs";

/** BIN-FOLDER:PAGE-FOLDER:PLAYWRIGHT:CHROMIUM:RECORDER-LIBRARY, as run.sh has found them. */
export const [bin, page, playwright, chromiumPath, library] = process.env.STEPWELL_BROWSER_TEST.split(":");
const axe = readFileSync(join(dirname(playwright), "..", "axe-core", "axe.min.js"), "utf8");
/** What the browser says of answers that a test asked to fail. */
const expected = /Failed to load resource|ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY/;

export let tab;
let browser;
export const troubles = [];
/** What was asked of anybody but the master. */
export const foreign = [];

/** `others`: origins that other windows than the tab may ask; `options`: of playwright's context. */
export async function openTab(stand, others = [], options = {}) {
  const { chromium } = await import(pathToFileURL(playwright).href);
  browser = await chromium.launch({ executablePath: chromiumPath, args: ["--no-sandbox", "--disable-gpu"] });
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: "light", ...options });
  context.setDefaultTimeout(deadlineMs);
  context.on("page", (page) => {
    page.on("pageerror", (error) => troubles.push(String(error.stack)));
    page.on("console", (said) => said.type() === "error" && !expected.test(said.text()) && troubles.push(said.text()));
    page.on("request", (request) => {
      const { origin, protocol } = new URL(request.url());
      const isOurs = origin === new URL(stand.url).origin || (page !== tab && others.includes(origin));
      if (!isOurs && !/^(blob|data):/.test(protocol)) foreign.push(request.url());
    });
  });
  tab = await context.newPage();
  return tab;
}

export async function closeTab() {
  await browser?.close();
}

/** When all tests of a file are over; `more`: what else is to be closed before its master ends. */
export function closesAtEnd(stand, more) {
  after(async () => {
    await closeTab();
    await more?.();
    await stand.close();
  }, { timeout: deadlineMs });
}

/** Of any page: what it is there for, or why there is none of it. */
export const anything = "main :is(table, canvas, dl, .state-box):visible";
export const show = (hash) => tab.evaluate((to) => { location.hash = to; }, hash);
export const text = (selector) => tab.locator(selector).first().innerText();
/** Where it is not seen in time: what is. */
export const seen = (selector) => tab.waitForSelector(selector, { timeout: deadlineMs }).catch(async (error) => {
  throw new Error(`${error.message}\n${tab.url()}\n${(await tab.innerText("body")).slice(0, 1500)}`);
});
export const count = (selector) => tab.locator(selector).count();
export const gone = (selector) => tab.waitForSelector(selector, { state: "hidden", timeout: deadlineMs });
export const loaded = (what) => until(`${what} is loaded`, async () => (await count('[data-absence="loading"]')) === 0);

/** Of a trial's page: what it shows is there. */
export async function openView(name) {
  await tab.click(`nav.tabs a[href*="/${name}"]`);
  await seen(`nav.tabs a[aria-current="page"][href*="/${name}"]`);
  await loaded(name);
}

/** What is saved by a click, under which name. */
export async function saved(click) {
  const [file] = await Promise.all([tab.waitForEvent("download"), tab.click(click)]);
  return { name: file.suggestedFilename(), bytes: readFileSync(await file.path()) };
}

/** Of a picture: how many of its pixels have each of these colours (`rgb(…)`), or nearly, for edges are mixed with what lies below. */
export function pixelsOf(png, colors, nearness = 60) {
  return tab.evaluate(async ([bytes, wanted, near]) => {
    const bitmap = await createImageBitmap(new Blob([new Uint8Array(bytes)], { type: "image/png" }));
    const drawing = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
    drawing.drawImage(bitmap, 0, 0);
    const { data } = drawing.getImageData(0, 0, bitmap.width, bitmap.height);
    const marks = wanted.map((color) => color.match(/\d+/g).map(Number));
    const counts = marks.map(() => 0);
    for (let at = 0; at < data.length; at += 4) {
      marks.forEach(([red, green, blue], which) => {
        if (Math.hypot(data[at] - red, data[at + 1] - green, data[at + 2] - blue) <= near) ++counts[which];
      });
    }
    return { counts, width: bitmap.width, height: bitmap.height };
  }, [[...png], colors, nearness]);
}

/** What axe finds that keeps people out; the source is evaluated, for the page's own policy lets no script in. */
export async function graveFindings() {
  if (!(await tab.evaluate(() => "axe" in window))) await tab.evaluate(axe);
  const { violations, passes } = await tab.evaluate(() => window.axe.run(document));
  assert.ok(passes.length > 10, "it looks at the page");
  return violations.filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(" ")}`);
}

export async function assertUnharmed(where) {
  assert.equal(await tab.evaluate(() => window.harmed), undefined, where);
  assert.equal(await count("main script, main img"), 0, where);
}
