// Pictures of each page, to look at and judge: three widths, both themes, trials of scenes.mjs. No test: a person looks.
//
//   tests/browser/run.sh --screens FOLDER BUILD-FOLDER [PAGE-FOLDER]
// Each is as high as its page, up to 6000 pixels.
// The README's two are FOLDER/timings-1280-dark.jpg and FOLDER/metrics-1280-light.jpg.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RawWriters } from "./raw_writer.mjs";
import { writeCluster } from "./scenes.mjs";
import { Stand } from "./stand.mjs";
import { anything, bin, closeTab, loaded, openTab, page, seen, tab } from "./tab.mjs";
import { composerCycle } from "./viewer.mjs";

const widths = [360, 1280, 2560];
const themes = ["light", "dark"];
const folder = process.argv[2];
mkdirSync(folder, { recursive: true });

const [frames, heightMax] = [2, 6000];
const drawn = () => tab.evaluate((count) => new Promise((done) => {
  const next = (left) => (left === 0 ? done() : requestAnimationFrame(() => next(left - 1)));
  next(count);
}), frames);

/** The window as high as its page. What is out of sight is not drawn, and what is drawn may be higher: until the height stays. */
async function shownWhole(width) {
  for (let before = 0, turns = 0; turns < 10; ++turns) {
    await drawn();
    const height = Math.min(heightMax, Math.max(width < 1000 ? 800 : 900, await tab.evaluate(() => document.documentElement.scrollHeight)));
    if (height === before) return;
    before = height;
    await tab.setViewportSize({ width, height });
  }
}

const stand = new Stand(bin, page);
await stand.startMaster();
const raw = new RawWriters(stand.ports.grpc);
try {
  const { trialId } = await writeCluster(raw, "resnet50-lr3", { isWhole: true });
  const { trialId: other } = await writeCluster(raw, "resnet50-lr1", { pace: 1.3, isWhole: true });
  const trace = join(stand.folder, "ep0-ba3-rank0.json");
  writeFileSync(trace, composerCycle(0, 1_000_000));
  await stand.command("trace", "import", `id:${trialId}`, trace);
  await stand.command("caps", "set", "--trial", `id:${trialId}`, "--group", "gpu", "--samples", "10M", "--yes");
  const views = {
    trials: "#/trials", timings: `#/trial/${trialId}/timings`, metrics: `#/trial/${trialId}/metrics`, heat: `#/trial/${trialId}/heat`,
    traces: `#/trial/${trialId}/traces`, completeness: `#/trial/${trialId}/completeness`, compare: `#/compare?t=${trialId}&t=${other}`, admin: "#/admin",
  };
  for (const theme of themes) {
    await openTab(stand);
    await tab.emulateMedia({ colorScheme: theme });
    await tab.goto(stand.url);
    for (const [name, hash] of Object.entries(views)) {
      for (const width of widths) {
        await tab.setViewportSize({ width, height: width < 1000 ? 800 : 900 });
        await tab.goto(`${stand.url}${hash}`);
        await tab.reload();
        await seen(anything);
        await loaded(name);
        if (name === "admin") await seen('dd:text-matches("/s$")'); // its second look
        await shownWhole(width);
        await tab.screenshot({ path: join(folder, `${name}-${width}-${theme}.jpg`), type: "jpeg", quality: 80 });
      }
    }
    await closeTab();
  }
} finally {
  await closeTab();
  raw.close();
  await stand.close();
}
