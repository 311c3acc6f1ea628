import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { Drawer } from "../src/core/drawer";
import { drawInSlices, type DrawingClock, type Pace } from "../src/core/drawing";

const real = { scheduler: (globalThis as { scheduler?: unknown }).scheduler, MessageChannel, requestAnimationFrame: globalThis.requestAnimationFrame, setTimeout, now: performance.now };
const setNow = (now: () => number): void => void Object.defineProperty(performance, "now", { value: now, configurable: true, writable: true });

afterEach(() => {
  const { now, ...others } = real;
  Object.assign(globalThis, others);
  setNow(now);
});

/** What is drawn by the browser's own clock, each of them for longer than a slice, and what lay between. */
async function rested(pace: Pace): Promise<string[]> {
  const said: string[] = [];
  let now = 0;
  setNow(() => now);
  const { MessageChannel: Channel } = real;
  Object.assign(globalThis, {
    MessageChannel: class extends Channel {
      constructor() {
        super();
        said.push("message");
      }
    },
    requestAnimationFrame: (act: () => void) => {
      said.push("frame");
      setImmediate(act);
      return 0;
    },
  });
  const drawing = await drawInSlices(["a", "b", "c"], (item) => {
    said.push(item);
    now += 50;
  }, () => false, pace);
  assert.ok(drawing.isWhole);
  return said;
}

test("between slices that somebody waits for the browser's scheduler has the turn, before what is less wanted", async () => {
  const asked: unknown[] = [];
  Object.assign(globalThis, {
    scheduler: {
      postTask(task: () => void, options: unknown) {
        asked.push(options);
        setImmediate(task);
        return Promise.resolve();
      },
    },
  });
  assert.deepEqual(await rested("tasks"), ["a", "b", "c"]);
  assert.deepEqual(asked, [{ priority: "user-blocking" }, { priority: "user-blocking" }]);
});

test("where there is none, or one without tasks, a message has", async () => {
  for (const scheduler of [undefined, {}]) {
    Object.assign(globalThis, { scheduler });
    assert.deepEqual(await rested("tasks"), ["a", "message", "b", "message", "c"]);
  }
});

test("what comes by itself waits for frames, and of a page that nobody sees for no longer than a moment", async () => {
  assert.deepEqual(await rested("frames"), ["frame", "a", "frame", "b", "frame", "c"]);
  const waits: number[] = [];
  Object.assign(globalThis, {
    requestAnimationFrame: () => 0,
    setTimeout: (act: () => void, ms: number) => {
      waits.push(ms);
      setImmediate(act);
    },
  });
  const drawn: number[] = [];
  await drawInSlices([1], (item) => drawn.push(item), () => false, "frames");
  assert.deepEqual([drawn, waits], [[1], [100]]);
});

/** A clock that stands still at each rest until the test goes on. */
function halted() {
  let now = 0;
  const resting: (() => void)[] = [];
  const clock: DrawingClock = { now: () => (now += 50), rest: () => new Promise((done) => resting.push(done)) };
  const drawn: string[] = [];
  const drawer = new Drawer(clock);
  const draw = (...items: string[]) => drawer.draw(items, (item) => drawn.push(item), "tasks");
  const turn = (): Promise<void> => new Promise((done) => setImmediate(done));
  const next = (): Promise<void> => {
    for (const goOn of resting.splice(0)) goOn();
    return turn();
  };
  return { drawer, drawn, draw, turn, next };
}

test("an answer is drawn wholly though the next is asked for; once that is there, no more", async () => {
  const { drawer, drawn, draw, turn, next } = halted();
  assert.equal(drawer.isWhole, false, "nothing is");
  const first = draw("a1", "b1");
  await turn();
  await next();
  assert.equal(drawer.isWhole, false);
  assert.deepEqual(drawn, ["a1"]);
  await next();
  await next();
  assert.equal((await first).isWhole, true);
  assert.ok(drawer.isWhole);
  const second = draw("a2", "b2", "c2");
  await turn();
  await next();
  const third = draw("a3");
  assert.equal(drawer.isWhole, false, "of the newest");
  await next();
  await next();
  assert.deepEqual([(await second).isWhole, (await third).isWhole], [false, true]);
  assert.ok(drawer.isWhole);
  assert.deepEqual(drawn, ["a1", "b1", "a2", "a3"]);
});

test("what is left is drawn at once, and once, where it has to be whole", async () => {
  const { drawer, drawn, draw, turn, next } = halted();
  const all = draw("a", "b", "c");
  await turn();
  await next();
  assert.deepEqual(drawn, ["a"]);
  drawer.finish();
  assert.ok(drawer.isWhole);
  assert.deepEqual(drawn, ["a", "b", "c"]);
  for (let time = 0; time < 3; ++time) await next();
  assert.equal((await all).isWhole, true);
  drawer.finish();
  assert.deepEqual(drawn, ["a", "b", "c"]);
});

test("nothing of what was given up is drawn, and it is never whole", async () => {
  const { drawer, drawn, draw, turn, next } = halted();
  const all = draw("a", "b");
  await turn();
  await next();
  drawer.giveUp();
  drawer.finish();
  await next();
  assert.equal((await all).isWhole, false);
  assert.equal(drawer.isWhole, false);
  assert.deepEqual(drawn, ["a"]);
  const still = new Drawer({ now: () => 0, rest: () => Promise.resolve() });
  assert.equal((await still.draw(["last"], () => still.giveUp(), "tasks")).isWhole, false);
});

test("what throws leaves the rest undrawn", async () => {
  const drawer = new Drawer();
  await assert.rejects(drawer.draw(["a", "b"], () => { throw new RangeError("too large"); }, "tasks"), /too large/);
  assert.equal(drawer.isWhole, false);
});
