// What stands beside what: values with their names, buttons and headings in line, and nothing that moves because another is chosen.
//
//   STEPWELL_BROWSER_TEST=BIN-FOLDER:PAGE-FOLDER:PLAYWRIGHT:CHROMIUM:RECORDER-LIBRARY node --test layout_test.mjs
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { RawWriters } from "./raw_writer.mjs";
import { writeCluster } from "./scenes.mjs";
import { deadlineMs, Stand } from "./stand.mjs";
import { bin, closesAtEnd, foreign, loaded, openTab, page, seen, show, tab, troubles } from "./tab.mjs";

const stand = new Stand(bin, page);
let cluster;
let other;

before(async () => {
  await stand.startMaster();
  const raw = new RawWriters(stand.ports.grpc);
  ({ trialId: cluster } = await writeCluster(raw));
  ({ trialId: other } = await writeCluster(raw, "a-name-that-is-longer-than-the-other-one"));
  raw.close();
  await openTab(stand);
  await tab.goto(stand.url);
}, { timeout: 3 * deadlineMs });

closesAtEnd(stand);

const frames = () => tab.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

async function open(hash, width, there) {
  await tab.setViewportSize({ width, height: 900 });
  await show(hash);
  await seen(there);
  await loaded(hash);
  await frames();
}

const boxes = (selector) => tab.locator(selector).evaluateAll((all) => all.map((one) => {
  const { left, right, top, bottom, height } = one.getBoundingClientRect();
  return { left, right, top, bottom, middle: top + height / 2 };
}));

test("on a phone a legend's value is nearer to its own name than to the next one", async () => {
  await open(`#/trial/${cluster}/metrics`, 360, '[data-metric="gpu/gpu_util"] .legend li >> nth=5');
  const [names, values] = [await boxes('[data-metric="gpu/gpu_util"] .legend li bdi'), await boxes('[data-metric="gpu/gpu_util"] .legend li .legend-value')];
  for (const [at, name] of names.entries()) {
    const next = names[at + 1];
    const own = Math.max(0, values[at].top - name.bottom);
    assert.ok(own < 3 && (!next || next.top - values[at].bottom >= own + 5), JSON.stringify([name, values[at], next]));
  }
});

test("a loss is named by its rank first, then by where that ran, in the order of ranks", async () => {
  await open(`#/trial/${cluster}/metrics`, 1280, '[data-metric="training/loss"] .legend li >> nth=3');
  assert.deepEqual(await tab.locator('[data-metric="training/loss"] .legend bdi').allInnerTexts(), ["rank=0 agent=node-1", "rank=1 agent=node-2", "rank=2 agent=node-3", "rank=3 agent=node-1"]);
});

test("tabs stay where they are, whichever is chosen", async () => {
  await open(`#/trial/${cluster}/metrics`, 1280, ".charts canvas");
  const before = await boxes(".tabs a, .top nav a");
  for (const view of ["heat", "completeness"]) {
    await open(`#/trial/${cluster}/${view}`, 1280, `.tabs a[aria-current][href*="/${view}"]`);
    assert.deepEqual((await boxes(".tabs a, .top nav a")).map(({ left }) => left), before.map(({ left }) => left), view);
  }
  await open("#/admin", 1280, "dl.facts");
  assert.deepEqual((await boxes(".top nav a")).map(({ left }) => left), before.filter(({ top }) => top < 60).map(({ left }) => left));
});

test("what takes trials out of a comparison stands in one column, in the line of the trial's name", async () => {
  for (const width of [1280, 2560]) {
    await open(`#/compare?t=${cluster}&t=${other}`, width, '.compared li:has-text("completed") >> nth=1');
    const [removes, names] = [await boxes('.compared button:text-is("Remove")'), await boxes(".compared [data-focus^=open-]")];
    assert.ok(Math.abs(removes[0].left - removes[1].left) < 1 && removes.every(({ middle }, at) => Math.abs(middle - names[at].middle) < 3), JSON.stringify([removes, names]));
  }
});

