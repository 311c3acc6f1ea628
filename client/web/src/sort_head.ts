// The head of a column by which its table can be ordered: a button, so that keys do it as well.
import type { Sorting } from "./core/sorting";
import { h } from "./dom";

/** `table`: which one of a page it is in, for what keeps the focus. The first `onPress` of a head is kept for as long as it
 *  is shown (patch.ts): it asks for the order of its time itself. */
export function sortHead<Column extends string>(
  table: string, column: Column, text: string, numeric: boolean, sorting: Sorting<Column> | null, onPress: () => void,
): HTMLElement {
  const ours = sorting?.column === column ? sorting : null;
  const order = ours === null ? "none" : ours.up ? "ascending" : "descending";
  return h("th", { scope: "col", class: numeric ? "number" : "", "aria-sort": order, "data-key": `head-${column}` },
    h("button", { type: "button", class: "sort", "data-focus": `sort-${table}-${column}`, onclick: onPress },
      text, ours !== null && h("span", { class: "sort-mark", "aria-hidden": "true" }, ours.up ? "▲" : "▼")));
}
