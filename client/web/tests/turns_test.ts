import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { ByteBound } from "../src/core/byte_bound";
import { afterFailure } from "../src/core/follow_state";
import { Lanes } from "../src/core/lanes";
import { withPick } from "../src/core/picks";
import { failureOfStatus, isDeadline, isPlaceLost, markSilence, orBroken, toFailure } from "../src/failure";

const settle = (): Promise<void> => new Promise((done) => setImmediate(done));

/** Work that the test ends. */
function bench(atOnce: number) {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const signals = new Map<string, AbortSignal>();
  const lanes = new Lanes(atOnce, (key, signal) => {
    begun.push(key);
    signals.set(key, signal);
    return new Promise((done) => { ends.set(key, done); signal.addEventListener("abort", () => done()); });
  });
  return { begun, signals, lanes, end: async (key: string) => { ends.get(key)?.(); await settle(); } };
}

test("what is under way goes on while it is listed, however often it is asked for", async () => {
  const { begun, signals, lanes, end } = bench(2);
  const listed = new Set(["a", "b", "c"]);
  for (let look = 0; look < 5; ++look) lanes.want(["a", "b", "c"], listed);
  assert.deepEqual(begun, ["a", "b"]);
  assert.equal(signals.get("a")?.aborted, false);
  await end("a");
  assert.deepEqual(begun, ["a", "b", "c"]);
  lanes.want(["c"], new Set(["c"]));
  assert.equal(signals.get("b")?.aborted, true);
  assert.equal(signals.get("c")?.aborted, false);
  await settle();
  lanes.stop();
  assert.equal(signals.get("c")?.aborted, true);
});

test("slow ones starve nobody: who waited longest is next", async () => {
  const { begun, lanes, end } = bench(1);
  const all = ["a", "b", "c"];
  const listed = new Set(all);
  lanes.want(all, listed);
  for (const key of ["a", "b", "c", "a", "b"]) {
    assert.equal(begun[begun.length - 1], key);
    lanes.want(all, listed);
    await end(key);
    lanes.want(all, listed);
  }
  lanes.stop();
});

test("no more are picked than there is room for, and none that is not ticked", () => {
  const full = new Set(["1", "2"]);
  assert.deepEqual(withPick(full, "3", true, 2), { picked: full, refused: true });
  assert.deepEqual(withPick(full, "2", true, 2), { picked: full, refused: false });
  assert.deepEqual(withPick(full, "1", false, 2), { picked: new Set(["2"]), refused: false });
});

test("a master without a place for one more stream is not lost: the page asks every few seconds", () => {
  const of = (code: Code) => afterFailure(toFailure(new ConnectError("", code)).kind);
  assert.deepEqual(of(Code.ResourceExhausted), { state: "polling", final: false });
  assert.deepEqual(of(Code.Unavailable), { state: "lost", final: false });
  assert.deepEqual(of(Code.PermissionDenied), { state: "refused", final: true });
  assert.deepEqual(of(Code.Unauthenticated), { state: "refused", final: true });
  assert.deepEqual(of(Code.Unimplemented), { state: "refused", final: true });
});

test("a deadline without any answer is a lost connection, one of a slow answer is not", () => {
  const late = new ConnectError("the operation timed out", Code.DeadlineExceeded);
  assert.ok(isDeadline(late) && !isDeadline(new Error("given up")));
  assert.equal(toFailure(late).kind, "late");
  markSilence(late);
  assert.equal(toFailure(late).kind, "lost");
  assert.equal(toFailure(new ConnectError("another", Code.DeadlineExceeded)).kind, "late");
});

test("a master that says nothing is told, unless it answers others meanwhile", async () => {
  Object.assign(globalThis, { location: { origin: "http://127.0.0.1" } });
  const realFetch = globalThis.fetch;
  const { ask, onReach, query } = await import("../src/api");
  const told: boolean[] = [];
  const stop = onReach((answers) => told.push(answers));
  const realTimeout = globalThis.setTimeout;
  let passDeadline = (): void => undefined;
  /** Nothing answers it before its deadline, which is the test's to pass. */
  const silent = async () => {
    let begun = (): void => undefined;
    const asked = new Promise<void>((done) => { begun = done; });
    globalThis.fetch = (_input, init) => {
      begun();
      return new Promise((_done, fail) => init?.signal?.addEventListener("abort", () => fail(init.signal?.reason)));
    };
    Object.assign(globalThis, { setTimeout: (run: () => void) => { passDeadline = run; return 0; } });
    const answer = ask((options) => query.getTrial({}, options), new AbortController().signal);
    await asked;
    Object.assign(globalThis, { setTimeout: realTimeout });
    return { answer };
  };
  try {
    const first = await silent();
    passDeadline();
    const lost = await first.answer;
    assert.ok(lost && !lost.ok && lost.failure.kind === "lost", JSON.stringify(lost));
    assert.deepEqual(told, [false]);
    const slow = await silent();
    globalThis.fetch = () => Promise.resolve(new Response("{}", { status: 503, headers: { "content-type": "application/json" } }));
    await ask((options) => query.getTrial({}, options), new AbortController().signal);
    passDeadline();
    const late = await slow.answer;
    assert.ok(late && !late.ok && late.failure.kind === "late", JSON.stringify(late));
    assert.deepEqual(told, [false, true]);
  } finally {
    Object.assign(globalThis, { fetch: realFetch, setTimeout: realTimeout });
    stop();
  }
});

test("who may not read the page's settings is refused, and does not ask again", () => {
  assert.deepEqual([401, 403, 500].map((status) => failureOfStatus(status, "").kind), ["signedOut", "refused", "failed"]);
  assert.equal(failureOfStatus(401, "").passing, false);
});

test("an action that throws ends as one that failed", async () => {
  const error = console.error;
  console.error = () => undefined;
  try {
    assert.equal(await orBroken(() => Promise.reject(new RangeError("Array buffer allocation failed")), (detail) => detail), "Array buffer allocation failed");
    assert.equal(await orBroken(async () => { throw new Error("at once"); }, (detail) => detail), "at once");
    assert.equal(await orBroken(async () => 7, () => 0), 7);
  } finally {
    console.error = error;
  }
});

test("no more is taken into the page than its bound, and what is under way is told meanwhile", () => {
  const told: number[] = [];
  const bound = new ByteBound(10, (byteCount) => { told.push(byteCount); return byteCount !== 7; });
  assert.deepEqual([bound.take(4), bound.take(10), bound.take(7), bound.take(11), bound.take(3)], [true, true, false, false, false]);
  assert.ok(bound.isOver);
  assert.deepEqual(told, [4, 10, 7]);
});

test("a stream begins anew where its place is gone, also that of a database that was set back", () => {
  for (const code of [Code.OutOfRange, Code.InvalidArgument]) assert.ok(isPlaceLost(new ConnectError("cursor", code)));
  for (const code of [Code.Unavailable, Code.DeadlineExceeded, Code.NotFound, Code.Unauthenticated]) assert.ok(!isPlaceLost(new ConnectError("", code)));
  assert.ok(!isPlaceLost(new TypeError("no network")));
});
