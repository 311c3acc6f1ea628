// Times that no clock has had, and stretches so short that a tick is microseconds: what can be drawn of them, ticks below a
// heat map, links that name places which no question has.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { axisOf } from "../src/buckets";
import { tickSpace, timeTick } from "../src/core/chart_axes";
import { isDrawable } from "../src/core/drawable";
import { heatTicks } from "../src/core/heat_ticks";
import { placeMax } from "../src/core/range";
import { clockText, isoText, isTellable, timeText } from "../src/core/time_text";
import { formatView, parseView } from "../src/core/view_state";
import { toFailure } from "../src/failure";
import { rangeWords } from "../src/range_tools";

const now = Date.UTC(2026, 10, 28, 17, 52, 40) * 1000;
const year = 365.2425 * 86_400e6;

/** 0 ... 1, the same each time. */
function uniforms(seed: number): () => number {
  let at = seed;
  return () => {
    at = (Math.imul(at, 1_664_525) + 1_013_904_223) >>> 0;
    return at / 4_294_967_296;
  };
}

test("what is drawn: all that is of this age, and later what a chart tells apart, to the year 9999", () => {
  for (const span of [1, 903, 1e6, 1e15]) assert.ok(isDrawable({ start: now, end: now + span }, "time"), `${span}`);
  assert.ok(isDrawable({ start: 0, end: 1 }, "time"));
  const late = now + 1000 * year;
  assert.deepEqual([1, 4000, 1e6].map((span) => isDrawable({ start: late, end: late + span }, "time")), [false, false, true]);
  assert.ok(isDrawable({ start: now, end: Date.UTC(9999, 11, 31) * 1000 }, "time"));
  for (const end of [Date.UTC(10_000, 0, 2) * 1000, 9.2e18, 9.2e18 + 1e15, 2 ** 63]) assert.ok(!isDrawable({ start: now, end }, "time"), `${end}`);
  assert.ok(!isDrawable({ start: NaN, end: NaN }, "time"));
  assert.ok(isDrawable({ start: 0, end: placeMax.batch }, "batch"));
});

test("whatever is drawn has two thousand places that ascend, in microseconds and in seconds, and texts of usual length", () => {
  const uniform = uniforms(3);
  let drawn = 0;
  for (let round = 0; round < 20_000; ++round) {
    const start = Math.floor(2 ** (64 * uniform()));
    const range = { start, end: start + Math.ceil(2 ** (60 * uniform())) };
    if (!isDrawable(range, "time") || range.end - range.start < 2048) continue;
    ++drawn;
    const step = (range.end - range.start) / 1024;
    for (const at of [0, 1, 511, 1022]) {
      const [one, next] = [range.start + at * step, range.start + (at + 1) * step];
      assert.ok(one < next && (range.end < Number.MAX_SAFE_INTEGER || one / 1e6 < next / 1e6), JSON.stringify(range));
    }
    assert.ok(isoText(range.start).length === 27 && isoText(range.end).length === 27, JSON.stringify(range));
  }
  assert.ok(drawn > 2000, `${drawn}`);
});

test("ticks below a heat map come to an end, whatever it is of, and each is at another place", () => {
  const uniform = uniforms(5);
  const spans = Array.from({ length: 5000 }, () => ({ start: 2 ** (64 * uniform()), span: 2 ** (60 * uniform()) }));
  for (const { start, span } of [{ start: 9.2e18, span: 4096 }, { start: 2 ** 63 - 2048, span: 1024 }, { start: 2 ** 53, span: 2 }, ...spans]) {
    for (const axis of ["time", "batch"] as const) {
      const lefts = heatTicks(axis, { start, end: start + span, width: 1200 }).map(({ left }) => left);
      assert.ok(lefts.length <= 25 && lefts.every((left, at) => left >= 0 && left <= 1 && (at === 0 || left > (lefts[at - 1] ?? 1))), JSON.stringify([axis, start, span, lefts]));
    }
  }
  assert.deepEqual(heatTicks("time", { start: 9.2e18, end: 9.2e18 + 4096, width: 900 }), []);
});

