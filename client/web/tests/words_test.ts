import assert from "node:assert/strict";
import { test } from "node:test";
import { sharingWords } from "../src/core/sharing";
import { meanOf, sparkPath } from "../src/core/spark";

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
