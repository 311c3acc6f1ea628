// The page before trials that were written for it: gaps, several machines, one cursor for all charts, the list of
// trials and its filters, and each way in which there is nothing to see.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { before, test } from "node:test";
import { join } from "node:path";
import { drawnAcross, drawnUpwards } from "./looks.mjs";
import { decode, duration, encode, RawWriters } from "./raw_writer.mjs";
import { clusterGap, clusterSeconds, cpuOf, nodes, writeCluster } from "./scenes.mjs";
import { deadlineMs, soon, Stand, until } from "./stand.mjs";
import { bin, closesAtEnd, count, foreign, gone, loaded, openTab, openView, page, saved, seen, show, tab, text, troubles } from "./tab.mjs";
import { composerCycle } from "./viewer.mjs";

const stand = new Stand(bin, page);
let raw;
let cluster;
const cpu = '[data-metric="cpu/cpu_util_simple"]';
const memory = '[data-metric="memory/memory_free"]';
const many = 53;

before(async () => {
  await stand.startMaster();
  raw = new RawWriters(stand.ports.grpc);
  cluster = await writeCluster(raw);
  await raw.write({ trial: "over" });
  for (let at = 1; at <= many; ++at) await raw.write({ trial: `sweep-${String(at).padStart(2, "0")}`, project: "many", open: at === 7 });
  await openTab(stand);
  await tab.goto(stand.url);
}, { timeout: 3 * deadlineMs });

closesAtEnd(stand, () => raw?.close());

const names = () => tab.locator("tbody td.name a").allInnerTexts();
const listed = (what, fits) => until(what, async () => fits(await names()));

test("trials are searched by name, state and project, and turned over page by page", async () => {
  await listed("50 trials, newest first", (all) => all.length === 50 && all[0] === "many/sweep-53");
  assert.match(await text('nav[aria-label="Pages of trials"]'), /page 1, 50 trials/);
  await tab.click('button:has-text("Older")');
  await listed("the others", (all) => all.length === many + 2 - 50 && all.includes("cluster"));
  await seen('button:has-text("Older"):disabled');
  await tab.fill('input[aria-label="Project"]', "many");
  await listed("the first page of those of a project", (all) => all.length === 50 && all.every((name) => name.startsWith("many/")));
  await until("the project in the address", () => tab.evaluate(() => location.hash.includes("project=many")));
  await tab.fill('input[type="search"]', "p-0");
  await listed("those of the name", (all) => all.length === 9 && all.every((name) => name.startsWith("many/sweep-0")));
  assert.equal(await count('nav[aria-label="Pages of trials"]'), 0);
  await tab.selectOption('select[aria-label="State"]', "running");
  await listed("the one that runs", (all) => all.length === 1 && all[0] === "many/sweep-07");
  // What was asked for stands in the address.
  await tab.reload();
  await listed("the one that runs, again", (all) => all.length === 1 && all[0] === "many/sweep-07");
  await tab.fill('input[type="search"]', "no such");
  await seen('[data-absence="empty"]:has-text("No trial matches")');
  await tab.click('button:has-text("Show all trials")');
  await listed("all of them", (all) => all.length === 50);
  assert.equal(await tab.inputValue('input[type="search"]'), "");
  await tab.fill('input[type="search"]', "cluster");
  await listed("the cluster", (all) => all.length === 1 && all[0] === "cluster");
  await tab.click('tbody a:has-text("cluster")');
  await seen('tr.total:has-text("step")');
});

test("timings are saved as CSV and PNG", async () => {
  const csv = await saved('button:has-text("CSV")');
  assert.match(csv.name, /^stepwell-trial-\d+-timings\.csv$/);
  const lines = csv.bytes.toString().split("\r\n");
  const column = Object.fromEntries(lines[0].split(",").map((name, at) => [name, at]));
  const step = lines.map((line) => line.split(",")).find((cells) => cells.includes("step") && cells[column.rank] === "2");
  assert.equal(step?.[column.steps], String(cluster.steps), csv.bytes.toString().slice(0, 600));
  assert.ok(Number(step[column.total_seconds]) <= clusterSeconds, `${step[column.total_seconds]} s of steps`);
  const png = await saved('button:has-text("PNG")');
  assert.match(png.name, /^stepwell-trial-\d+-timings\.png$/);
  assert.ok(png.bytes.readUInt32BE(16) > 700 && png.bytes.readUInt32BE(20) > 300, `${png.bytes.readUInt32BE(16)} x ${png.bytes.readUInt32BE(20)}`);
});

