// The value of a line in its chart's legend: a mean, and beside it, quieter, from which to which value.
import { h } from "./dom";

export class LegendValue {
  private readonly value = h("b");
  private readonly range = h("span", { class: "muted" });
  readonly element = h("span", { class: "legend-value" }, this.value, this.range);
  private shown = "";

  /** `range` may be empty; `isOdd`: what is told is no finite number. Many times a second while a trial is followed: what stays the
   *  same is not written again. */
  show(value: string, range: string, isOdd = false): void {
    const text = `${value} ${range} ${isOdd}`;
    if (text === this.shown) return;
    this.shown = text;
    this.value.textContent = value;
    this.element.classList.toggle("odd", isOdd);
    this.range.textContent = range === "" ? "" : ` (${range})`;
  }
}
