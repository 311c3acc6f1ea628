// What of what was sent is here: the sentence of the report, each gap with its cause, each writer.
import { TrialState } from "#gen/model_pb";
import type { Writer } from "#gen/query_pb";
import { noSampleWords } from "../absence_words";
import { stateBadge, statesMark } from "../badges";
import { printable } from "../core/printable";
import { agoText, timeText } from "../core/time_text";
import { countText } from "../core/units";
import type { TrialView } from "../core/view_state";
import { bdi, h, scroller, type Part } from "../dom";
import { patch } from "../patch";
import { stateBox } from "../state_box";
import { isRunning, type TrialInfo, type TrialTab } from "../trial_info";
import { causeWords, completenessWords, writerHint, writerHints } from "../words";

const rowsMax = 500;

function utc(timeUs: bigint): string {
  return timeText(Number(timeUs)).replace(" UTC", "");
}

/** Of columns by their places: which are numbers, which are times, and which names the row. */
interface Kinds {
  readonly numbers: readonly number[];
  readonly times: readonly number[];
  readonly lead: number;
}

/** "2 (node-2)" of a machine's sampler, "3 (rank 1)". */
function writerWords(writerNo: number, writers: readonly Writer[]): Part {
  const of = writers.find((one) => one.writerNo === writerNo);
  if (!of || (!of.isSampler && of.rank < 0)) return String(writerNo);
  return [`${writerNo} (`, of.isSampler ? bdi(printable(of.agentId)) : `rank ${of.rank}`, ")"];
}

function table(caption: string, heads: readonly string[], rows: readonly Part[][], { numbers, times, lead }: Kinds): HTMLElement {
  const kind = (at: number): string => (numbers.includes(at) ? "number" : times.includes(at) ? "nowrap" : at === lead ? "lead" : "");
  return scroller(caption, h("table", { class: "cards" },
    h("caption", { class: "visually-hidden" }, caption),
    h("thead", {}, h("tr", {}, heads.map((head, at) => h("th", { scope: "col", class: kind(at) }, head)))),
    h("tbody", {}, rows.slice(0, rowsMax).map((row) => h("tr", {}, row.map((cell, at) => h("td", { class: kind(at), "data-label": heads[at] }, h("span", {}, cell))))))));
}

export class CompletenessTab implements TrialTab {
  readonly element = h("section", { class: "through", "aria-label": "Completeness" });

  constructor() {
  }

  update(_view: TrialView, info: TrialInfo): void {
    const held = info.completeness;
    if (!held) {
      patch(this.element, stateBox("empty", "Nothing is known", "The master told nothing of this trial's completeness."));
      return;
    }
    const now = Number(held.answeredTimeUs);
    patch(this.element,
      h("section", { class: "panel" }, h("h2", {}, "What is here of what was sent"), h("p", { "data-completeness": "" }, completenessWords(held).text),
        h("p", { class: "muted" }, held.newestSampleTimeUs > 0n ? `Newest sample: ${timeText(Number(held.newestSampleTimeUs))}${isRunning(info) ? `, ${agoText(Number(held.newestSampleTimeUs), now)}` : ""}.`
          : noSampleWords(info.trial.state))),
      held.gaps.length > 0 && h("section", { class: "panel" }, h("h2", {}, `Gaps (${countText(held.gaps.length)}${held.gapsTruncated ? " and more" : ""})`),
        table("Gaps", ["Cause", "Samples", "Group", "Writer", "From (UTC)", "To (UTC)", "Reason"], held.gaps.map((gap) => [
          causeWords(gap.cause), gap.sampleCount > 0n ? countText(gap.sampleCount) : "unknown", bdi(gap.metricGroup === "" ? "all" : printable(gap.metricGroup)),
          gap.writerNo === 0 ? "all" : writerWords(gap.writerNo, info.writers), utc(gap.firstTimeUs), utc(gap.lastTimeUs), bdi(printable(gap.reason)),
        ]), { numbers: [1], times: [4, 5], lead: 0 }),
        held.gaps.length > rowsMax && h("p", { class: "muted" }, `The first ${rowsMax} are listed; 'stepwell report' counts all of them.`)),
      h("section", { class: "panel" }, h("div", { class: "tools" }, h("h2", {}, `Writers (${countText(info.writers.length)})`), info.writers.length > 0 && statesMark(writerHints())),
        info.writers.length === 0 ? h("p", { class: "muted" }, isRunning(info) ? "None has opened yet." : "None has opened.")
          : table("Writers", ["No.", "What", "State", "Attempt", "Agent", "Chunks committed", "Last heard of (UTC)"], info.writers.map((writer) => this.row(writer)), { numbers: [0, 3, 5], times: [6], lead: 1 }),
        info.writers.length > rowsMax && h("p", { class: "muted" }, `The first ${rowsMax} are listed.`)));
  }

  destroy(): void {
    this.element.replaceChildren();
  }

  private row(writer: Writer): Part[] {
    const what = writer.isSampler ? ["sampler of ", bdi(printable(writer.agentId))] : writer.rank < 0 ? "process without rank" : `rank ${writer.rank}`;
    const isOpen = writer.state === TrialState.RUNNING || writer.state === TrialState.LOST;
    return [String(writer.writerNo), what, stateBadge(writer.state, "", writerHint(writer.state)), String(writer.attempt), bdi(printable(writer.agentId)),
      countText(writer.committedSequence), writer.seenTimeUs > 0n ? utc(writer.seenTimeUs) : isOpen ? "not since the master started" : "–"];
  }
}