test("a badge says how complete a trial is, and leads to why", async () => {
  await seen('.head a.badge:has-text("incomplete")');
  await tab.click(".head a.badge");
  await seen('nav.tabs a[aria-current="page"]:has-text("Completeness")');
  assert.match(await text("[data-completeness]"), /^Incomplete: .* 400 are missing \(sensor failed 400\)\.$/);
  await seen('tr:has-text("sensor failed"):has-text("400"):has-text("cpu"):has-text("2 (node-2)"):has-text("the kernel did not answer")');
  assert.deepEqual(await tab.locator('.scroll[aria-label="Writers"] td.lead').allInnerTexts(), [...nodes.map((node) => `sampler of ${node}`), ...[0, 1, 2, 3].map((rank) => `rank ${rank}`)]);
});

test("machines share a chart: a line of means each, with a band from the smallest to the largest", async () => {
  await openView("metrics");
  await seen(`${cpu} .legend li >> nth=2`);
  await soon(async () => {
    const legend = await tab.locator(`${cpu} .legend li`).allInnerTexts();
    for (const [at, line] of legend.entries()) {
      const [, agent, ...values] = line.replace(/\s+/g, " ").match(/^agent=(\S+) (\S+) % \((\S+) … (\S+) %\)$/) ?? assert.fail(line);
      const { mean, swing } = cpuOf(at);
      assert.equal(agent, nodes[at]);
      assert.deepEqual(values.slice(1).map(Number), [mean - swing, mean + swing], line);
      assert.ok(Math.abs(Number(values[0]) - mean) < swing / 2, line);
    }
  });
  // Of percents the axis ends at 102.
  const places = [15, 23, 30, 37, 42.5, 48, 55, 62, 67.5, 73, 80, 87, 95].map((percent) => percent / 102);
  await soon(async () => {
    const drawn = await tab.evaluate(drawnUpwards, { chart: cpu, across: 0.8, ups: places });
    assert.deepEqual(drawn.map((dense) => dense > 0), [false, true, true, true, false, true, true, true, false, true, true, true, false], String(drawn));
  });
  await tab.selectOption('select[aria-label="Lines"]', "one");
  await seen(`${cpu} p:has-text("3 series in one line")`);
  await until("one line of all", async () => / % \(20(\.0)? … 90(\.0)? %\)$/.test((await text(`${cpu} .legend`)).trim()));
  await tab.selectOption('select[aria-label="Lines"]', "");
  await until("a line each again", async () => (await count(`${cpu} .legend li`)) === 3);
});

test("a gap is a hatched band where it was, in the charts of its group alone", async (the) => {
  the.after(() => tab.emulateMedia({ colorScheme: "light" }));
  for (const colorScheme of ["dark", "light"]) {
    await tab.emulateMedia({ colorScheme });
    const found = await until("the band", async () => {
      const bands = await tab.evaluate(drawnAcross, { chart: cpu, up: 95 / 102 });
      return bands.length > 0 && bands;
    });
    assert.equal(found.length, 1, JSON.stringify(found));
    const [{ from, to, dense }] = found;
    assert.ok(Math.abs(from - clusterGap.from / clusterSeconds) < 0.015 && Math.abs(to - clusterGap.to / clusterSeconds) < 0.015, JSON.stringify(found));
    assert.ok(dense > 3, `${colorScheme}: ${dense} pixels of hatches`);
    assert.deepEqual(await tab.evaluate(drawnAcross, { chart: memory, up: 0.03 }), [], colorScheme);
  }
});

const gapWords = /Gap: sensor failed \(400 samples missing, group cpu\): the kernel did not answer/;

