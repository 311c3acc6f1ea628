// State and completeness as words with a sign: colour alone says nothing.
import { TrialState, type Completeness } from "#gen/model_pb";
import { h, hinted } from "./dom";
import { completenessWords, stateHint, stateWord } from "./words";

/** With a `key` its meaning (`hint`) is told to who comes by keys, too; without, it stands in a table, where each would be one stop
 *  more: there one mark tells what all of them mean. */
export function stateBadge(state: TrialState, key = "", hint = stateHint(state)): HTMLElement {
  const tone = state === TrialState.RUNNING ? "live" : state === TrialState.COMPLETED ? "good"
    : state === TrialState.FAILED ? "bad" : "warn";
  const sign = state === TrialState.RUNNING ? h("span", { class: "dot" })
    : state === TrialState.COMPLETED ? "✓" : state === TrialState.FAILED ? "✕" : "?";
  const parts = [h("span", { "aria-hidden": "true", class: state === TrialState.RUNNING ? "" : "sign" }, sign), stateWord(state)];
  const looks = { class: "badge", "data-tone": tone };
  return key === "" ? h("span", { ...looks, title: hint }, parts) : hinted(key, looks, hint, ...parts);
}

/** What all states in a table mean. */
export function statesMark(hints: string): HTMLElement {
  return hinted("states", { class: "badge muted states" }, hints, h("span", { "aria-hidden": "true" }, "?"), h("span", { class: "visually-hidden" }, "What the states mean"));
}

export function completenessBadge(held: Completeness, href: string): HTMLElement {
  const { badge, text } = completenessWords(held);
  const sign = badge === "complete" ? "✓" : badge === "recovering" ? "↻" : "◐";
  return h("a", { class: "badge", href, title: text, "data-focus": "completeness", "data-tone": badge === "complete" ? "good" : "warn" },
    h("span", { "aria-hidden": "true" }, sign), badge);
}
