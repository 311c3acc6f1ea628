import assert from "node:assert/strict";
import { test } from "node:test";
import { placeAt, placeOf, placeText, type Place } from "../src/core/cap_place";
import { capText, parseCap } from "../src/core/cap_units";
import { csvText } from "../src/core/csv";
import { rangesText } from "../src/core/numbers";
import { printable, shortened } from "../src/core/printable";
import { agoText, clockText, isoText, parseTime, timeText } from "../src/core/time_text";
import { countText, meanTexts, percentTexts, plural, rangeText, secondsText, tickTexts, valueText } from "../src/core/units";
import { wrapped } from "../src/core/wrapping";

test("values read as on the command line", () => {
  const rows: [number, string, string][] = [
    [0, "bytes", "0 B"], [-0, "bytes/s", "0 B/s"], [0.25, "bytes", "0.25 B"], [1023, "bytes", "1023 B"], [1536, "bytes", "1.50 KiB"], [8.5e9, "bytes", "7.92 GiB"], [1048576, "bytes/s", "1.00 MiB/s"],
    [0, "seconds", "0 s"], [0.0088, "seconds", "8.80 ms"], [91.3, "seconds", "91.3 s"], [599, "seconds", "599 s"], [5400, "seconds", "1.50 h"], [4.1e-7, "seconds", "410 ns"],
    [41.14, "percent", "41.1 %"], [12, "1", "12"], [1234567, "", "1,234,567"], [0.123456, "1", "0.1235"], [289.87, "1/s", "289.9 /s"], [2, "W", "2 W"],
    [NaN, "bytes", "not a number"], [Infinity, "1", "+infinity"], [-Infinity, "seconds", "−infinity"],
  ];
  for (const [value, unit, text] of rows) assert.equal(valueText(value, unit), text, `${value} ${unit}`);
});

test("counts have their thousands apart, and one is one", () => {
  assert.equal(countText(12345678901234567890n), "12,345,678,901,234,567,890");
  assert.equal(plural(1, "writer"), "1 writer");
  assert.equal(plural(0n, "writer"), "0 writers");
});

test("percents add up to their sum", () => {
  assert.deepEqual(percentTexts([1 / 3, 1 / 3, 1 / 3]), ["33.4 %", "33.3 %", "33.3 %"]);
  assert.deepEqual(percentTexts([]), []);
});

test("ticks of an axis share a unit and differ from each other", () => {
  assert.deepEqual(tickTexts([0, 0.005, 0.01], "seconds"), ["0", "5 ms", "10 ms"]);
  assert.deepEqual(tickTexts([0, 2 ** 28, 2 ** 30], "bytes"), ["0", "0.25 GiB", "1.00 GiB"]);
  assert.equal(new Set(tickTexts([22.41, 22.42, 22.43], "1")).size, 3);
  assert.deepEqual(tickTexts([], "percent"), []);
  assert.deepEqual(tickTexts([0, 1e-7, 2e-7], "1"), ["0", "1e-7", "2e-7"]);
  assert.deepEqual(tickTexts([1_210_000, 1_220_000], "1"), ["1.21e+6", "1.22e+6"]);
  assert.deepEqual(tickTexts([0, 500_000, 1_000_000], "1"), ["0", "5e+5", "1e+6"]);
});

