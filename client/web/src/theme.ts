// Light or dark: as the system has it, until a person says otherwise.
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