test("a heading stands in one line with what is beside it", async () => {
  const pairs = [
    [`#/trial/${cluster}/heat`, ".heat-scale", ".chart-head > h2", ".heat-scale > span:first-child"],
    [`#/trial/${cluster}/completeness`, ".states", ".tools > h2", ".tools > .states"],
    [`#/compare?t=${cluster}&t=${other}`, ".chart-head > h2", ".chart-head > h2", 'select[aria-label="Order"]'],
  ];
  for (const [hash, there, heading, neighbour] of pairs) {
    await open(hash, 1280, there);
    const [one, two] = [(await boxes(heading))[0], (await boxes(neighbour))[0]];
    assert.ok(Math.abs(one.middle - two.middle) < 3, `${hash}: ${JSON.stringify([one, two])}`);
  }
});

test("facts of a trial are whole, and no line of them begins with what parts them", async () => {
  await open(`#/trial/${cluster}/completeness`, 360, ".head p");
  const lines = await tab.locator(".head > p").first().evaluate((place) => {
    const found = new Map();
    const walker = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      for (let at = 0; at < node.length; ++at) {
        const range = document.createRange();
        range.setStart(node, at);
        range.setEnd(node, at + 1);
        const { top, width } = range.getBoundingClientRect();
        if (width > 0) found.set(Math.round(top), (found.get(Math.round(top)) ?? "") + node.data[at]);
      }
    }
    return [...found.values()].map((line) => line.trim());
  });
  assert.ok(lines.length > 1 && lines.every((line, at) => !line.startsWith("·") && (at === lines.length - 1 || line.endsWith("·"))), JSON.stringify(lines));
});

test("on a phone the fields that choose whose caps are shown stand below each other, and one that is off looks so", async () => {
  await open("#/admin", 360, "#cap-seriesSamples");
  const fields = await boxes("#place-owner, #place-name, #place-group, [data-focus=show-caps]");
  assert.ok(fields.every(({ left }) => Math.abs(left - fields[0].left) < 1), JSON.stringify(fields));
  const looks = () => tab.locator("#place-name").evaluate((one) => [getComputedStyle(one).borderTopStyle, getComputedStyle(one).backgroundColor, getComputedStyle(one.parentElement).color]);
  const off = await looks();
  await tab.selectOption("#place-owner", "project");
  const on = await looks();
  assert.ok(off.every((look, at) => look !== on[at]), JSON.stringify([off, on]));
});

test("on a phone lines between the rows of timings go through the column that stays", async () => {
  await open(`#/trial/${cluster}/timings`, 360, 'tr.total:has-text("step")');
  const body = tab.locator('table[data-rank="0"] tbody');
  await body.evaluate((one) => one.scrollIntoView({ block: "center" }));
  await frames();
  const table = await body.boundingBox();
  const [held, beside] = [(await boxes('table[data-rank="0"] tr.total td'))[0], (await boxes('table[data-rank="0"] tr.total td'))[1]];
  const clip = { x: 0, y: table.y - 1, width: 360, height: table.height };
  const png = await tab.screenshot({ clip, type: "png" });
  // Where no text is: beside the edges of both cells.
  const lines = await tab.evaluate(async ([bytes, columns]) => {
    const bitmap = await createImageBitmap(new Blob([new Uint8Array(bytes)], { type: "image/png" }));
    const drawing = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
    drawing.drawImage(bitmap, 0, 0);
    return columns.map((x) => {
      const { data } = drawing.getImageData(x, 0, 1, bitmap.height);
      const colors = Array.from({ length: bitmap.height }, (_, y) => data.subarray(4 * y, 4 * y + 3).join());
      return colors.filter((color, y) => y > 0 && color !== colors[y - 1] && color !== colors[8]).length;
    });
  }, [[...png], [held.left + 3, beside.left + 4].map(Math.round)]);
  const rows = await body.locator("tr").count();
  assert.deepEqual(lines, [rows, rows]);
});

test("nothing went wrong in the page, and nothing was asked of others", () => {
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
