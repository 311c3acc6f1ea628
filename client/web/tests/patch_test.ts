import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { h, type Part } from "../src/dom";
import { patch } from "../src/patch";
import { counts, FakeElement, installFakeDom } from "./fake_dom";

const put = (place: FakeElement, ...parts: Part[]): void => patch(place as unknown as Element, ...parts);
const at = (node: FakeElement, ...path: number[]): FakeElement => path.reduce((from, index) => from.children[index] as FakeElement, node);
const row = (key: string, text: string, ...parts: Part[]) => h("tr", { "data-key": key }, h("td", {}, text), ...parts);

let place: FakeElement;
beforeEach(() => {
  installFakeDom();
  place = new FakeElement("div");
});

test("what is the same stays where it is, and what changed is written into it", () => {
  const table = (texts: string[]) => h("div", { class: "scroll" }, h("tbody", {}, texts.map((text, i) => row(`r${i}`, text))));
  put(place, table(["1 s ago", "stays"]));
  const scroller = at(place, 0);
  const first = at(place, 0, 0, 0);
  Object.assign(counts, { inserted: 0, removed: 0, written: 0 });
  put(place, table(["2 s ago", "stays"]));
  assert.equal(at(place, 0), scroller);
  assert.equal(at(place, 0, 0, 0), first);
  assert.equal(place.textContent, "2 s agostays");
  assert.equal(counts.written, 1);
  assert.equal(counts.removed, 0);
});

test("a row that comes on top or goes moves none of the others", () => {
  const rows = (keys: string[]) => keys.map((key) => row(key, key));
  put(place, ...rows(["c", "b", "a"]));
  const [c, , a] = place.children;
  put(place, ...rows(["d", "c", "a"]));
  assert.equal(place.textContent, "dca");
  assert.equal(place.children[1], c);
  assert.equal(place.children[2], a);
  // Of those that change places one is moved, no more than there is to move.
  put(place, ...rows(["a", "d", "c"]));
  assert.equal(place.textContent, "adc");
  assert.equal(place.children[0], a);
});

test("attributes come and go, styles by their own door, a box is ticked as it is", () => {
  const box = (checked: boolean, attributes: Record<string, string>) => {
    const made = h("input", { type: "checkbox", "data-focus": "pick", onchange: () => undefined, ...attributes });
    made.checked = checked;
    made.style.cssText = checked ? "width: 3%" : "";
    return made;
  };
  put(place, box(false, { title: "old", style: "x" }));
  const kept = at(place, 0);
  put(place, box(true, { class: "new", style: "y" }));
  assert.equal(at(place, 0), kept);
  assert.equal(kept.checked, true);
  assert.equal(kept.getAttribute("title"), null);
  assert.equal(kept.getAttribute("class"), "new");
  assert.equal(kept.getAttribute("style"), "x", "the policy of the page lets no style attribute in");
  assert.equal(kept.style.cssText, "width: 3%");
});

test("what listens for something else is another, even where it looks the same", () => {
  const said: string[] = [];
  const box = (what: string) => h("div", {}, h("p", {}, h("button", { type: "button", onclick: () => said.push(what) }, what)));
  put(place, box("Show all"));
  const outer = at(place, 0);
  put(place, box("Try again"));
  assert.equal(at(place, 0), outer);
  at(place, 0, 0, 0).click();
  assert.deepEqual(said, ["Try again"]);
});

test("an element that somebody else fills is put in anew, and never taken apart", () => {
  const line = h("span", { "data-key": "spark-7" }, "busy");
  put(place, row("7", "a", line), row("8", "b", h("span", { "data-key": "spark-8" })));
  put(place, row("8", "b"), row("7", "a", line));
  assert.equal(at(place, 1, 1), line as unknown as FakeElement);
  assert.equal(line.textContent, "busy");
});

test("whatever was shown and is shown, it reads as if made anew", () => {
  const seed = Number(process.env["STEPWELL_TEST_SEED"] ?? Date.now() % 1_000_000);
  console.log(`seed ${seed}`);
  let state = seed + 1;
  const random = (below: number): number => Math.floor(((state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648) * below);
  const tree = (depth: number): Part[] => {
    const used = new Set<string>();
    return Array.from({ length: random(5) }, (): Part => {
      if (depth === 0 || random(4) === 0) return `t${random(9)}`;
      const key = random(2) === 0 ? `k${random(6)}` : "";
      const isKeyed = key !== "" && !used.has(key);
      used.add(key);
      const listens = random(3) === 0 ? { onclick: () => undefined } : {};
      return h((["div", "p", "tr"] as const)[random(3)] ?? "p", { ...(isKeyed ? { "data-key": key } : {}), ...(random(2) === 0 ? { class: `c${random(3)}` } : {}), ...listens }, tree(depth - 1));
    });
  };
  const said = (node: FakeElement): unknown => node.children.map((one) => one instanceof FakeElement
    ? [one.nodeName, one.attributes.map(({ name, value }) => `${name}=${value}`).sort(), said(one)] : one.textContent);
  for (let round = 0; round < 500; ++round) {
    const parts = tree(4);
    const anew = new FakeElement("div");
    // Said before the parts move on.
    const fresh = h("div", {}, parts) as unknown as FakeElement;
    const wanted = JSON.stringify(said(fresh));
    anew.appendChild(fresh);
    put(place, [...fresh.children] as unknown as Node[]);
    assert.equal(JSON.stringify(said(place)), wanted);
  }
});
