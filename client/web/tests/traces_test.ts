import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { MergedTraceSchema, TraceFormat, TraceSchema, TraceState, type Trace } from "#gen/trace_pb";
import { clockWords, cycleWord, fileName, isMergeable, matches, meant, traceStateWords } from "../src/trace_words";

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

test("traces are found by name, rank, cycle and machine", () => {
  const one = trace({ header: { name: "Host.pt.trace.json", rank: 12, epoch: 1, machine: "node-7" } });
  for (const filter of ["", " host", "rank 12", "EP1", "node-7"]) assert.ok(matches(one, filter), filter);
  assert.ok(!matches(one, "rank 2"));
});

test("a file's name leads nowhere", () => {
  const rows: [string, string][] = [["ep0-ba7-rank0.json.gz", "ep0-ba7-rank0.json.gz"], ["../../etc/passwd", "__.._etc_passwd"], ["\u202egpj.exe", "_u202egpj.exe"], ["", "trace"]];
  for (const [name, file] of rows) assert.equal(fileName(name), file);
});
