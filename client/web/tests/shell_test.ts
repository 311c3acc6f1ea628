// index.html shows the top bar before the script runs: its links are those that the script knows.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { adminView, compareView, formatView, parseView, trialsView } from "../src/core/view_state";

const shell = readFileSync(new URL("../../src/index.html", import.meta.url), "utf8");

test("each link of the top bar is the address of its first page", () => {
  const links = [...shell.matchAll(/<a (?:class="brand" )?href="([^"]+)"(?: data-pages="([^"]+)")?>/g)].map(([, href, pages]) => ({ href, pages: pages?.split(" ") ?? ["trials"] }));
  assert.deepEqual(links.map(({ href }) => href), [trialsView, trialsView, compareView, adminView].map(formatView));
  for (const { href, pages } of links) assert.equal(parseView(href ?? "").page, pages[0]);
});

test("each page has its link", () => {
  const named = [...shell.matchAll(/data-pages="([^"]+)"/g)].flatMap(([, pages]) => pages?.split(" ") ?? []);
  assert.deepEqual(named, ["trials", "trial", "compare", "admin"]);
});