test("the cause of a gap is told where the pointer or the keys are in it", async () => {
  const place = tab.locator(`${cpu} .u-over`);
  // A theme that has just changed draws it anew.
  await until("the chart is in sight", () => place.scrollIntoViewIfNeeded().then(() => true, () => false));
  const { width, height } = await place.boundingBox();
  const card = () => tab.locator(cpu).boundingBox();
  const before = await card();
  await place.hover({ position: { x: width * 0.45, y: height / 2 } });
  await seen(`${cpu} .gap-words`);
  assert.match(await text(`${cpu} .gap-words`), gapWords);
  // Below what they explain, where there was room for them.
  const [plot, words] = [await place.boundingBox(), await tab.locator(`${cpu} .gap-words`).boundingBox()];
  assert.ok(words.y >= plot.y + plot.height, JSON.stringify([plot, words]));
  assert.deepEqual(await card(), before);
  await place.hover({ position: { x: width * 0.2, y: height / 2 } });
  await gone(`${cpu} .gap-words`);
  await tab.mouse.move(0, 0);
  await tab.locator(`${cpu} .chart-canvas`).focus();
  await tab.keyboard.press("ArrowLeft"); // from the middle, which is in it
  await seen(`${cpu} .gap-words`);
  assert.match(await text(`${cpu} .gap-words`), gapWords);
  // Those who cannot see it are told.
  assert.equal(await tab.locator(`${cpu} .chart-place`).getAttribute("aria-live"), "polite");
  assert.equal(await count(`${memory} .gap-words`), 0);
});

test("one cursor runs through all charts", async () => {
  const place = tab.locator(`${cpu} .u-over`);
  const { width, height } = await place.boundingBox();
  for (const across of [0.25, 0.75]) {
    await place.hover({ position: { x: width * across, y: height / 2 } });
    const at = new Date((cluster.startUs / 1e6 + clusterSeconds * across) * 1000).getTime();
    for (const chart of [cpu, memory, '[data-metric="gpu/gpu_util"]', '[data-metric="training/loss"]']) {
      const shown = await until(`the place in ${chart}`, async () => (await text(`${chart} .chart-place`)).match(/^\d\d:\d\d:\d\d/)?.[0]);
      const told = new Date(`${new Date(at).toISOString().slice(0, 10)}T${shown}Z`).getTime();
      assert.ok(Math.abs(told - at) < 3000, `${chart}: ${shown}, pointed at ${new Date(at).toISOString()}`);
    }
  }
  await tab.mouse.move(0, 0);
  await until("the newest means", async () => (await text(`${memory} .chart-place`)) === "newest means");
});

async function choose(what, value) {
  await tab.click(`details[data-choice="${what}"] summary`);
  await tab.locator(`details[data-choice="${what}"] label`).getByText(value, { exact: true }).click();
  await tab.keyboard.press("Escape");
}

test("agents, GPUs and ranks are chosen, and the link has the choice", async () => {
  const gpu = '[data-metric="gpu/gpu_util"]';
  const lines = (chart, wanted) => until(`${chart}: ${wanted}`, async () =>
    JSON.stringify(await tab.locator(`${chart} .legend bdi`).allInnerTexts()) === JSON.stringify(wanted));
  await choose("Agents", "node-3");
  await lines(gpu, ["device=0", "device=1"]);
  await until("one line of processors", async () => (await count(`${cpu} .legend li`)) === 1);
  await choose("GPUs", "1");
  await until("one line of GPUs", async () => (await count(`${gpu} .legend li`)) === 1);
  assert.match(await text(`${gpu} .legend`), /^9\d(\.\d+)? %|^8\d(\.\d+)? %/);
  await choose("Agents", "node-1");
  await lines(gpu, ["agent=node-1", "agent=node-3"]);
  await choose("Ranks", "0");
  await until("the loss of one rank", async () => (await count('[data-metric="training/loss"] .legend li')) === 1);
  await tab.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await tab.click('button:has-text("Copy link")');
  await seen('button:has-text("Copied")');
  const link = await tab.evaluate(() => navigator.clipboard.readText());
  await until("the link is the address", () => tab.url() === link);
  await show("#/trials");
  await seen("tbody tr");
  await tab.goto(link);
  await lines(gpu, ["agent=node-1", "agent=node-3"]);
  await seen('summary:has-text("Agents: 2 of 3")');
  for (const what of ["Agents", "GPUs", "Ranks"]) {
    await tab.click(`details[data-choice="${what}"] summary`);
    await tab.click(`details[data-choice="${what}"] button:text-is("All")`);
    await seen(`summary:has-text("${what}: all")`);
    await tab.keyboard.press("Escape");
  }
  await seen(`${gpu} .legend li >> nth=5`);
});

