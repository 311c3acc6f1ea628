// Instead of a chart whose times no chart can show (core/drawable.ts).
import { h } from "./dom";
import { stateBox } from "./state_box";

/** `onBatch`: shows the same by batch. */
export function farBox(trials: readonly string[], onBatch: () => void): HTMLElement {
  return stateBox("failed", "Times too far off to be drawn",
    "The times of these samples lie beyond the year 9999, or so far off that a chart cannot tell them apart: a clock was wrong, it seems. The command line reads them; by batch they are drawn.",
    trials.map((trial) => h("code", {}, `stepwell read id:${trial}`)),
    h("button", { type: "button", onclick: onBatch }, "Batch"));
}
