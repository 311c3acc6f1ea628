import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import type { follow, FollowState } from "../src/follow";
import type { Outcome } from "../src/loop";
import { News } from "../src/news";
import { Bench } from "./bench";

/** A stream that the test speaks for. */
interface Heard {
  readonly of: readonly number[];
  readonly on: Parameters<typeof follow>[2];
  stopped: boolean;
}

let bench: Bench;
let streams: Heard[];
let asked: number;
let changes: (FollowState | null)[];

const news = (): News => {
  const open: typeof follow = (_, seriesNos, on) => {
    const heard: Heard = { of: seriesNos, on, stopped: false };
    streams.push(heard);
    return { stop: () => void (heard.stopped = true) };
  };
  const made: News = new News(open, () => void ++asked, () => changes.push(made.state));
  return made;
};
const stream = (): Heard => {
  const last = streams[streams.length - 1];
  assert.ok(last);
  return last;
};
/** A question that took so long, and counts for that. */
const question = async (of: News, ms: number): Promise<void> => {
  const done = of.timed(async () => {
    await bench.pass(ms);
    return "fine";
  }, () => ms);
  await done;
};

beforeEach(() => {
  bench = new Bench();
  bench.install();
  streams = [];
  asked = 0;
  changes = [];
});
afterEach(() => bench.remove());

test("news are asked for as soon as what questions take allows, and together", async () => {
  const of = news();
  of.of(1n, [7]);
  await question(of, 30); // paceMs: 200 from its begin
  for (let i = 0; i < 5; ++i) stream().on.pulse();
  await bench.pass(169);
  assert.equal(asked, 0);
  await bench.pass(1);
  assert.equal(asked, 1);
  await bench.pass(10_000);
  assert.equal(asked, 1, "nothing more came");
  stream().on.pulse();
  await bench.pass(0);
  assert.equal(asked, 2, "at once where the last one is long ago");
});

test("news that come while a question is under way are asked for behind it", async () => {
  const of = news();
  of.of(1n, [7]);
  let answer: (outcome: Outcome) => void = () => assert.fail();
  const under = of.timed(() => new Promise((done) => (answer = done)), () => 5);
  stream().on.pulse();
  await bench.pass(5000);
  assert.equal(asked, 0);
  answer("fine");
  await under;
  await bench.pass(0);
  assert.equal(asked, 1, "by what of it counts, which is little");
});

test("a stream stays while it is of the same, and says how it is", () => {
  const of = news();
  assert.equal(of.state, null);
  of.of(1n, [7, 8]);
  stream().on.state("live", null);
  stream().on.state("live", null);
  assert.deepEqual(changes, ["live"]);
  of.of(1n, [7, 8]);
  assert.equal(streams.length, 1);
  of.of(2n, [7, 8]);
  assert.deepEqual(streams.map(({ stopped }) => stopped), [true, false]);
  assert.equal(of.state, null);
  stream().on.state("polling", null);
  assert.equal(of.polls, true);
  of.of(2n, []);
  assert.equal(stream().stopped, true);
  assert.equal(of.polls, false);
});

test("a trial that ended and runs again is followed again", () => {
  const of = news();
  of.of(1n, [7]);
  stream().on.state("ended", null);
  of.of(1n, [7]);
  assert.deepEqual(streams.map(({ stopped }) => stopped), [true, false]);
  stream().on.state("live", null);
  of.of(1n, [7]);
  assert.equal(streams.length, 2);
});

test("of many series some tell, and who left hears no more", async () => {
  const of = news();
  of.of(1n, Array.from({ length: 1000 }, (_, i) => i));
  assert.equal(stream().of.length, 16);
  stream().on.pulse();
  of.stop();
  await bench.pass(60_000);
  assert.equal(asked, 0);
});

test("without news it is asked each three seconds, or as what it takes allows", async () => {
  const of = news();
  assert.equal(of.intervalMs, 3000);
  await question(of, 1000);
  assert.equal(of.intervalMs, 9900);
});
