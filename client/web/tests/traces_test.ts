import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { MergedTraceSchema, SummarizeTraceResponseSchema, TraceFormat, TraceSchema, TraceState, type Trace } from "#gen/trace_pb";
import { stepTable } from "../src/trace_steps";
import { clockWords, cycleWord, fileName, isMergeable, matches, meant, named, traceStateWords } from "../src/trace_words";

function trace(init: MessageInitShape<typeof TraceSchema>): Trace {
  return create(TraceSchema, { state: TraceState.COMPLETE, ...init });
}

test("a trace's state and cycle read as on the command line", () => {
  const header = { byteCount: 3000n };
  assert.equal(traceStateWords(trace({ header })), "complete");
  assert.equal(traceStateWords(trace({ header, state: TraceState.UPLOADING, receivedBytes: 2999n })), "uploading, 99 %");
  assert.equal(traceStateWords(trace({ header, state: TraceState.REFUSED, reason: "trace_bytes\u202e" })), "refused: trace_bytes\\u202e");
  assert.equal(traceStateWords(trace({ header, state: TraceState.REMOVED, reason: "abandoned" })), "removed: abandoned");
  const rows: [object, string][] = [
    [{}, ""], [{ epoch: 0 }, "ep0"], [{ epoch: 0, firstBatch: 7, lastBatch: 7 }, "ep0-ba7"], [{ firstBatch: 4, lastBatch: 7 }, "ba4...7"], [{ lastBatch: 7 }, "ba7"],
  ];
  for (const [said, text] of rows) assert.equal(cycleWord(trace({ header: said }).header), text, JSON.stringify(said));
});

test("what nothing tells of a clock is not called exact", () => {
  assert.deepEqual(clockWords(create(MergedTraceSchema, { shiftNs: -1_500_000n, clockErrorNs: 0n })), { error: "±0 s", shift: "shifted by −1.50 ms" });
  assert.deepEqual(clockWords(create(MergedTraceSchema, { shiftNs: 1_500_000n, driftUsPerS: -20 })), { error: "unknown", shift: "shifted by +1.50 ms, −20.0 µs more each second" });
  assert.deepEqual(clockWords(create(MergedTraceSchema, {})), { error: "unknown", shift: "not shifted" });
});

test("only whole traces in JSON and Perfetto's form are merged and shown", () => {
  const all = [
    trace({ traceNo: 1, header: { format: TraceFormat.CHROME_JSON } }), trace({ traceNo: 2, header: { format: TraceFormat.PERFETTO } }),
    trace({ traceNo: 3, header: { format: TraceFormat.XPLANE } }), trace({ traceNo: 4, header: { format: TraceFormat.CHROME_JSON }, state: TraceState.UPLOADING }),
  ];
  assert.deepEqual(all.filter(isMergeable).map((one) => one.traceNo), [1, 2]);
  assert.deepEqual(meant(all, new Set()).map((one) => one.traceNo), [1, 2]);
  assert.deepEqual(meant(all, new Set([2, 3])).map((one) => one.traceNo), [2, 3]);
});

test("a merge of all names none, so that a bad one is left out, and one of a few names these", () => {
  const [one, two, plane] = [TraceFormat.CHROME_JSON, TraceFormat.PERFETTO, TraceFormat.XPLANE].map((format, at) => trace({ traceNo: at + 1, header: { format } }));
  assert.ok(one && two && plane);
  const list = [one, two, plane];
  assert.deepEqual(named([one, two], list, false), []);
  assert.deepEqual(named([one, two], list, true), [1, 2], "there are more than the list has");
  assert.deepEqual(named([two], list, false), [2]);
});

test("the steps of a trace read as on the command line", () => {
  assert.equal(stepTable(create(SummarizeTraceResponseSchema, {})), null, "no step");
  const step = (name: string, kernelNs: bigint) => ({ name, lengthNs: 10_000_000n, kernelNs, dataLoaderNs: 1_000_000n, otherNs: 9_000_000n - kernelNs });
  const table = stepTable(create(SummarizeTraceResponseSchema, {
    steps: [step("ProfilerStep#3", 4_000_000n), step("ProfilerStep#4", 6_000_000n)], stepCount: 2n,
    total: { lengthNs: 20_000_000n, kernelNs: 10_000_000n, dataLoaderNs: 2_000_000n, otherNs: 8_000_000n, communicatingNs: 4_000_000n, overlapNs: 1_000_000n, idleNs: 6_000_000n },
    hasDevice: true, deviceBusyNs: 3n, deviceSpanNs: 4n, stepsLeftOut: 1n, isCut: true, badCount: 2n, eventsOverBound: 3n,
  }));
  assert.deepEqual(table?.classes, [
    { name: "kernel", meanText: "5.00 ms", shareText: "50.0 %", share: 0.5 }, { name: "data loader", meanText: "1.00 ms", shareText: "10.0 %", share: 0.1 },
    { name: "other", meanText: "4.00 ms", shareText: "40.0 %", share: 0.4 },
  ]);
  assert.deepEqual(table?.steps, [
    { name: "ProfilerStep#3", lengthText: "10.0 ms", shareTexts: ["40.0 %", "10.0 %", "50.0 %"] },
    { name: "ProfilerStep#4", lengthText: "10.0 ms", shareTexts: ["60.0 %", "10.0 %", "30.0 %"] },
  ]);
  assert.deepEqual(table?.facts, [
    "2 steps of 10.0 ms on average.", "The device was busy 75.0 % of the time from its first event to its last, and idle for 3.00 ms a step.",
    "Communication took 2.00 ms a step; something was computed during 25.0 % of it.", "1 step at the end left out: recording stopped before the device's part.",
    "The trace ends too early; what it has is counted.", "2 things that is no event left out.", "3 events beyond what is held at once not counted.",
  ]);
});

test("traces are found by name, rank, cycle and machine", () => {
  const one = trace({ header: { name: "Host.pt.trace.json", rank: 12, epoch: 1, machine: "node-7" } });
  for (const filter of ["", " host", "rank 12", "EP1", "node-7"]) assert.ok(matches(one, filter), filter);
  assert.ok(!matches(one, "rank 2"));
});

test("a file's name leads nowhere", () => {
  const rows: [string, string][] = [["ep0-ba7-rank0.json.gz", "ep0-ba7-rank0.json.gz"], ["../../etc/passwd", "__.._etc_passwd"], ["\u202egpj.exe", "_u202egpj.exe"], ["", "trace"]];
  for (const [name, file] of rows) assert.equal(fileName(name), file);
});
