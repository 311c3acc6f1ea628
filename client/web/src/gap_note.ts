// Declared gaps beside a chart over batches: those of which nobody knows between which batches they lie.
import { gapCauses, gapsOfGroup, gapsWithoutPlace, gapText, type KnownGap } from "./core/gap_bands";
import { formatView, trialView, type TrialView } from "./core/view_state";
import { bdi, h } from "./dom";

/** Whose gaps they are. */
export interface GapsOf {
  /** "" = of the trial that the page is of. */
  readonly name: string;
  readonly trial: string;
  readonly gaps: readonly KnownGap[];
}

const textsMax = 5;

/** Of `metricGroup` or of all groups; null = there are none without a place. */
export function gapNote(sides: readonly GapsOf[], metricGroup: string): HTMLElement | null {
  const told = sides.map((side) => ({ ...side, gaps: gapsWithoutPlace(gapsOfGroup(side.gaps, metricGroup), "batch") })).filter(({ gaps }) => gaps.length > 0);
  if (told.length === 0) return null;
  const to = (trial: string): TrialView => ({ ...trialView(trial), tab: "completeness" });
  const texts = told.flatMap(({ name, gaps }) => gaps.map((gap) => (name === "" ? "" : `${name}: `) + gapText(gap)));
  const more = texts.length > textsMax ? [`and ${texts.length - textsMax} more`] : [];
  return h("p", { class: "muted", "data-gaps": "" },
    "Declared gaps without a place among the batches: ",
    told.map(({ name, trial, gaps }, at) => [at > 0 && "; ", name !== "" && [bdi(name), ": "], `${gapCauses(gaps)} (`,
      h("a", { href: formatView(to(trial)), "data-focus": `gaps-${trial}` }, "Completeness"), ")"]), ".",
    [...texts.slice(0, textsMax), ...more].map((text) => h("span", { class: "gap-cause" }, text)));
}
