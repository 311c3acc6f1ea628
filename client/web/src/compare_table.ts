// The table that compares trials. Its rows stay what they are while their numbers change: what has the focus
// keeps it.
import type { CompareTrialsResponse } from "#gen/compare_pb";
import { compareOrders, compareRow, shownSeries, type CompareOrder, type CompareRow } from "./compare_rows";
import { printable, shortened } from "./core/printable";
import { bdi, fill, h, named, scroller } from "./dom";
import { FilterBox } from "./filter_box";
import { stateBox } from "./state_box";

const rowsMax = 400;
/** Of a trial's name beside its number, on a phone. */
const labelMax = 40;

const orderTexts: Readonly<Record<CompareOrder, string>> = {
  "": "timings by difference", rise: "largest rise first", fall: "largest fall first", name: "by name",
};

interface Line {
  readonly element: HTMLTableRowElement;
  readonly box: HTMLInputElement;
  key: string;
}

export class CompareTable {
  private readonly filter: FilterBox;
  private readonly order: HTMLSelectElement;
  private ordered: CompareOrder = "";
  private readonly heading = h("h2", {});
  private readonly heads = h("tr", {});
  private readonly body = h("tbody", {});
  private readonly table = scroller("Comparison", h("table", { class: "cards" }, h("thead", {}, this.heads), this.body));
  private readonly empty = h("div", {}, stateBox("empty", "Nothing to compare", "No scope or metric of these trials matches, or none has samples on this axis."));
  private readonly more = h("p", { class: "muted" }, `The first ${rowsMax} are listed: filter for others.`);
  readonly element: HTMLElement;
  private readonly lines = new Map<string, Line>();
  private answer: CompareTrialsResponse | null = null;
  private opened: ReadonlySet<string> = new Set();
  private headed = "";
  private names: readonly string[] = [];

  /** `onChart`: the chart of `id` is wanted, or not any more; `onFilter`: rows that contain this are; `onOrder`: in this order. */
  constructor(private readonly onChart: (id: string, opened: boolean) => void, onFilter: (text: string) => void, onOrder: (order: string) => void) {
    this.order = h("select", { "aria-label": "Order", onchange: () => onOrder(this.order.value) },
      compareOrders.map((order) => h("option", { value: order }, orderTexts[order])));
    this.filter = new FilterBox({ placeholder: "scope or metric …" }, () => this.showRows(), onFilter);
    this.element = h("div", {}, h("div", { class: "chart-head" }, this.heading, h("div", { class: "tools" }, this.order, this.filter.element)), this.empty, this.table, this.more);
  }

  destroy(): void {
    this.filter.stop();
  }

  /** Nothing is known to compare any more. */
  clear(): void {
    this.answer = null;
    this.headed = "";
    this.lines.clear();
    fill(this.heads);
    fill(this.body);
    this.heading.textContent = "";
  }

  /** As the address has them. */
  arrange(filter: string, order: string): void {
    const ordered = compareOrders.find((one) => one === order) ?? "";
    const isReordered = ordered !== this.ordered;
    this.ordered = ordered;
    this.order.value = ordered;
    if (this.filter.show(filter) || isReordered) this.showRows();
  }

  /** `range`: of what, in words. Ranks, machines and GPUs are folded: of all of them. */
  show(answer: CompareTrialsResponse, names: readonly string[], opened: readonly string[], range: string): void {
    this.answer = answer;
    this.opened = new Set(opened);
    this.heading.textContent = `Means of ${range} over all ranks and machines, and change from the first`;
    const headed = JSON.stringify(names);
    if (headed !== this.headed) {
      this.headed = headed;
      this.names = names;
      fill(this.heads, h("th", { scope: "col" }, "Chart"), h("th", { scope: "col" }, "Scope or metric"), names.map((name) => h("th", { scope: "col", class: "number" }, bdi(name))));
    }
    this.showRows();
  }

  private showRows(): void {
    if (!this.answer) return;
    const series = shownSeries(this.answer, this.filter.text.trim().toLowerCase(), this.ordered);
    this.more.hidden = series.length <= rowsMax;
    this.empty.hidden = series.length > 0;
    this.table.hidden = series.length === 0;
    const rows = series.slice(0, rowsMax).map(compareRow);
    const focused = this.body.contains(document.activeElement) ? document.activeElement as HTMLElement : null;
    const kept = new Set(rows.map((row) => row.id));
    for (const [id, line] of this.lines) {
      if (kept.has(id)) continue;
      line.element.remove();
      this.lines.delete(id);
    }
    rows.forEach((row, at) => {
      const line = this.lineOf(row);
      const there = this.body.children[at] ?? null;
      if (there !== line.element) this.body.insertBefore(line.element, there);
    });
    // A row that is moved loses it.
    if (focused?.isConnected && document.activeElement !== focused) focused.focus();
  }

  private lineOf(row: CompareRow): Line {
    const line = this.lines.get(row.id) ?? this.made(row);
    line.box.checked = this.opened.has(row.id);
    const key = JSON.stringify([this.names, row.sides]);
    if (key === line.key) return line;
    line.key = key;
    line.element.replaceChildren(...[...line.element.children].slice(0, 2), ...row.sides.map(({ text, change, nans, isOdd, units }, at) => h("td", { class: "number", "data-label": shortened(printable(this.names[at] ?? ""), labelMax) }, h("span", {},
      text === "" ? h("span", { class: "muted" }, "none") : isOdd ? h("span", { class: "worse" }, text) : text,
      change.text !== "" && h("span", { class: change.tone > 0 ? "better" : change.tone < 0 ? "worse" : "muted" }, ` ${change.text}`),
      units !== "" && h("span", { class: "muted", title: units }, " unit differs"),
      nans !== "" && h("span", { class: "worse" }, h("br"), nans)))));
    return line;
  }

  private made(row: CompareRow): Line {
    const box = h("input", { type: "checkbox", "aria-label": `Chart of ${row.id}`, onchange: () => this.onChart(row.id, box.checked) });
    const element = h("tr", { "data-metric": row.id }, h("td", { class: "pick" }, box), h("td", { class: "name" }, named(row.name), h("span", { class: "muted" }, " ", bdi(row.of))));
    const line = { element, box, key: "" };
    this.lines.set(row.id, line);
    return line;
  }
}