test("a link that may not be copied is said to be in the address bar", async () => {
  await tab.context().clearPermissions();
  await tab.evaluate(() => { navigator.clipboard.writeText = () => Promise.reject(new Error("not allowed")); });
  await tab.click('button:has-text("Copy link")');
  await seen('button:has-text("It is in the address bar")');
});

test("the theme is switched by a button, for the charts too, and kept", async () => {
  const ground = () => tab.evaluate(() => getComputedStyle(document.querySelector(".panel")).backgroundColor);
  const axis = () => tab.evaluate(() => {
    const canvas = document.querySelector("[data-metric] canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, 60, canvas.height);
    const most = data.reduce((found, alpha, at) => (at % 4 === 3 && alpha > data[found] ? at : found), 3);
    return data[most - 3] + data[most - 2] + data[most - 1];
  });
  const [lightGround, lightAxis] = [await ground(), await axis()];
  // The system's, as long as nobody has chosen: the button says what a click does.
  await tab.emulateMedia({ colorScheme: "dark" });
  await seen('button[aria-label="Switch to the light theme"]');
  await tab.emulateMedia({ colorScheme: "light" });
  await tab.click('button[aria-label="Switch to the dark theme"]');
  await seen('html[data-theme="dark"] button[aria-label="Switch to the light theme"]');
  assert.notEqual(await ground(), lightGround);
  assert.ok((await axis()) > lightAxis + 100, `${await axis()} beside ${lightAxis}`);
  await tab.reload();
  await seen('html[data-theme="dark"] button[aria-label="Switch to the light theme"]');
  await tab.click('button[aria-label="Switch to the light theme"]');
  await seen('html[data-theme="light"]');
  assert.equal(await ground(), lightGround);
});

const idOf = async (name) => (await (await fetch(`${stand.url}stepwell.v1.QueryService/ListTrials`, {
  method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ nameContains: name }),
})).json()).trials[0].trialId;

test("not enabled, no data yet and ended without any are told apart, with what to do", async () => {
  const views = ["timings", "metrics", "heat"];
  // Here, for nobody hears of it again: after a minute it no longer runs.
  await raw.write({ trial: "bare", open: true });
  const [bare, over] = [await idOf("bare"), await idOf("over")];
  for (const view of views) {
    await show(`#/trial/${bare}/${view}`);
    await seen(`nav.tabs a[aria-current="page"][href*="/${view}"]`);
    await seen('[data-absence="no data yet"]:has-text("The trial is running and has sent none so far")');
    await show(`#/trial/${over}/${view}`);
    await seen('[data-absence="empty"]:has-text("It has ended and recorded none")');
    await show("#/trials");
  }
  await stand.command("admin", "profiling", "bare", "off");
  for (const view of views) {
    await show(`#/trial/${bare}/${view}`);
    await seen(`nav.tabs a[aria-current="page"][href*="/${view}"]`);
    await seen(`[data-absence="not enabled"]:has-text("stepwell admin profiling id:${bare} on")`);
    assert.match(await text('[data-absence="not enabled"]'), /Recording is off for this trial/);
    assert.match(await text(".head .note"), /recording is off/);
  }
  // Groups are of sensors: what a training times itself is recorded as before.
  await stand.command("admin", "profiling", "bare", "on", "--groups", "cpu,disk");
  for (const view of ["timings", "heat"]) {
    await show(`#/trial/${bare}/${view}`);
    await tab.reload();
    await seen(`nav.tabs a[aria-current="page"][href*="/${view}"]`);
    await loaded(view);
    await seen('[data-absence="no data yet"]:has-text("The trial is running and has sent none so far")');
    assert.equal(await count('[data-absence="not enabled"]'), 0, view);
  }
  await show(`#/trial/${bare}/metrics`);
  await seen('[data-absence="not enabled"]:has-text("only these groups are sampled: cpu, disk")');
  await stand.command("admin", "profiling", "bare", "on");
  await tab.reload();
  await seen('[data-absence="no data yet"]');
  // One that has ended sends no more, whatever is asked of it since.
  await stand.command("admin", "profiling", "over", "on", "--groups", "cpu,disk");
  for (const view of views) {
    await show(`#/trial/${over}/${view}`);
    await seen(`nav.tabs a[aria-current="page"][href*="/${view}"]`);
    await seen('[data-absence="empty"]:has-text("It has ended and recorded none")');
    assert.equal(await count('[data-absence="not enabled"]'), 0, view);
  }
  // Where some are measured: which are not, and why.
  const some = await raw.write({
    trial: "some", open: true, startUs: (Math.floor(Date.now() / 1000) - 20) * 1e6, stepUs: 1_000_000, ticks: 15,
    series: [{ group: "cpu", name: "cpu_util_simple", unit: "percent", value: () => 50 }],
  });
  const why = async () => (await count("[data-absent]")) > 0 && text("[data-absent]");
  await show(`#/trial/${some}/metrics`);
  await until("what is not measured", async () => /^Not measured: gpu_util, .*disk_iops.* \(no agent of this trial sampled them\)\.$/.test(await why() || ""));
  await stand.command("admin", "profiling", "some", "on", "--groups", "cpu,gpu");
  await tab.reload();
  await until("what was not asked for", async () => /^Not measured: memory_free, net_.*disk_throughput_write \(not enabled: by request only cpu, gpu are sampled\); gpu_util, gpu_free_memory \(no agent of this trial found a GPU that it may read\)\.$/.test(await why() || ""));
  await stand.command("admin", "profiling", "cluster", "on", "--groups", "cpu,gpu");
  await show(`#/trial/${cluster.trialId}/metrics`);
  await seen('[data-absent]:has-text("no agent of this trial sampled them")');
  assert.doesNotMatch(await text("[data-absent]"), /not enabled/);
  // Timings too, and on tabs that nothing follows the head tells it.
  for (const view of ["metrics", "timings", "heat", "traces", "completeness"]) {
    await openView(view);
    await seen('.head .badge:has-text("completed")');
    if (view !== "traces" && view !== "completeness") await seen('[data-follow="ended"]:has-text("trial has ended")');
  }
  await openView("metrics");
  await stand.command("admin", "profiling", "cluster", "on");
});

