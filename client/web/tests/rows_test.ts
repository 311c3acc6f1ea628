// Rows of the table of timings.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { AbsenceReason, SummarizeTimingsResponseSchema, SummarizeTimingsResponse_TimingSchema } from "#gen/query_pb";
import { csvHead, csvRow, quantileTexts, ranksOf, timingRows } from "../src/timing_rows";

type Fields = MessageInitShape<typeof SummarizeTimingsResponse_TimingSchema>;

const timing = (name: string, more: Fields = {}): Fields => ({ name, rank: 0, inStep: true, steps: 10n, count: 10n, totalSeconds: 1, selfSeconds: 1, ...more });
const answer = create(SummarizeTimingsResponseSchema, {
  attempt: 1,
  timings: [
    timing("step", { totalSeconds: 10 }), timing("forward", { share: 0.2, selfSeconds: 2, totalSeconds: 3 }), timing("backward", { share: 0.7, selfSeconds: 7, totalSeconds: 7 }),
    timing("forward", { labels: { clock: "device", stream: "7" }, totalSeconds: 2.5 }), timing("step", { labels: { clock: "device" } }),
    timing("checkpoint", { inStep: false, steps: 0n, count: 3n, totalSeconds: 30 }), timing("eval", { inStep: false, steps: 0n, labels: { clock: "device" } }),
    timing("forward", { rank: 1, share: 0.5 }),
  ],
  ranks: [{ rank: 0, steps: 10n, stepSeconds: 10, unaccountedSeconds: 1, unaccountedShare: 0.1 }, { rank: 1, steps: 10n, stepSeconds: 10, unaccountedSeconds: 5, unaccountedShare: 0.5 }],
});

test("what divides the step comes first, by its share; then the step, the device's clock, what lies outside the steps", () => {
  const rows = timingRows(answer, 0);
  assert.deepEqual(rows.map((row) => [row.kind, row.name]), [
    ["scope", "backward"], ["scope", "forward"], ["unaccounted", "unaccounted"], ["step", "step"],
    ["device", "forward"], ["device", "step"], ["outside", "checkpoint"], ["outside", "eval"],
  ]);
  assert.deepEqual(rows.map((row) => row.shareText), ["70.0 %", "20.0 %", "10.0 %", "100.0 %", "", "", "", ""]);
  // Times by two clocks are not parts of one whole, nor is what no step holds.
  for (const row of rows.slice(4)) assert.deepEqual([row.share, row.selfSeconds], [null, null], row.name);
  assert.deepEqual(rows.map((row) => row.totalSeconds), [7, 3, 1, 10, 2.5, 1, 30, 1]);
  // The clock has a heading of its own.
  assert.equal(rows[4]?.labels, "stream=7");
  assert.deepEqual(timingRows(answer, 1).map((row) => [row.kind, row.name]), [["scope", "forward"], ["unaccounted", "unaccounted"]]);
  assert.deepEqual(timingRows(answer, 2), []);
  assert.deepEqual(ranksOf(answer), [0, 1]);
});

test("quantiles are told as exact as they are known, or why they are not", () => {
  const of = (fields: Fields) => create(SummarizeTimingsResponse_TimingSchema, { p50Seconds: 0.1, p95Seconds: 0.2, p99Seconds: 3, ...fields });
  assert.deepEqual(quantileTexts(of({ quantilesExact: true })), ["100 ms", "200 ms", "3.00 s"]);
  assert.deepEqual(quantileTexts(of({ quantilesExact: false })), ["~100 ms", "~200 ms", "~3.00 s"]);
  assert.deepEqual(quantileTexts(of({ quantilesAbsent: AbsenceReason.RAW_REMOVED, p50Seconds: 0 })), ["removed", "removed", "removed"]);
  // A CSV has numbers, or nothing.
  const cells = (fields: Fields) => {
    const [row] = timingRows(create(SummarizeTimingsResponseSchema, { timings: [{ ...timing("forward"), p50Seconds: 0.1, p95Seconds: 0.2, p99Seconds: 3, ...fields }] }), 0);
    assert.ok(row);
    const values = csvRow(row);
    return ["p50_seconds", "p95_seconds", "p99_seconds"].map((name) => values[csvHead.indexOf(name)]);
  };
  assert.deepEqual(cells({}), [0.1, 0.2, 3]);
  assert.deepEqual(cells({ quantilesAbsent: AbsenceReason.RAW_REMOVED, p50Seconds: 0, p95Seconds: 0, p99Seconds: 0 }), [null, null, null]);
});
