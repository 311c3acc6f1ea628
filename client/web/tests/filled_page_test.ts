import assert from "node:assert/strict";
import { test } from "node:test";
import { filledPage } from "../src/core/filled_page";
import type { Failure, Result } from "../src/failure";

interface Answer {
  trials: number[];
  nextPageToken: string;
}

/** A list whose call looks at one place and finds what stands there; `asked` has what it was asked for. */
function listOf(places: readonly number[][]) {
  const asked: string[] = [];
  const askPage = async (pageToken: string, pageSize: number): Promise<Result<Answer>> => {
    asked.push(`${pageToken}/${pageSize}`);
    const at = Number(pageToken);
    return { ok: true, value: { trials: [...(places[at] ?? [])].slice(0, pageSize), nextPageToken: at + 1 < places.length ? `${at + 1}` : "" } };
  };
  return { asked, page: (size: number, token = "") => filledPage(askPage, (answer) => answer.trials, token, size) };
}

for (const row of [
  { name: "one that is full is asked for once", places: [[1, 2, 3], [4]], size: 3, trials: [1, 2, 3], next: "1", asked: ["/3"] },
  { name: "an empty one is passed over", places: [[], [], [4], [5]], size: 2, trials: [4, 5], next: "", asked: ["/2", "1/2", "2/2", "3/1"] },
  { name: "the last one may be short", places: [[1], []], size: 9, trials: [1], next: "", asked: ["/9", "1/8"] },
  { name: "nothing at all", places: [[]], size: 9, trials: [], next: "", asked: ["/9"] },
]) {
  test(`a page of trials: ${row.name}`, async () => {
    const list = listOf(row.places);
    const answer = await list.page(row.size);
    assert.ok(answer?.ok);
    assert.deepEqual(answer.value, { trials: row.trials, nextPageToken: row.next });
    assert.deepEqual(list.asked, row.asked);
  });
}

test("a page of trials: where nothing is found for long, what comes next is the reader's choice", async () => {
  const list = listOf(Array.from({ length: 30 }, () => []));
  const answer = await list.page(5);
  assert.ok(answer?.ok);
  assert.equal(answer.value.nextPageToken, "10");
  assert.equal(list.asked.length, 10);
});

test("a page of trials: a failure and one that nobody waits for any more end it", async () => {
  const failure: Failure = { kind: "unavailable" } as unknown as Failure;
  for (const end of [null, { ok: false, failure } as const]) {
    let calls = 0;
    const askPage = async (): Promise<Result<Answer> | null> => (++calls === 1 ? { ok: true, value: { trials: [], nextPageToken: "1" } } : end);
    assert.equal(await filledPage(askPage, (answer) => answer.trials, "", 5), end);
  }
});
