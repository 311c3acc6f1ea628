// Why nothing is drawn where the cursor is: told below the plot, which it explains. There is room for it before anybody points at a
// gap, for what stands below may not move with the cursor.
import type { GapBand } from "./core/gap_bands";
import { h } from "./dom";

const textsMax = 3;

function words(band: GapBand): string {
  return ` Gap: ${band.texts.slice(0, textsMax).join("; ")}`;
}

/** Of all that may be told: as much room as this takes. */
export function longestWords(bands: readonly GapBand[]): string {
  return bands.map(words).reduce((longest, one) => (one.length > longest.length ? one : longest), "");
}

/** `longest` = "" where there are no gaps; `band` = null where the cursor is on none. */
export function gapWords(longest: string, band: GapBand | null): HTMLElement | null {
  if (longest === "") return null;
  return h("span", { class: "gap-room" },
    h("span", { class: "gap-longest", "aria-hidden": "true" }, longest),
    // Of what is seen alone: it would be read out with each move of the cursor.
    h("span", { class: "gap-rest", "aria-hidden": "true", hidden: band !== null }, "Hatched: declared gaps. The cursor tells the cause."),
    band && h("span", { class: "gap-words" }, words(band)));
}
