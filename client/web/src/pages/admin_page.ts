// The master itself: what it is and does, what bounds what is kept, and what a changed bound would remove.
import type { GetStatusResponse } from "#gen/admin_pb";
import type { Caps, CapsPlace, EffectiveCap, GetCapsResponse, PreviewCapsResponse } from "#gen/caps_pb";
import { admin, ask } from "../api";
import { capHints, capText, parseCap, type CapKind } from "../core/cap_units";
import { printable } from "../core/printable";
import { timeText } from "../core/time_text";
import { countText, plural, valueText } from "../core/units";
import type { View } from "../core/view_state";
import { bdi, fill, h, scroller, type Part } from "../dom";
import type { Failure } from "../failure";
import { loop, type Loop, type Outcome } from "../loop";
import type { Page } from "../page";
import { failureBox, loadingBox, stateBox } from "../state_box";

const refreshMs = 2000;

type CapField = "rawAgeSeconds" | "rollupAgeSeconds" | "trialBytes" | "seriesSamples" | "profilingWindowSeconds";

interface CapWords {
  readonly field: CapField;
  readonly wire: string;
  readonly name: string;
  readonly kind: CapKind;
  readonly help: string;
}

const caps: readonly CapWords[] = [
  { field: "rawAgeSeconds", wire: "raw_age_seconds", name: "Age of samples", kind: "age", help: "How long samples live after the day on which they came. Counts for what is merged later." },
  { field: "rollupAgeSeconds", wire: "rollup_age_seconds", name: "Age of rollups", kind: "age", help: "The same for rollups; not less than that of samples." },
  { field: "trialBytes", wire: "trial_bytes", name: "Bytes of a trial", kind: "bytes", help: "Beyond it a trial's oldest samples go." },
  { field: "seriesSamples", wire: "series_samples", name: "Samples of a series", kind: "samples", help: "Beyond it a series' oldest samples go; rollups stay." },
  { field: "profilingWindowSeconds", wire: "profiling_window_seconds", name: "Profiling window", kind: "age", help: "From a trial's start on; what is taken later is not recorded." },
];

function placeText(place: CapsPlace | undefined): string {
  if (!place) return "default";
  const owner = place.owner.case === "project" ? `project ${printable(place.owner.value)}`
    : place.owner.case === "trial" ? `trial ${place.owner.value.trialId || printable(place.owner.value.externalId)}` : "all trials";
  return place.metricGroup === "" ? owner : `${owner}, group ${printable(place.metricGroup)}`;
}

export class AdminPage implements Page {
  readonly title = "Master";
  readonly element = h("div", { class: "through" });
  private readonly status = h("div", {}, loadingBox("the master's status"));
  private readonly capsPlace = h("div", {}, loadingBox("the caps"));
  private readonly preview = h("div", { "aria-live": "polite" });
  private readonly fields = new Map<CapField, HTMLInputElement>();
  private readonly loop: Loop;
  private readonly capsLoop: Loop;
  private before: { answer: GetStatusResponse; at: number } | null = null;
  private set: Caps | undefined;
  private gone = new AbortController();

  constructor() {
    fill(this.element,
      h("section", { class: "panel" }, h("h1", {}, "Master"), this.status),
      h("section", { class: "panel" }, h("h2", {}, "Caps of all trials"), this.capsPlace, this.preview));
    this.loop = loop(() => refreshMs, (signal) => this.lookStatus(signal), (failure) => this.showStatusFailure(failure));
    this.capsLoop = loop(() => refreshMs, (signal) => this.lookCaps(signal), (failure) => this.showCapsFailure(failure));
  }

  update(view: View): boolean {
    return view.page === "admin";
  }

  destroy(): void {
    this.loop.stop();
    this.capsLoop.stop();
    this.gone.abort();
  }

  private async lookStatus(signal: AbortSignal): Promise<Outcome> {
    const answer = await ask((options) => admin.getStatus({}, options), signal);
    if (!answer) return "fine";
    if (!answer.ok) return this.showStatusFailure(answer.failure);
    this.showStatus(answer.value);
    return "fine";
  }