test("a trial that is not heard of is not said to have ended", async () => {
  await tab.route("**/stepwell.v1.QueryService/GetTrial", async (route) => {
    const answer = await route.fetch();
    const told = decode("GetTrialResponse", await answer.body());
    told.trial.state = 4;
    await route.fulfill({ response: answer, body: Buffer.from(encode("GetTrialResponse", told)) });
  });
  await tab.reload();
  await seen('[data-follow="ended"]:has-text("not heard of for a minute")');
  await seen('.head .badge:has-text("lost")');
  await tab.unroute("**/stepwell.v1.QueryService/GetTrial");
});

test("loading is said as long as it lasts", async () => {
  const asked = [];
  const trial = (view) => `#/trial/${cluster.trialId}/${view}`;
  // Of a trial's pages what all of them ask is answered, so that each waits for its own; but for the first.
  const shared = /\/(GetTrial|ListSeries)$/;
  let answered = null;
  await tab.route("**/stepwell.v1.*/*", (route) => (answered?.test(route.request().url()) ? route.continue() : void asked.push(route)));
  const pages = [
    [trial("timings"), "Loading the trial", null], ["#/trials", "Loading the trials", null], [trial("timings"), "Loading the timings", shared],
    [trial("metrics"), "Loading cpu_util_simple", shared], [trial("heat"), "Loading the heat map", shared], [trial("traces"), "Loading the traces", shared],
    [`#/compare?t=${cluster.trialId}&t=${await idOf("over")}`, "Loading the comparison", null],
    ["#/admin", "Loading the master's status", null], ["#/admin", "Loading the caps", null],
  ];
  for (const [hash, words, through] of pages) {
    answered = through;
    await tab.goto(`${stand.url}${hash}`);
    await tab.reload();
    const box = `[data-absence="loading"]:has-text("${words}")`;
    await seen(box);
    await until("the question", () => asked.length > 0);
    assert.match(await text(box), /The master was asked/);
    assert.deepEqual(await tab.locator('[data-absence]:not([data-absence="loading"]):visible').allInnerTexts(), [], hash);
    asked.length = 0;
  }
  await tab.unroute("**/stepwell.v1.*/*");
  for (const route of asked) await route.continue().catch(() => {});
  await tab.reload();
  await seen("dl.facts");
});

