// A button that opens a list of check boxes: agents, GPUs, ranks, metrics. Closed by Escape or a click elsewhere.
import { printable, shortened } from "./core/printable";
import { bdi, fill, h, type Part } from "./dom";

export interface ChoiceOption {
  readonly value: string;
  readonly text: string;
  readonly heading?: string;
}

const optionsMax = 2000;

function summaryText(name: string, options: readonly ChoiceOption[], chosen: readonly string[]): string {
  if (chosen.length === 0) return `${name}: ${options.length === 1 ? shortened(options[0]?.text ?? "", 24) : "all"}`;
  if (chosen.length === 1) return `${name}: ${shortened(options.find((one) => one.value === chosen[0])?.text ?? chosen[0] ?? "", 24)}`;
  return `${name}: ${chosen.length} of ${options.length}`;
}

/** What a list holds is made when it is opened: a trial may have a thousand GPUs, and its tools are made at each zoom. */
const fillers = new WeakMap<HTMLElement, () => void>();

function make(details: HTMLElement): void {
  fillers.get(details)?.();
  fillers.delete(details);
}

/** `chosen` empty = all (or the usual ones). `onChange` hears of the new list. */
export function choice(
  name: string, options: readonly ChoiceOption[], chosen: readonly string[], onChange: (chosen: string[]) => void, allText = "All",
): HTMLElement {
  const marked = new Set(chosen);
  const list = h("div", { class: "choices", role: "group", "aria-label": name });
  const fillList = (): void => {
    const boxes: HTMLElement[] = [];
    let heading = "";
    for (const option of options.slice(0, optionsMax)) {
      if (option.heading !== undefined && option.heading !== heading) {
        heading = option.heading;
        boxes.push(h("span", { class: "heading" }, bdi(printable(heading))));
      }
      const box = h("input", { type: "checkbox", "data-focus": `choice-${name}-${option.value}`, onchange: () => {
        if (box.checked) marked.add(option.value);
        else marked.delete(option.value);
        onChange([...marked]);
      } });
      box.checked = marked.has(option.value);
      boxes.push(h("label", {}, box, bdi(printable(option.text))));
    }
    const all = h("button", { type: "button", "data-focus": `choice-${name}-all`, disabled: chosen.length === 0, onclick: () => onChange([]) }, allText);
    fill(list, all, boxes, options.length > optionsMax && h("span", { class: "muted" }, `The first ${optionsMax} are listed.`));
  };
  const summary = h("summary", { class: "choose", "data-focus": `choice-${name}`, onclick: () => make(details) }, bdi(printable(summaryText(name, options, chosen))));
  const details = h("details", { class: "choice", "data-choice": name, ontoggle: () => make(details) }, summary, list);
  fillers.set(details, fillList);
  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    details.open = false;
    details.querySelector("summary")?.focus();
  });
  return details;
}

/** On a phone `parts` stay out of sight until their button is pressed (style.css); elsewhere they stand there, without a button. */
export function folding(text: string, label: string, isOpen: boolean, onToggle: (isOpen: boolean) => void, ...parts: Part[]): HTMLElement[] {
  const folded = h("span", { class: "folded", id: "folded-tools", "data-open": isOpen }, ...parts);
  const button = h("button", { type: "button", class: "fold", "data-focus": "fold", "aria-label": `${text}. ${label}`, "aria-expanded": String(isOpen), "aria-controls": folded.id, onclick: () => {
    const opens = folded.toggleAttribute("data-open");
    button.setAttribute("aria-expanded", String(opens));
    onToggle(opens);
  } }, text);
  return [button, folded];
}

const keys = new WeakMap<HTMLElement, string>();

/** Puts new tools where old ones were, if `key` is another: what was open stays open, what had the focus has it. */
export function refill(place: HTMLElement, key: string, makeParts: () => readonly (Node | null | false)[]): void {
  if (keys.get(place) === key) return;
  keys.set(place, key);
  const parts = makeParts();
  const open = new Set([...place.querySelectorAll("details[open]")].map((one) => one.getAttribute("data-choice")));
  const scrolled = place.querySelector("details[open] .choices")?.scrollTop ?? 0;
  const focused = place.contains(document.activeElement) ? document.activeElement?.getAttribute("data-focus") : null;
  place.replaceChildren(...parts.filter((part): part is Node => part instanceof Node));
  for (const one of place.querySelectorAll<HTMLDetailsElement>("details")) {
    if (!open.has(one.getAttribute("data-choice"))) continue;
    make(one);
    one.open = true;
    const list = one.querySelector(".choices");
    if (list) list.scrollTop = scrolled;
  }
  if (focused) place.querySelector<HTMLElement>(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
}

/** One listener for all of them: a click elsewhere closes what is open. */
export function closeChoicesOnClick(): void {
  document.addEventListener("click", (event) => {
    for (const one of document.querySelectorAll<HTMLDetailsElement>("details.choice[open]")) {
      if (event.target instanceof Node && event.target.isConnected && !one.contains(event.target)) one.open = false;
    }
  });
}
