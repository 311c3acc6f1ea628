// What a person chose instead of the system's theme, kept in this browser.
import type { Theme } from "./core/palette";

const key = "stepwell-theme";

export function keptTheme(): Theme | null {
  try {
    const kept = localStorage.getItem(key);
    return kept === "dark" || kept === "light" ? kept : null;
  } catch {
    return null; // a browser that keeps nothing
  }
}

export function keepTheme(theme: Theme): void {
  try {
    localStorage.setItem(key, theme);
  } catch {
    // It holds for this page then.
  }
}
