// Shows parts instead of what was there, and keeps what is the same: the reader's place in a table, the focus and
// the selection stay. Children with a key ("data-key" or "data-focus") are known by it, others by their order.
import { fragmentOf, hasListeners, type Part } from "./dom";

export function patch(element: Element, ...parts: Part[]): void {
  update(element, fragmentOf(parts));
}

function isElement(node: Node): node is HTMLElement {
  return node.nodeType === 1;
}

function keyOf(node: Node): string {
  return isElement(node) ? node.getAttribute("data-key") ?? node.getAttribute("data-focus") ?? "" : "";
}

/** Whether `old` can become `fresh`: a listener may hold what it was made for, so that only a key tells. */
function canBecome(old: Node, fresh: Node): boolean {
  if (old.nodeName !== fresh.nodeName || keyOf(old) !== keyOf(fresh)) return false;
  return keyOf(old) !== "" || (!hasListeners(old) && !hasListeners(fresh));
}

/** For each of `fresh` the old child that becomes it, or null; none twice. */
function matched(olds: readonly Node[], fresh: readonly Node[]): (Node | null)[] {
  const byKey = new Map(olds.filter((one) => keyOf(one) !== "").map((one) => [keyOf(one), one]));
  const others = olds.filter((one) => keyOf(one) === "");
  let next = 0;
  return fresh.map((one) => {
    const key = keyOf(one);
    if (key !== "") {
      const old = byKey.get(key);
      if (!old || !canBecome(old, one)) return null;
      byKey.delete(key);
      return old;
    }
    const at = others.findIndex((old, index) => index >= next && canBecome(old, one));
    if (at < 0) return null;
    next = at + 1;
    return others[at] ?? null;
  });
}

function update(parent: Node, wanted: Node): void {
  const fresh = [...wanted.childNodes];
  const kept = matched([...parent.childNodes], fresh);
  const stays = new Set(kept);
  // What goes, goes first: nothing of what stays is moved for it, which would cost it focus and scrolling.
  for (const old of [...parent.childNodes]) if (!stays.has(old)) parent.removeChild(old);
  let place: Node | null = parent.firstChild;
  fresh.forEach((one, index) => {
    const old = kept[index] ?? null;
    if (old) become(old, one);
    if (old && old === place) place = old.nextSibling;
    else parent.insertBefore(old ?? one, place);
  });
}

function become(old: Node, fresh: Node): void {
  if (!isElement(old) || !isElement(fresh)) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of [...fresh.attributes]) {
    if (old.getAttribute(name) === value) continue;
    // As an attribute the page's own policy refuses it.
    if (name === "style") old.style.cssText = fresh.style.cssText;
    else old.setAttribute(name, value);
  }
  if (old.nodeName === "INPUT") (old as HTMLInputElement).checked = (fresh as HTMLInputElement).checked;
  update(old, fresh);
}
