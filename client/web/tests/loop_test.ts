import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { inTurn, type Locks } from "../src/core/turn_taking";
import type { Failure } from "../src/failure";
import { loop, type Outcome } from "../src/loop";
import { Bench, settle } from "./bench";

const intervalMs = 3000;

/** Questions that the test answers. */
class Questions {
  readonly asked: { signal: AbortSignal; answer(outcome: Outcome): void; fail(thrown: unknown): void }[] = [];
  readonly look = (signal: AbortSignal): Promise<Outcome> =>
    new Promise((answer, fail) => this.asked.push({ signal, answer, fail }));

  last() {
    const last = this.asked[this.asked.length - 1];
    assert.ok(last);
    return last;
  }
}

const realError = console.error;
let bench: Bench;
let questions: Questions;
let broken: Failure[];
let said: unknown[];
const start = () => loop(() => intervalMs, questions.look, (failure) => broken.push(failure));

beforeEach(() => {
  bench = new Bench();
  questions = new Questions();
  broken = [];
  said = [];
  console.error = (thrown: unknown) => said.push(thrown);
  bench.install();
});
afterEach(() => {
  console.error = realError;
  bench.remove();
});

test("an answer that takes longer than the pulses comes, and is asked for once more", async () => {
  const of = start();
  await bench.pass(0);
  for (let i = 0; i < 10; ++i) {
    of.soon();
    await bench.pass(500);
  }
  assert.equal(questions.asked.length, 1);
  assert.equal(questions.last().signal.aborted, false);
  questions.last().answer("fine");
  await bench.pass(0);
  assert.equal(questions.asked.length, 2);
  questions.last().answer("fine");
  await bench.pass(intervalMs - 1);
  assert.equal(questions.asked.length, 2);
  of.soon();
  await bench.pass(0);
  assert.equal(questions.asked.length, 3);
});

test("a changed question gives up the one under way", async () => {
  const of = start();
  await bench.pass(0);
  of.now();
  assert.equal(questions.last().signal.aborted, true);
  await bench.pass(0);
  assert.equal(questions.asked.length, 2);
  questions.asked[0]?.answer("stop");
  await settle();
  questions.last().answer("fine");
  await bench.pass(intervalMs);
  assert.equal(questions.asked.length, 3);
});

test("a changed question is asked before the browser paints, and once, whatever else is said meanwhile", async () => {
  const of = start();
  of.now();
  of.now();
  of.soon();
  assert.equal(questions.asked.length, 0);
  await null;
  assert.equal(questions.asked.length, 1);
  // The timers of the start and of the pulse do not come behind it.
  await bench.pass(0);
  assert.equal(questions.asked.length, 1);
  of.now();
  of.stop();
  await bench.pass(intervalMs);
  assert.equal(questions.asked.length, 1);
});

test("what fails keeps its distance from pulses, what has stopped stays so until the question changes", async () => {
  const of = start();
  await bench.pass(0);
  of.soon();
  questions.last().answer("failed");
  await bench.pass(700);
  of.soon();
  await bench.pass(0);
  assert.equal(questions.asked.length, 1);
  await bench.pass(600);
  assert.equal(questions.asked.length, 2);
  of.soon();
  questions.last().answer("stop");
  await bench.pass(60_000);
  of.soon();
  bench.hide(true);
  bench.hide(false);
  await bench.pass(60_000);
  assert.equal(questions.asked.length, 2);
  of.now();
  await bench.pass(0);
  assert.equal(questions.asked.length, 3);
});

test("a mistake of the page is shown and said, and it asks again, later and later", async () => {
  start();
  await bench.pass(0);
  questions.last().fail(new RangeError("too many arguments"));
  await settle();
  assert.deepEqual(broken.map((failure) => [failure.kind, failure.detail]), [["broken", "too many arguments"]]);
  assert.equal(said.length, 1);
  await bench.pass(749);
  assert.equal(questions.asked.length, 1);
  await bench.pass(501);
  assert.equal(questions.asked.length, 2);
  questions.last().fail("a text");
  await bench.pass(1499);
  assert.equal(questions.asked.length, 2);
  await bench.pass(1001);
  assert.equal(questions.asked.length, 3);
});

test("also where the failure cannot be shown; a mistake after the end is nobody's", async () => {
  const of = loop(() => intervalMs, questions.look, () => { throw new Error("no place"); });
  await bench.pass(0);
  questions.last().fail(new Error("first"));
  await bench.pass(1250);
  assert.equal(questions.asked.length, 2);
  assert.equal(said.length, 2);
  of.stop();
  questions.last().fail(new Error("second"));
  await bench.pass(60_000);
  assert.equal(said.length, 2);
  assert.equal(questions.asked.length, 2);
});

test("a hidden tab asks nothing; when it is shown again, at once, and what is under way is left alone", async () => {
  bench.tab.hidden = true;
  const of = start();
  await bench.pass(60_000);
  assert.equal(questions.asked.length, 0);
  bench.hide(false);
  await bench.pass(0);
  assert.equal(questions.asked.length, 1);
  bench.hide(true);
  bench.hide(false);
  await bench.pass(0);
  assert.equal(questions.last().signal.aborted, false);
  assert.equal(questions.asked.length, 1);
  of.stop();
});

test("one tab at a time has the turn, and each without locks", async () => {
  const waiting: (() => void)[] = [];
  let held = false;
  const locks: Locks = {
    request: async (_name, { signal }, run) => {
      while (held) await new Promise<void>((go, give) => { waiting.push(go); signal.addEventListener("abort", () => give(signal.reason)); });
      held = true;
      await run().finally(() => { held = false; waiting.shift()?.(); });
    },
  };
  const order: string[] = [];
  const stay = new AbortController();
  let end = (): void => undefined;
  const first = inTurn(locks, "n", stay.signal, () => new Promise((done) => { order.push("first"); end = done; }));
  const second = inTurn(locks, "n", stay.signal, async () => void order.push("second"));
  const gone = new AbortController();
  const third = inTurn(locks, "n", gone.signal, async () => void order.push("third"));
  await settle();
  gone.abort();
  await third;
  assert.deepEqual(order, ["first"]);
  end();
  await Promise.all([first, second]);
  assert.deepEqual(order, ["first", "second"]);
  await inTurn(undefined, "n", stay.signal, async () => void order.push("without"));
  await inTurn({ request: () => Promise.reject(new Error("denied")) }, "n", stay.signal, async () => void order.push("denied"));
  assert.deepEqual(order.slice(2), ["without", "denied"]);
  await assert.rejects(inTurn(locks, "n", stay.signal, () => Promise.reject(new Error("of run"))), /of run/);
});

test("only who asked can give up a question: 'canceled' of the master's is a failure", async () => {
  Object.assign(globalThis, { location: { origin: "http://127.0.0.1" } });
  const { ask } = await import("../src/api");
  const canceled = (): Promise<never> => Promise.reject(new ConnectError("by the master", Code.Canceled));
  const asking = new AbortController();
  const answer = await ask(canceled, asking.signal);
  assert.ok(answer && !answer.ok && answer.failure.passing);
  assert.equal(answer.failure.detail, "by the master");
  asking.abort();
  assert.equal(await ask(canceled, asking.signal), null);
});