test("no two ticks of an axis read the same, however near or far they are", () => {
  const seed = Number(process.env["STEPWELL_TEST_SEED"] ?? Date.now() % 1_000_000);
  console.log(`seed ${seed}`);
  let state = seed + 1;
  const random = (): number => ((state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648);
  const units = ["1", "bytes", "bytes/s", "seconds", "percent", "W"];
  for (let round = 0; round < 5000; ++round) {
    const step = ([1, 2, 2.5, 5][Math.floor(random() * 4)] ?? 1) * 10 ** Math.floor(random() * 30 - 15);
    const first = Math.round((random() - 0.5) * 10 ** Math.floor(random() * 9));
    const ticks = Array.from({ length: 2 + Math.floor(random() * 9) }, (_, at) => (first + at) * step);
    const unit = units[Math.floor(random() * units.length)] ?? "";
    const texts = tickTexts(ticks, unit);
    assert.equal(new Set(texts).size, ticks.length, JSON.stringify([ticks, unit, texts]));
  }
});

test("times are UTC, as fine as their span needs", () => {
  const at = 1_763_671_615_123_456;
  assert.equal(isoText(at), "2025-11-20T20:46:55.123456Z");
  assert.equal(timeText(0), "-");
  assert.equal(timeText(at), "2025-11-20 20:46:55 UTC");
  assert.equal(clockText(at, 5000), "20:46:55.123456");
  assert.equal(clockText(at, 3e9), "20:46:55");
  assert.equal(clockText(at, 9e10), "11-20 20:46:55");
  assert.equal(parseTime(isoText(at)), at);
  // A place on a chart is no whole microsecond: within half of one of the next second it is that second's.
  assert.equal(isoText(1_763_671_615_999_999.5), "2025-11-20T20:46:56.000000Z");
  assert.equal(clockText(1_763_671_615_999_999.5, 5e6), "20:46:56.000");
  assert.equal(isoText(1_763_671_615_999_999.25), "2025-11-20T20:46:55.999999Z");
  assert.equal(parseTime("tomorrow"), null);
  assert.equal(isoText(9e18), "an absurd time");
  assert.equal(agoText(0, 150e6), "2 min ago");
  assert.equal(agoText(10, 5), "now");
});

test("names that hide or turn text around are shown with escapes", () => {
  assert.equal(printable("a\u202Eb\u0000\nc\u200B"), "a\\u202eb\\u0000\\u000ac\\u200b");
  assert.equal(printable("<script>alert(1)</script> שלום"), "<script>alert(1)</script> שלום");
  assert.equal(shortened("abcdefghij", 5), "abc…j");
  assert.equal(shortened("abc", 5), "abc");
});

test("a spreadsheet runs nothing of a CSV", () => {
  const text = csvText(["name", "value"], [["=cmd()", 1], ['say "hi", now', NaN], ["+1", null], ["-x", -1]]);
  assert.equal(text, "name,value\r\n'=cmd(),1\r\n\"say \"\"hi\"\", now\",NaN\r\n'+1,\r\n'-x,-1\r\n");
  // Where the separator is another, no part of a text begins a formula either.
  assert.equal(csvText([], [["a;=cmd()", "b\t@c", "d\n+e", "f;g-h"]]), "\r\n\"a;'=cmd()\",\"b\t'@c\",\"d\n'+e\",\"f;g-h\"\r\n");
});

test("numbers read as ranges", () => {
  assert.equal(rangesText([3, 5, 6, 7], 16, 10), "3, 5-7 and 12 more");
  assert.equal(rangesText([], 0, 10), "");
});

test("caps that are shown can be given again", () => {
  for (const [kind, value] of [["age", 5400], ["age", 2592000 + 1], ["bytes", 53687091200], ["bytes", 1000], ["samples", 1000000], ["samples", 1234], ["age", 0]] as const) {
    assert.equal(parseCap(kind, capText(kind, value)), value, capText(kind, value));
  }
  assert.equal(parseCap("age", "30 days"), null);
  assert.equal(parseCap("bytes", "1.5TB"), 1.5e12);
  assert.equal(parseCap("samples", "-1"), null);
  assert.equal(parseCap("bytes", "8.2GB"), 8_200_000_000);
  assert.equal(parseCap("samples", "1.005k"), 1005);
  assert.equal(parseCap("bytes", "1.2B"), null);
  assert.equal(parseCap("bytes", "99999PB"), null);
});

test("places of caps are named as the master has them, and back", () => {
  const rows: [Place, string][] = [
    [{ owner: "all", name: "", metricGroup: "" }, "all trials"], [{ owner: "all", name: "", metricGroup: "gpu" }, "all trials, group gpu"],
    [{ owner: "project", name: "vision", metricGroup: "" }, "project vision"], [{ owner: "trial", name: "7", metricGroup: "cpu" }, "trial 7, group cpu"],
    [{ owner: "trial", name: "resnet", project: "default", metricGroup: "" }, "trial resnet"],
    [{ owner: "trial", name: "resnet", project: "vision", metricGroup: "gpu" }, "trial resnet of project vision, group gpu"],
    [{ owner: "trial", name: "7", project: "vision", metricGroup: "" }, "trial 7 of project vision"],
  ];
  for (const [place, text] of rows) {
    assert.equal(placeText(place), text);
    const wire = placeOf(place);
    const owner = wire.owner?.case === "trial" ? { case: "trial" as const, value: { trialId: 0n, project: "", externalId: "", ...wire.owner.value } } : wire.owner ?? { case: undefined };
    assert.deepEqual(placeAt({ metricGroup: wire.metricGroup, owner }), place, text);
  }
  assert.deepEqual(placeOf({ owner: "trial", name: "7", metricGroup: "" }).owner, { case: "trial", value: { trialId: 7n } });
  assert.deepEqual(placeOf({ owner: "trial", name: "resnet", metricGroup: "" }).owner, { case: "trial", value: { externalId: "resnet" } });
});

test("a unit that anybody chose turns no text around", () => {
  assert.equal(valueText(3, "\u202eB"), "3 \\u202eB");
});

test("a range names its unit once, and is none where both ends read alike", () => {
  assert.equal(rangeText(20, 90, "percent"), "20.0 … 90.0 %");
  assert.equal(rangeText(2 ** 30, 3 * 2 ** 30, "bytes"), "1.00 … 3.00 GiB");
  assert.equal(rangeText(2 ** 20, 3 * 2 ** 30, "bytes"), "1.00 MiB … 3.00 GiB");
  assert.equal(rangeText(0.5, 600, "seconds"), "500 ms … 10.0 min");
  assert.equal(rangeText(1, 2, ""), "1 … 2");
  // A mean and its range have as many decimals, as far as these are told; whole numbers have none.
  assert.deepEqual(meanTexts(467.98, 427.14, 505.83, "1/s"), ["468.0 /s", "427.1 … 505.8 /s"]);
  assert.deepEqual(meanTexts(0.5002, 0.00012, 101.24, ""), ["0.5002", "0.00012 … 101.2"]);
  assert.deepEqual([meanTexts(2.5, 1, 4, ""), meanTexts(50, 20.04, 90, "percent"), meanTexts(0.9999e-7, 1e-9, 2.5, "")], [["2.5", "1 … 4"], ["50.0 %", "20.0 … 90.0 %"], ["9.999e-8", "1e-9 … 2.5"]]);
  assert.equal(rangeText(10.001, 10.002, "percent"), "");
  assert.equal(rangeText(-Infinity, 3, "percent"), "−infinity … 3.0 %");
});

test("words of a picture are broken where there is no more room, and none is left out", () => {
  const lines = (text: string, width: number): string[] => wrapped(text, width, (words) => words.length);
  assert.deepEqual(lines("striped: 60 of 120 samples are NaN", 40), ["striped: 60 of 120 samples are NaN"]);
  assert.deepEqual(lines("striped: 60 of 120 samples are NaN", 19), ["striped: 60 of 120", "samples are NaN"]);
  assert.deepEqual(lines("a word-without-an-end b", 6), ["a", "word-w", "ithout", "-an-en", "d b"]);
  assert.deepEqual(lines("", 6), []);
  assert.deepEqual(lines("wide", 0), ["w", "i", "d", "e"]);
});
