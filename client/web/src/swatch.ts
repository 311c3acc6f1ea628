// The look of a line, beside a name: its colour, dashed as it is.
import type { LineLook } from "./core/palette";
import { h } from "./dom";

/** `isFilled`: of a layer rather than of a line. */
export function swatch(look: LineLook, isFilled = false): HTMLElement {
  const element = h("span", { class: isFilled ? "swatch filled" : "swatch", "aria-hidden": "true" });
  element.style.setProperty("--look", look.color);
  element.style.borderTopStyle = look.dash.length === 0 ? "solid" : look.dash.length > 2 || (look.dash[0] ?? 0) < 4 ? "dotted" : "dashed";
  return element;
}
