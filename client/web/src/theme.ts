// Light or dark: as the system has it, until a person says otherwise; and what the style sheet has for it.
import type { Theme } from "./core/palette";
import { keepTheme } from "./kept_theme";

const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

/** What was chosen is in the document since before it was painted (first.ts). */
export function theme(): Theme {
  const chosen = document.documentElement.dataset["theme"];
  if (chosen === "dark" || chosen === "light") return chosen;
  return system.matches ? "dark" : "light";
}

const known = new Map<string, string>();

/** A colour of the style sheet. Looked up once for each theme: a browser that is asked for one styles what has changed in the
 *  document first, and charts ask again and again. */
export function css(name: string): string {
  const key = `${theme()} ${name}`;
  const before = known.get(key);
  if (before !== undefined) return before;
  const found = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  if (found !== "") known.set(key, found);
  return found;
}

function show(): void {
  for (const listener of listeners) listener();
}

system.addEventListener("change", show);

export function toggleTheme(): void {
  const next = theme() === "dark" ? "light" : "dark";
  document.documentElement.dataset["theme"] = next;
  keepTheme(next);
  show();
}

/** Charts are drawn anew. Returns how to stop. */
export function onTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
