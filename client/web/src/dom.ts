// Elements from names and parts. Text is only ever set as text; there is no way to HTML in this file.

export type Part = Node | string | number | null | undefined | false | readonly Part[];

type Attributes = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>;

function append(parent: Node, part: Part): void {
  if (part === null || part === undefined || part === false) return;
  if (Array.isArray(part)) {
    for (const one of part as readonly Part[]) append(parent, one);
  } else {
    parent.appendChild(part instanceof Node ? part : document.createTextNode(String(part)));
  }
}

export function fragmentOf(parts: Part): DocumentFragment {
  const fragment = document.createDocumentFragment();
  append(fragment, parts);
  return fragment;
}

const listening = new WeakSet<Node>();

/** Whether `h` gave it one. */
export function hasListeners(node: Node): boolean {
  return listening.has(node);
}

function set(element: HTMLElement, name: string, value: Attributes[string]): void {
  if (typeof value === "function") {
    listening.add(element);
    element.addEventListener(name.replace(/^on/, "").toLowerCase(), value as EventListener);
  } else if (value === true) {
    element.setAttribute(name, "");
  } else if (value !== false && value !== null && value !== undefined) {
    element.setAttribute(name, String(value));
  }
}

/** h("a", { href: "#/trials", class: "link" }, "Trials"). Attributes that are functions are listeners. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...parts: Part[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) set(element, name, value);
  append(element, parts);
  return element;
}

/** As h, of SVG. */
export function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Readonly<Record<string, string>>, ...parts: Part[]): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  append(element, parts);
  return element;
}

/** A line of SVG in a box of `width` by `height` over its base, which tells how high it is; `text` is what it says. */
export function line(path: string, width: number, height: number, text: string): SVGElement {
  return svg("svg", { viewBox: `0 -1 ${width} ${height + 2}`, preserveAspectRatio: "none", role: "img", "aria-label": text },
    svg("title", {}, text), svg("path", { class: "base", d: `M0 ${height}H${width}` }), svg("path", { d: path }));
}

/** Shows `parts` instead of what was there. */
export function fill(element: Element, ...parts: Part[]): void {
  element.replaceChildren(fragmentOf(parts));
}

/** A name that anybody may have chosen, apart from the direction of what stands around it. */
export function bdi(text: string, title?: string): HTMLElement {
  return h("bdi", { title }, text);
}

/** `parts` with more words to them, shown where the pointer or the focus is; its key keeps the focus where it is made anew. */
export function hinted(key: string, attributes: Attributes, hint: string, ...parts: Part[]): HTMLElement {
  return h("span", { ...attributes, "data-focus": key, "data-hinted": "", tabindex: 0 }, parts, h("span", { class: "hint" }, hint));
}

/** Runs `change`, which may take away within `place` what has the focus: whoever was there has it where the same key is
 *  now, else at `otherwise`. Keys begin from the focus, and with none at the top of the page. */
export function keepFocus(place: HTMLElement, change: () => void, otherwise: () => HTMLElement | null | undefined): void {
  const before = document.activeElement;
  const key = place.contains(before) ? before?.getAttribute("data-focus") ?? "" : null;
  change();
  if (key === null || place.contains(document.activeElement)) return;
  const same = key === "" ? null : place.querySelector<HTMLElement>(`[data-focus="${CSS.escape(key)}"]:not(:disabled)`);
  (same ?? otherwise())?.focus();
}

/** As bdi, of scopes and metrics: lines are broken behind "/" and "_" rather than within a word. */
export function named(text: string): HTMLElement {
  return h("bdi", {}, text.split(/(?<=[/_])(?![/_])/).flatMap((part, at) => (at === 0 ? [part] : [h("wbr"), part])));
}

/** Scrolls sideways where there is no room, by keys too. */
export function scroller(label: string, ...parts: Part[]): HTMLElement {
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, ...parts);
}

export function download(name: string, text: string): void {
  downloadBlob(name, new Blob([text], { type: "text/csv;charset=utf-8" }));
}

export function downloadBlob(name: string, blob: Blob): void {
  const url = URL.createObjectURL(blob);
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
