// The order of names, beside that of Intl.Collator where both mean the same.
import assert from "node:assert/strict";
import { test } from "node:test";
import { naturally } from "../src/core/natural_order";

test("digits are numbers, letters have no case, and nothing comes before something", () => {
  const rows: [string, string][] = [
    ["rank=2", "rank=10"], ["", "a"], ["a", "a1"], ["gpu 9", "gpu 10"], ["A2", "a10"], ["a10", "B2"], ["node-1-9", "node-1-10"], ["x007", "x8"], ["x07", "x7"], ["7", "a"],
    ["12345678901234567890", "12345678901234567891"], ["99999999999999999999", "100000000000000000000"], ["A", "a"],
  ];
  for (const [first, second] of rows) {
    assert.equal(naturally(first, second), -1, `${first} before ${second}`);
    assert.equal(naturally(second, first), 1, `${second} behind ${first}`);
  }
  assert.equal(naturally("same 07", "same 07"), 0);
});

test("machines, ranks and devices come as a collator has them", () => {
  const collator = new Intl.Collator("en", { numeric: true });
  const names = Array.from({ length: 300 }, (_, i) => `${["node", "gpu", "rank"][i % 3]} ${(i * 7919) % 1000}/${i % 13}`);
  assert.deepEqual([...names].sort(naturally), [...names].sort(collator.compare));
});

test("it is an order of all there may be", () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  let state = seed;
  const next = (most: number): number => (state = (state * 1103515245 + 12345) % 2 ** 31) % most;
  const text = (): string => Array.from({ length: next(5) }, () => "0019aAb-\u00c4"[next(9)] ?? "").join("");
  for (let i = 0; i < 20_000; ++i) {
    const [a, b, c] = [text(), text(), text()];
    const said = `seed ${seed}: ${JSON.stringify([a, b, c])}`;
    assert.equal(naturally(a, b), -naturally(b, a) + 0, said);
    assert.equal(naturally(a, b) === 0, a === b, said);
    if (naturally(a, b) < 0 && naturally(b, c) < 0) assert.ok(naturally(a, c) < 0, said);
  }
});
