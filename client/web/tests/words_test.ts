import assert from "node:assert/strict";
import { test } from "node:test";
import { TrialState } from "#gen/model_pb";
import { absenceWords, noSampleWords, type Lacking } from "../src/absence_words";
import { sharingWords } from "../src/core/sharing";
import { meanOf, sparkPath } from "../src/core/spark";
import { actAdvice, failureOf, type FailureKind } from "../src/failure";
import { strokes } from "../src/state_mark";

test("who shares a machine is told as it is now, else as it was", () => {
  const one = (most: number, newest: number) => ({ agent: "node-1", most, newest });
  assert.equal(sharingWords([one(1, 1)], true), null);
  assert.equal(sharingWords([], true), null);
  assert.deepEqual(sharingWords([one(3, 2)], true), { text: "machine shared with 1 other trial", title: "node-1: 1 other trial" });
  assert.equal(sharingWords([one(3, 1)], true)?.text, "machine shared for a time with up to 2 other trials");
  assert.equal(sharingWords([one(3, 3)], false)?.text, "machine shared for a time with up to 2 other trials");
  assert.equal(sharingWords([one(2, 2), { agent: "node-2", most: 1, newest: 1 }], true)?.text, "1 of 2 machines shared with 1 other trial");
});

test("a line the size of a word breaks where nothing is, and stays in its box", () => {
  assert.equal(sparkPath({ indexes: [4, 8, 13], means: [0, 50, 250] }, 40, 10, 100), "M0 10.0h0.9L4 5.0M9 0.0h0.9");
  assert.equal(sparkPath({ indexes: [0, 1], means: [NaN, -3] }, 40, 10, 100), "M1 10.0h0.9");
  assert.equal(sparkPath({ indexes: [], means: [] }, 40, 10, 100), "");
  assert.equal(meanOf({ indexes: [0, 1, 2], means: [10, NaN, 20] }), 15);
  assert.ok(Number.isNaN(meanOf({ indexes: [], means: [] })));
});

test("why a trial has nothing to draw is told as it stands, with what helps it", () => {
  const of = (state: TrialState, more: Partial<Lacking> = {}) =>
    absenceWords({ what: "timings", trialId: 7n, state, isOff: false, groups: [], sampleCount: 12n, hasOthers: false, ...more });
  const { COMPLETED, FAILED, LOST, RUNNING, UNSPECIFIED } = TrialState;
  assert.match(of(RUNNING).advice, /is running/);
  for (const state of [COMPLETED, FAILED]) assert.match(of(state).advice, /^It has ended/);
  // Of a trial that is lost nobody knows whether it has ended.
  for (const state of [LOST, UNSPECIFIED]) {
    for (const hasOthers of [false, true]) {
      const { absence, advice, leadsElsewhere } = of(state, { hasOthers });
      assert.equal(absence, "no data yet");
      assert.match(advice, /^Nobody has heard of this trial for a minute\. .*comes by itself/);
      assert.doesNotMatch(advice, /ended/);
      assert.equal(leadsElsewhere ?? false, hasOthers);
    }
  }
  for (const state of [RUNNING, LOST]) assert.equal(of(state, { isOff: true }).command, "stepwell admin profiling id:7 on");
  assert.equal(of(RUNNING, { groups: ["cpu"] }).command, "stepwell admin profiling id:7 on");
  const over = of(COMPLETED, { isOff: true });
  assert.deepEqual([over.absence, over.command], ["not enabled", undefined], "nothing helps what has ended");
  assert.match(`${over.title}. ${over.advice}`, /Recording was off.*recorded nothing/);
  assert.deepEqual([RUNNING, COMPLETED, FAILED, LOST].map((state) => noSampleWords(state).includes("yet")), [true, false, false, false]);
});

test("of a question that fails for a time it is said that it is asked again, of what was done once never", () => {
  const kinds: readonly FailureKind[] = ["lost", "unavailable", "refused", "signedOut", "notFound", "invalid", "busy", "late", "missing", "failed", "broken"];
  for (const kind of kinds) {
    const { advice, passing } = failureOf(kind, "");
    assert.equal(/(asked|tries) again/.test(advice), passing, kind);
    for (const act of ["reads", "changes"] as const) assert.doesNotMatch(actAdvice(kind, act), /again\b(?!\.$)|fewer series|^ | {2}/, kind);
    assert.match(actAdvice(kind, "reads"), /It was not done\.$/);
  }
  const unsure = kinds.filter((kind) => actAdvice(kind, "changes").includes("Nobody knows whether it was done: look again."));
  assert.deepEqual(unsure, ["lost", "unavailable", "late", "failed"]);
  for (const kind of kinds) assert.equal(actAdvice(kind, "changes").includes("It was not done."), !unsure.includes(kind), kind);
});

test("each way of not being there has a mark of its own", () => {
  assert.equal(new Set(Object.values(strokes)).size, 8);
});