  private showStatusFailure(failure: Failure): Outcome {
    if (failure.kind !== "lost" || !this.before) fill(this.status, failureBox(failure, () => this.loop.now()));
    return failure.passing ? "failed" : "stop";
  }

  private showStatus(status: GetStatusResponse): void {
    const now = performance.now();
    const before = this.before;
    const rate = before && now > before.at && status.samplesCommitted >= before.answer.samplesCommitted
      ? `${countText(Math.round((Number(status.samplesCommitted - before.answer.samplesCommitted) * 1000) / (now - before.at)))} /s` : "…";
    this.before = { answer: status, at: now };
    const facts: readonly (readonly [string, Part])[] = [
      ["Role", status.role], ["Database", status.databaseUp ? "up" : h("span", { class: "worse" }, `down: ${printable(status.databaseError)}`)],
      ["Version", status.version], ["Owner epoch", String(status.epoch)], ["Id", bdi(printable(status.masterId))],
      ["Clients connected", countText(status.streamsOpen)], ["Writers open", countText(status.writersOpen)],
      ["Samples committed", countText(status.samplesCommitted)], ["Samples now", rate], ["Chunks committed", countText(status.chunksCommitted)],
      ["Commit groups", countText(status.commitGroups)], ["Not yet folded", valueText(Number(status.unfoldedBytes), "bytes")],
      ["Chunks repeated", countText(status.chunksRepeated)], ["Chunks rejected", countText(status.chunksRejected)],
      ["Commits in doubt", countText(status.commitsInDoubt)], ["Samples replayed", countText(status.samplesReplayed)], ["Sequences lost", countText(status.sequencesLost)],
    ];
    fill(this.status,
      !status.databaseUp && h("p", { class: "note" }, "The database does not answer: agents keep what they have and send it later; this page shows what was asked before."),
      h("dl", { class: "facts" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))));
  }

  private async lookCaps(signal: AbortSignal): Promise<Outcome> {
    const answer = await ask((options) => admin.getCaps({ place: {} }, options), signal);
    if (!answer) return "fine";
    if (!answer.ok) return this.showCapsFailure(answer.failure);
    this.showCaps(answer.value);
    return "stop"; // a form that a person may be typing into
  }

  private showCapsFailure(failure: Failure): Outcome {
    fill(this.capsPlace, failureBox(failure, () => this.capsLoop.now()));
    return failure.passing ? "failed" : "stop";
  }

  private showCaps(answer: GetCapsResponse): void {
    this.set = answer.set;
    const holds = new Map(answer.effective.map((one) => [one.field, one]));
    const rows = caps.map((cap) => this.capRow(cap, holds.get(cap.wire), answer.set));
    const others = answer.places.filter((one) => one.place && (one.place.owner.case !== undefined || one.place.metricGroup !== ""));
    fill(this.capsPlace,
      h("p", { class: "muted" }, "Bounds that hold where no project, trial or metric group says otherwise. An empty field is not set here. What a cap removes is told as a gap."),
      h("form", { onsubmit: (event: SubmitEvent) => { event.preventDefault(); void this.askPreview(); } },
        scroller("Caps", h("table", { class: "cards" },
          h("thead", {}, h("tr", {}, ["Cap", "Holds", "Decided by", "Set for all trials"].map((head) => h("th", { scope: "col" }, head)))),
          h("tbody", {}, rows))),
        h("div", { class: "tools" }, h("button", { type: "submit", class: "primary" }, "Show what it would remove"),
          h("button", { type: "button", onclick: () => this.capsLoop.now() }, "Take back"))),
      others.length > 0 && h("details", {}, h("summary", {}, `Set elsewhere (${others.length})`),
        h("ul", {}, others.map((one) => h("li", {}, bdi(placeText(one.place)), ": ", caps.flatMap((cap) => {
          const value = one.caps?.[cap.field];
          return value === undefined ? [] : [`${cap.name.toLowerCase()} ${capText(cap.kind, Number(value))}`];
        }).join(", "))))));
    fill(this.preview);
  }

  private capRow(cap: CapWords, holds: EffectiveCap | undefined, set: Caps | undefined): HTMLElement {
    const value = set?.[cap.field];
    const id = `cap-${cap.field}`;
    const input = h("input", { type: "text", id, value: value === undefined ? "" : capText(cap.kind, Number(value)), placeholder: "not set", "aria-describedby": `${id}-help`, autocomplete: "off", spellcheck: "false" });
    this.fields.set(cap.field, input);
    return h("tr", {},
      h("td", { class: "name", "data-label": "Cap" }, h("label", { for: id }, cap.name), h("br"), h("span", { class: "muted", id: `${id}-help` }, `${cap.help} (${capHints[cap.kind]})`)),
      h("td", { "data-label": "Holds" }, holds ? capText(cap.kind, Number(holds.value)) : "none"),
      h("td", { "data-label": "Decided by" }, placeText(holds?.place)),
      h("td", { "data-label": "Set here" }, input));
  }

  /** What the form says; null where a field cannot be read (it is marked). */
  private wanted(): { caps: Partial<Record<CapField, bigint>>; clear: string[] } | null {
    const wanted: Partial<Record<CapField, bigint>> = {};
    const clear: string[] = [];
    let bad: HTMLInputElement | null = null;
    for (const cap of caps) {
      const input = this.fields.get(cap.field);
      const text = input?.value.trim() ?? "";
      const before = this.set?.[cap.field];
      const value = text === "" ? null : parseCap(cap.kind, text);
      input?.setAttribute("aria-invalid", String(text !== "" && value === null));
      if (text !== "" && value === null) bad ??= input ?? null;
      else if (text === "" && before !== undefined) clear.push(cap.wire);
      else if (value !== null && (before === undefined || Number(before) !== value)) wanted[cap.field] = BigInt(value);
    }
    if (!bad) return { caps: wanted, clear };
    bad.focus();
    fill(this.preview, stateBox("failed", "One of the caps cannot be read", "Write it as the line below its name says."));
    return null;
  }

  private async askPreview(): Promise<void> {
    const wanted = this.wanted();
    if (!wanted) return;
    if (Object.keys(wanted.caps).length === 0 && wanted.clear.length === 0) {
      fill(this.preview, stateBox("empty", "Nothing is changed", "The fields say what is set already."));
      return;
    }
    fill(this.preview, loadingBox("what it would remove"));
    const answer = await ask((options) => admin.previewCaps({ place: {}, caps: wanted.caps, forMergedRows: true }, options), this.gone.signal);
    if (!answer) return;
    if (!answer.ok) {
      fill(this.preview, failureBox(answer.failure));
      return;
    }
    this.showPreview(answer.value, () => void this.setCaps(wanted));
  }

  private showPreview(answer: PreviewCapsResponse, set: () => void): void {
    const goes = `${plural(answer.sampleCount, "sample")} (${valueText(Number(answer.rawBytes), "bytes")}) and ${valueText(Number(answer.rollupBytes), "bytes")} of rollups`;
    fill(this.preview, stateBox("not enabled", answer.sampleCount > 0n || answer.rollupBytes > 0n ? `It would remove ${goes}` : "It would remove nothing that is stored now",
      "Ages count for what is merged from then on; this shows what they would remove had they held before. The master sweeps once a minute; what is removed cannot be had back.",
      h("button", { type: "button", class: "primary", onclick: set }, "Set these caps")),
    answer.removals.length > 0 && h("ul", {}, answer.removals.slice(0, 50).map((one) =>
      h("li", {}, `trial ${one.trialId}, ${one.field.replace(/_/g, " ")}: ${plural(one.sampleCount, "sample")}, ${timeText(Number(one.firstTimeUs))} to ${timeText(Number(one.lastTimeUs))}`))));
  }

  private async setCaps(wanted: { caps: Partial<Record<CapField, bigint>>; clear: string[] }): Promise<void> {
    const answer = await ask((options) => admin.setCaps({ place: {}, caps: wanted.caps, clear: wanted.clear }, options), this.gone.signal);
    if (!answer) return;
    if (!answer.ok) {
      fill(this.preview, failureBox(answer.failure));
      return;
    }
    this.capsLoop.now();
  }
}
