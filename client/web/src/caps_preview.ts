// What caps would remove, before they are set: what they set, what of which trial goes, and below that the button that sets them.
import type { PreviewCapsResponse } from "#gen/caps_pb";
import { ask, query } from "./api";
import { moreWords, removalLine, removalsShown } from "./core/cap_removals";
import { plural, valueText } from "./core/units";
import { formatView, trialView } from "./core/view_state";
import { bdi, fill, h, scroller } from "./dom";
import { trialName } from "./words";

/** As many trials as one answer lists: what is removed of older ones is told by their numbers. */
const namedMax = 1000;

export interface CapsPlan {
  readonly answer: PreviewCapsResponse;
  /** What is set, in words. */
  readonly sets: string;
  /** Of a field of Caps. */
  readonly capName: (field: string) => string;
  readonly button: HTMLElement;
}

type Removal = PreviewCapsResponse["removals"][number];

function totalWords({ removals, truncated, ...all }: PreviewCapsResponse): string {
  if (removals.length === 0) return "It would remove nothing that is stored now";
  const traces = removals.reduce((sum, one) => sum + one.traceCount, 0n);
  return `It would remove ${plural(all.sampleCount, "sample")} (${valueText(Number(all.rawBytes), "bytes")}) and ${valueText(Number(all.rollupBytes), "bytes")} of rollups`
    + (traces > 0n ? ` and ${truncated ? "at least " : ""}${plural(traces, "trace")}` : "");
}

/** In a tab of its own: what is typed into the form stays. */
function row(removal: Removal, plan: CapsPlan): HTMLElement {
  const id = String(removal.trialId);
  const { metricGroup, goes, from, to } = removalLine(removal);
  return h("tr", {},
    h("td", { class: "name", "data-label": "Trial" }, h("a", { href: formatView(trialView(id)), target: "_blank", rel: "noopener", "data-trial": id }, `trial ${id}`)),
    h("td", { "data-label": "Metric group" }, bdi(metricGroup)),
    h("td", { "data-label": "Cap" }, plan.capName(removal.field)),
    h("td", { "data-label": "Goes" }, goes),
    h("td", { "data-label": "From", class: "nowrap" }, from),
    h("td", { "data-label": "To", class: "nowrap" }, to));
}

/** `signal`: nobody looks at it any more. */
export function capsPreview(plan: CapsPlan, signal: AbortSignal): HTMLElement {
  const { answer } = plan;
  const { removals, truncated } = answer;
  const body = h("tbody", {});
  const more = h("p", { class: "muted" });
  let names: ReadonlyMap<string, string> = new Map();
  const showNames = (): void => body.querySelectorAll<HTMLElement>("a[data-trial]").forEach((link) => {
    const name = names.get(link.dataset["trial"] ?? "");
    if (name !== undefined) fill(link, bdi(name));
  });
  const show = (count: number): void => {
    fill(body, removals.slice(0, count).map((one) => row(one, plan)));
    const words = moreWords(removals.length, Math.min(count, removals.length), truncated);
    fill(more, words, " ", removals.length > count && h("button", { type: "button", "data-focus": "all-removals", onclick: () => (show(removals.length), body.parentElement?.parentElement?.focus()) }, "Show them"));
    more.hidden = words === "";
    showNames();
  };
  show(removalsShown);
  if (removals.length > 0) {
    void ask((options) => query.listTrials({ pageSize: namedMax }, options), signal).then((list) => {
      // Without names numbers stay: what is asked of a trial says why.
      if (!list?.ok) return;
      names = new Map(list.value.trials.map((trial) => [String(trial.trialId), trialName(trial)]));
      showNames();
    });
  }
  return h("section", { class: "plan", "aria-label": "What these caps would remove" },
    h("p", { class: "state-title", role: "status" }, totalWords(answer)),
    h("p", { class: "muted" }, `It sets: ${plan.sets}. Ages count for what is merged from then on; this shows what they would remove had they held before. The master sweeps once a minute; what is removed cannot be had back.`),
    removals.length > 0 && h("div", { "aria-live": "off" }, scroller("What goes of which trial", h("table", { class: "cards removals" },
      h("thead", {}, h("tr", {}, ["Trial", "Metric group", "Cap", "Goes", "From", "To"].map((head) => h("th", { scope: "col" }, head)))), body)), more),
    h("p", { class: "state-actions" }, plan.button));
}
