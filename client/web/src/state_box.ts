// What stands where data would: which of the ways of not being there it is, and what to do about it.
import { h, type Part } from "./dom";
import { actAdvice, type Act, type Failure } from "./failure";
import { stateMark, type Absence } from "./state_mark";

const alerts: ReadonlySet<Absence> = new Set(["failed", "lost", "unavailable", "not permitted"]);

export function stateBox(absence: Absence, title: string, advice: string, ...actions: Part[]): HTMLElement {
  const role = alerts.has(absence) ? "alert" : "status";
  return h("div", { class: "state-box", role, "data-absence": absence },
    stateMark(absence),
    h("div", {},
      h("p", { class: "state-title" }, title),
      h("p", { class: "state-advice" }, advice),
      actions.length > 0 && h("p", { class: "state-actions" }, actions)));
}

export function loadingBox(what: string): HTMLElement {
  return stateBox("loading", `Loading ${what} …`, "The master was asked.");
}

/** Beside what stays while a question fails that may be answered later; of a lost connection the bar on top says it. */
export function asOfBefore(failure: Failure): HTMLElement | null {
  if (failure.kind === "lost") return null;
  return h("p", { class: "note", role: "status", "data-trouble": failure.kind }, `${failure.title}: what you see is as of before. ${failure.advice} `,
    failure.detail !== "" && h("span", { class: "detail" }, failure.detail));
}

/** Of a question that is asked again and again, or of an `act`; `again`: whoever looks may want it at once. */
export function failureBox(failure: Failure, again?: () => void, act?: Act): HTMLElement {
  const absence: Absence = failure.kind === "lost" || failure.kind === "unavailable" ? failure.kind
    : failure.kind === "refused" || failure.kind === "signedOut" ? "not permitted" : "failed";
  return stateBox(absence, failure.title, act ? actAdvice(failure.kind, act) : failure.advice,
    failure.detail !== "" && h("span", { class: "detail" }, failure.detail),
    again && h("button", { type: "button", "data-focus": act && "again", onclick: again }, "Try again"));
}