test("each way of failing has a mark and words of its own", async () => {
  const connect = (status, code) => (route) => route.fulfill({ status, contentType: "application/json", body: JSON.stringify({ code, message: "because <b>so</b>" }) });
  const ways = [
    { absence: "lost", says: /Lost the connection to the master.*Is 'stepwell serve' running.*no answer from 127\.0\.0\.1/s, answer: (route) => route.abort("connectionrefused"), bar: true },
    { absence: "unavailable", says: /The master cannot answer now.*starting, recovering.*because <b>so<\/b>/s, answer: connect(503, "unavailable") },
    { absence: "not permitted", says: /Not permitted.*Ask whoever runs the master.*because <b>so<\/b>/s, answer: connect(403, "permission_denied") },
    { absence: "failed", says: /Something failed.*the master's log says more.*because <b>so<\/b>/s, answer: connect(500, "internal") },
  ];
  const views = ["timings", "metrics", "heat", "traces", "completeness"].map((view) => `#/trial/${cluster.trialId}/${view}`);
  const hashes = ["#/trials", ...views, `#/compare?t=${cluster.trialId}&t=${await idOf("over")}`, "#/admin"];
  const signs = new Set();
  for (const { absence, says, answer, bar = false } of ways) {
    for (const hash of hashes) {
      await tab.route("**/stepwell.v1.*/*", answer);
      await tab.goto(`${stand.url}${hash}`);
      await tab.reload();
      const box = `[data-absence="${absence}"][role="alert"]`;
      await seen(box);
      assert.match(await text(box), says);
      // Nothing says that it loads, or that there is nothing, where nobody knows.
      await until(`no other box at ${hash}`, async () => (await count(`[data-absence]:not([data-absence="${absence}"]):visible`)) === 0);
      assert.equal(await tab.locator(".lost:visible").count(), bar ? 1 : 0, `${absence} ${hash}`);
      assert.equal(await count(`${box} b`), 0);
      // Drawn, for a font may lack a sign.
      signs.add(await tab.locator(`${box} svg.state-sign[aria-hidden="true"]:visible path`).first().getAttribute("d"));
      await tab.unroute("**/stepwell.v1.*/*");
      await tab.locator(`${box} button:has-text("Try again")`).first().click();
      await seen(':is(tbody tr, .charts canvas, .heat canvas, dl.facts, [data-completeness], [data-absence="empty"]):visible');
    }
  }
  assert.equal(signs.size, ways.length, [...signs].join(" "));
});

test("what is shown stays while the master cannot answer, and says as of when", async () => {
  const clock = { startUs: (Date.now() - 20_000) * 1000, stepUs: 1_000_000, ticks: 15, firstBatch: 0 };
  const series = [{ group: "training", name: "loss", value: (tick) => 1 / (tick + 1) }];
  const open = await raw.write({ trial: "open", rank: 0, open: true, ...clock, series });
  const file = join(stand.folder, "open-rank0.json");
  writeFileSync(file, composerCycle(0, 1_000_000));
  await stand.command("trace", "import", `id:${open}`, file);
  const pages = [
    { hash: "#/trials", shows: 'tbody tr:has-text("open")' }, { hash: `#/compare?t=${cluster.trialId}&t=${open}`, shows: 'tbody tr:has-text("loss")' },
    { hash: `#/trial/${open}/traces`, shows: 'tr[data-trace="1"]' }, { hash: "#/admin", shows: "dl.facts" },
  ];
  for (const { hash, shows } of pages) {
    await tab.goto(`${stand.url}${hash}`);
    await tab.reload();
    await seen(shows);
    await tab.route("**/stepwell.v1.*/*", (route) => route.fulfill({ status: 503, contentType: "application/json", body: JSON.stringify({ code: "unavailable", message: "recovering" }) }));
    await seen('[data-trouble="unavailable"]:has-text("what you see is as of before")');
    assert.equal(await count(`${shows} >> visible=true`) > 0, true, hash);
    assert.equal(await count('[role="alert"]'), 0, hash);
    await tab.unroute("**/stepwell.v1.*/*");
    await gone('[data-trouble="unavailable"]');
    await seen(shows);
  }
  // Another question has an answer of its own, or none.
  await tab.goto(`${stand.url}#/trials`);
  await seen('tbody tr:has-text("open")');
  await tab.route("**/stepwell.v1.*/*", (route) => route.fulfill({ status: 503, contentType: "application/json", body: JSON.stringify({ code: "unavailable", message: "recovering" }) }));
  await show("#/trials?q=clus");
  await seen('[data-absence="unavailable"]');
  assert.equal(await count("tbody tr"), 0);
  await tab.unroute("**/stepwell.v1.*/*");
});

test("an address that names no page says so, and what to do", async () => {
  for (const hash of ["#/nonsense", "#/trial/abc/metrics", "#/<img src=x onerror='window.harmed=1'>"]) {
    await tab.goto(`${stand.url}${hash}`);
    await tab.reload();
    await seen('[data-absence="failed"]:has-text("This address names no page"):has-text("list of trials")');
    assert.equal(await tab.title(), "Not found · Stepwell");
    assert.equal(await count("tbody tr"), 0);
    assert.equal(await tab.evaluate(() => window.harmed), undefined);
  }
  await tab.click('main a:text-is("All trials")');
  await seen("tbody tr");
});

test("a trial of timings alone says that no system metrics were recorded, and where its samples are", async () => {
  const timed = await raw.write({
    trial: "timed", rank: 0, startUs: (Math.floor(Date.now() / 1000) - 30) * 1e6, stepUs: 1_000_000, ticks: 20, firstBatch: 0,
    series: [{ group: "timing", name: "step", unit: "seconds", kind: duration, value: () => 1 }],
  });
  await tab.goto(`${stand.url}#/trial/${timed}/metrics`);
  await seen('[data-absence="empty"]:has-text("no system metrics were recorded, but 20 samples of other kinds")');
  await tab.click('[data-absence="empty"] a:text-is("They are under Timings")');
  await seen('tr.total:has-text("step")');
});

test("a step that stalled stands in the heat map as long as it took", async () => {
  const ticks = 60;
  const stalled = await raw.write({
    trial: "stalled", rank: 0, startUs: (Math.floor(Date.now() / 1000) - 30) * 1e6, stepUs: 100_000, ticks, firstBatch: 0,
    series: [{ group: "timing", name: "step", unit: "seconds", kind: duration, value: (tick) => (tick < 20 || tick >= 50 ? 0.1 : tick === 20 ? 3 : null) }],
  });
  await show(`#/trial/${stalled}/heat`);
  await seen(".heat canvas[tabindex]");
  const drawn = await tab.evaluate((of) => {
    const canvas = document.querySelector(".heat canvas[tabindex]");
    const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, 1);
    return of.map((tick) => [...data.subarray(Math.floor((tick / 59.5) * width) * 4, Math.floor((tick / 59.5) * width) * 4 + 4)].map((part, at) => (at < 3 ? part > 190 : part === 255))).map((parts) => [parts[0], parts[3]]);
  }, [10, 21, 25, 35, 45, 48, 55]);
  const [usual, slow] = [[false, true], [true, true]];
  assert.deepEqual(drawn, [usual, slow, slow, slow, slow, slow, usual]);
  assert.match((await text(".heat-scale")).replace(/\s+/g, " "), /^100 ms .*3\.00 s/);
});

