// The mark of each way of not being there, told apart by its shape: drawn, for of signs in a font those that it lacks are one
// empty box.
import { svg } from "./dom";

export type Absence = "loading" | "empty" | "no data yet" | "not enabled" | "failed" | "lost" | "unavailable" | "not permitted";

/** Lines in a square of 24. */
export const strokes: Readonly<Record<Absence, string>> = {
  /** A ring that is not closed. */
  "loading": "M12 3a9 9 0 1 0 9 9",
  /** The empty set. */
  "empty": "M12 5a7 7 0 1 0 0 14a7 7 0 1 0 0-14M4 20L20 4",
  /** Three dots. */
  "no data yet": "M4 12a.9.9 0 1 0 1.8 0a.9.9 0 1 0-1.8 0M11.1 12a.9.9 0 1 0 1.8 0a.9.9 0 1 0-1.8 0M18.2 12a.9.9 0 1 0 1.8 0a.9.9 0 1 0-1.8 0",
  /** A switch. */
  "not enabled": "M12 3v9M7 6.2a8 8 0 1 0 10 0",
  /** A triangle with an exclamation mark. */
  "failed": "M12 3L22 20.5H2ZM12 9.5v5M12 17.5v.1",
  /** A bolt. */
  "lost": "M13 2L5 14h6l-1 8l8-12h-6Z",
  /** An hourglass. */
  "unavailable": "M5 3h14M5 21h14M7 3v4l10 10v4M17 3v4L7 17v4",
  /** A padlock. */
  "not permitted": "M5 11h14v10H5ZM8 11V7a4 4 0 0 1 8 0v4M12 15v2.5",
};

export function stateMark(absence: Absence): SVGElement {
  return svg("svg", { class: "state-sign", viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: strokes[absence] }));
}
