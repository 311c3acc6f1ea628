// State and completeness as words with a sign: colour alone says nothing.
import { TrialState, type Completeness } from "#gen/model_pb";
import { h } from "./dom";
import { completenessWords, stateHint, stateWord } from "./words";

export function stateBadge(state: TrialState): HTMLElement {
  const tone = state === TrialState.RUNNING ? "live" : state === TrialState.COMPLETED ? "good"
    : state === TrialState.FAILED ? "bad" : "warn";
  const sign = state === TrialState.RUNNING ? h("span", { class: "dot" })
    : state === TrialState.COMPLETED ? "✓" : state === TrialState.FAILED ? "✕" : "?";
  return h("span", { class: "badge", "data-tone": tone, title: stateHint(state) },
    h("span", { "aria-hidden": "true", class: state === TrialState.RUNNING ? "" : "sign" }, sign), stateWord(state));
}

export function completenessBadge(held: Completeness, href: string): HTMLElement {
  const { badge, text } = completenessWords(held);
  const sign = badge === "complete" ? "✓" : badge === "recovering" ? "↻" : "◐";
  return h("a", { class: "badge", href, title: text, "data-focus": "completeness", "data-tone": badge === "complete" ? "good" : "warn" },
    h("span", { "aria-hidden": "true" }, sign), badge);
}
