// The lines of what caps would remove.
import assert from "node:assert/strict";
import { test } from "node:test";
import { moreWords, removalLine, type WireRemoval } from "../src/core/cap_removals";

const none: WireRemoval = { trialId: 7n, metricGroup: "", sampleCount: 0n, rawBytes: 0n, rollupBytes: 0n, firstTimeUs: 0n, lastTimeUs: 0n, traceCount: 0n, traceBytes: 0n };

test("a removal tells its group, what goes, from when to when", () => {
  const at = BigInt(Date.UTC(2026, 10, 28, 17, 0, 0)) * 1000n;
  assert.deepEqual(removalLine({ ...none, metricGroup: "gpu", sampleCount: 1200n, rawBytes: 2048n, firstTimeUs: at, lastTimeUs: at + 60_000_000n }),
    { metricGroup: "gpu", goes: "1,200 samples (2.00 KiB)", from: "2026-11-28 17:00:00 UTC", to: "2026-11-28 17:01:00 UTC" });
  assert.deepEqual(removalLine({ ...none, traceCount: 1n, traceBytes: 3072n, rollupBytes: 1024n }),
    { metricGroup: "all", goes: "1.00 KiB of rollups, 1 trace (3.00 KiB)", from: "-", to: "-" });
  assert.equal(removalLine({ ...none, metricGroup: "a\u202eb" }).metricGroup, "a\\u202eb");
});

test("what is not shown of the list is counted", () => {
  assert.equal(moreWords(50, 50, false), "");
  assert.equal(moreWords(60, 50, false), "and 10 lines more");
  assert.equal(moreWords(1000, 50, true), "and at least 950 lines more");
  assert.equal(moreWords(1000, 1000, true), "and more that the master does not list");
});