test("ticks below a millisecond tell microseconds, and none touches its neighbour", () => {
  const start = Date.UTC(2026, 10, 28, 23, 59, 59) * 1000 + 999_000;
  const ticks = heatTicks("time", { start, end: start + 903, width: 1000 });
  assert.deepEqual(ticks.map(({ text }) => text), ["23:59:59.999200", "23:59:59.999400", "23:59:59.999600", "23:59:59.999800"]);
  for (let span = 2; span < 30_000; span = Math.ceil(span * 1.1)) {
    for (const width of [320, 700, 1000, 2400]) {
      const some = heatTicks("time", { start, end: start + span, width });
      assert.equal(new Set(some.map(({ text }) => text)).size, some.length, `${span} us of ${width} px: ${some.map(({ text }) => text).join(" ")}`);
      const longest = Math.max(0, ...some.map(({ text }) => text.length));
      // Digits are 6.7 pixels wide, dots and colons half of that.
      if (longest > 12) for (const [at, { left }] of some.entries()) if (at > 0) assert.ok((left - (some[at - 1]?.left ?? 0)) * width >= 92, `${span} us of ${width} px`);
    }
  }
  const seconds = 1_700_000_000.123456;
  assert.deepEqual([1, 0.5, 0.001, 0.0005, 0.000_001].map((step) => timeTick(seconds, step)), ["22:13:20", "22:13:20.123", "22:13:20.123", "22:13:20.123456", "22:13:20.123456"]);
  assert.equal(tickSpace("time", 9, 1000), 104, "milliseconds stay as close as they were");
});

test("a time that no clock has had is told as such, wherever it stands", () => {
  for (const far of [Date.UTC(10_000, 0, 1) * 1000, 9.2e18, 2 ** 63, -1e17, NaN]) {
    assert.ok(!isTellable(far));
    assert.deepEqual([isoText(far), timeText(far), clockText(far, 1e6)], Array(3).fill("an absurd time"), `${far}`);
  }
  assert.equal(isoText(Date.UTC(9999, 11, 31, 23, 59, 59) * 1000), "9999-12-31T23:59:59.000000Z");
  assert.equal(rangeWords({ start: now, end: 9.2e18 }, "time"), "2026-11-28 17:52:40 UTC to an absurd time");
});

test("a link's range is held to what its axis has numbers for", () => {
  const rangeOf = (hash: string): unknown[] => {
    const view = parseView(hash);
    return view.page === "trial" || view.page === "compare" ? [view.start, view.end] : [];
  };
  for (const page of ["#/trial/7/metrics", "#/trial/7/heat", "#/compare"]) {
    assert.deepEqual(rangeOf(`${page}?axis=batch&from=1&to=9999999999999998`), [1, 2 ** 31 - 1], page);
    assert.deepEqual(rangeOf(`${page}?axis=batch&from=9999999999999997&to=9999999999999998`), [null, null], page);
    assert.deepEqual(rangeOf(`${page}?axis=time&from=1&to=9999999999999999999`), [1, 2 ** 63 - 1024], page);
  }
  const far = parseView("#/trial/7/metrics?from=1&to=9223372036854775807");
  assert.deepEqual(parseView(formatView(far)), far, "it stays what it is");
  const { value } = axisOf("time", { start: 2 ** 63, end: 2 ** 64 });
  assert.deepEqual("startTimeUs" in value ? [value.startTimeUs, value.endTimeUs] : [], [2n ** 63n - 1024n, 2n ** 63n - 1024n]);
});

test("a question that cannot be encoded is the page's mistake, not the master's", (context) => {
  const said = context.mock.method(console, "error", () => {});
  const failure = toFailure(new ConnectError("serialize binary: cannot encode field stepwell.v1.BatchRange.end_batch to binary: invalid int32: 9999999999999998", Code.Internal));
  assert.deepEqual([failure.kind, failure.title, said.mock.callCount()], ["broken", "The page made a mistake", 1]);
  assert.equal(toFailure(new ConnectError("the database said no", Code.Internal)).kind, "failed");
});