test("a master that is gone is told where all of a trial that ended is shown, and so is its return", async () => {
  for (const view of ["completeness", "metrics"]) {
    await tab.goto(`${stand.url}#/trial/${cluster.trialId}/${view}`);
    await tab.reload();
    await seen(view === "metrics" ? `${cpu} canvas` : "[data-completeness]");
    await loaded(view);
    await stand.killMaster();
    await until(`the bar over ${view}`, async () => (await tab.locator(".lost:visible").count()) === 1, 12_000);
    assert.match(await text(".lost"), /Lost the connection to the master at/);
    await stand.startMaster();
    await until("the bar is gone", async () => (await tab.locator(".lost:visible").count()) === 0, 12_000);
  }
  // Who does not look asks nothing.
  const asked = [];
  tab.on("request", (request) => asked.push(request.url()));
  const hide = (to) => tab.evaluate((hidden) => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, to);
  await hide(true);
  await new Promise((done) => setTimeout(done, 1000)); // what was under way
  asked.length = 0;
  await new Promise((done) => setTimeout(done, 6500));
  assert.deepEqual(asked, []);
  await hide(false);
  await until("it is asked again", () => asked.some((url) => url.endsWith("/livez")));
});

test("nothing went wrong in the page, and nothing was asked of others", () => {
  assert.deepEqual(troubles, []);
  assert.deepEqual(foreign, []);
});
