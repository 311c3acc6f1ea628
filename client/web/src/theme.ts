// Light or dark: as the system has it, until a person says otherwise; kept in this browser.
import type { Theme } from "./core/palette";

const key = "stepwell-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

function kept(): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null; // a browser that keeps nothing
  }
}

export function theme(): Theme {
  const chosen = document.documentElement.dataset["theme"] ?? kept();
  if (chosen === "dark" || chosen === "light") return chosen;
  return system.matches ? "dark" : "light";
}

function show(): void {
  for (const listener of listeners) listener();
}

/** Called once, before anything is drawn. */
export function startTheme(): void {
  const chosen = kept();
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset["theme"] = chosen;
  system.addEventListener("change", show);
}

export function toggleTheme(): void {
  const next = theme() === "dark" ? "light" : "dark";
  document.documentElement.dataset["theme"] = next;
  try {
    localStorage.setItem(key, next);
  } catch {
    // It holds for this page then.
  }
  show();
}

/** Charts are drawn anew. Returns how to stop. */
export function onTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
