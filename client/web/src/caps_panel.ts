// What bounds what is kept: the caps of a place (all trials, a project, a trial, a metric group of these),
// what a changed one would remove, and then its setting.
import type { Caps, EffectiveCap, GetCapsResponse, PreviewCapsResponse } from "#gen/caps_pb";
import { admin, ask } from "./api";
import { capsPreview } from "./caps_preview";
import { capHints, capText, parseCap, type CapKind } from "./core/cap_units";
import { allTrials, isAllTrials, isSamePlace, placeAt, placeOf, placeText, type Owner, type Place } from "./core/cap_place";
import { bdi, fill, h, keepFocus, scroller } from "./dom";
import type { Failure } from "./failure";
import { loop, type Loop, type Outcome } from "./loop";
import { failureBox, loadingBox, stateBox } from "./state_box";

const refreshMs = 2000;

type CapField = "rawAgeSeconds" | "rollupAgeSeconds" | "trialBytes" | "seriesSamples" | "profilingWindowSeconds"
  | "traceBytes" | "trialTraceBytes" | "traceAgeSeconds";

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
  { field: "traceBytes", wire: "trace_bytes", name: "Bytes of a trace", kind: "bytes", help: "A larger one is refused." },
  { field: "trialTraceBytes", wire: "trial_trace_bytes", name: "Bytes of a trial's traces", kind: "bytes", help: "One more is refused; where it was lowered, the oldest go." },
  { field: "traceAgeSeconds", wire: "trace_age_seconds", name: "Age of traces", kind: "age", help: "Traces live so long after their upload." },
];

/** Of a trial as a whole, not of its groups. */
const ofTrial: ReadonlySet<CapField> = new Set(["profilingWindowSeconds", "traceBytes", "trialTraceBytes", "traceAgeSeconds"]);

type CapValues = Partial<Record<CapField, bigint>>;

/** What a person wants of a place: what to set, and which (by their wire names) are not to be set there any more. */
interface Wanted {
  readonly caps: CapValues;
  readonly clear: readonly string[];
}

/** "age of samples 30d", one of each that has a value. */
function setWords(values: Partial<Pick<Caps, CapField>> | undefined): string[] {
  return caps.flatMap((cap) => {
    const value = values?.[cap.field];
    return value === undefined ? [] : [`${cap.name.toLowerCase()} ${capText(cap.kind, Number(value))}`];
  });
}

function wantedWords(wanted: Wanted): string {
  return [...setWords(wanted.caps), ...caps.filter((cap) => wanted.clear.includes(cap.wire)).map((cap) => `${cap.name.toLowerCase()} no longer set here`)].join(", ");
}

const ownerNames: Readonly<Record<Owner, string>> = { all: "all trials", project: "the project", trial: "the trial (number or name)" };

export class CapsPanel {
  private readonly head = h("h2", { tabindex: -1 });
  private readonly pick = h("div", {});
  /** What was to be set elsewhere, and failed when nobody was there any more. */
  private readonly left = h("div", {});
  private readonly capsPlace = h("div", {}, loadingBox("the caps"));
  private readonly preview = h("div", { "aria-live": "polite" });
  readonly element = h("section", { class: "panel", "aria-label": "Caps" }, this.head, this.pick, this.left, this.capsPlace, this.preview);
  private readonly fields = new Map<CapField, HTMLInputElement>();
  private readonly loop: Loop;
  /** Ends what was asked about the place that is shown: the answer is of no other. */
  private ofPlace = new AbortController();
  private set: Caps | undefined;
  /** Until caps that are being set are answered for: what is asked before that may be as of before. */
  private setting: Promise<unknown> = Promise.resolve();
  private readonly takeBack = h("button", { type: "button", "data-focus": "take-back", onclick: () => (this.dropPreview(), this.loop.now()) }, "Take back");

  /** `onPlace`: another place's caps are wanted; the address has them, which comes back by `show`. */
  constructor(private place: Place, private readonly onPlace: (place: Place) => void) {
    this.showPick();
    this.loop = loop(() => refreshMs, (signal) => this.lookCaps(signal), (failure) => this.showCapsFailure(failure));
  }

  destroy(): void {
    this.loop.stop();
    this.ofPlace.abort();
  }

  private begin(): void {
    this.ofPlace.abort();
    this.ofPlace = new AbortController();
  }

  /** What was previewed is not what is wanted any more: none of it can be set, nor comes late. */
  private dropPreview(): void {
    this.begin();
    fill(this.preview);
  }

  /** While caps are being set nothing else can be typed: it would be lost when the answer is there. Nor is it to be taken back any more. */
  private lock(locked: boolean): void {
    this.takeBack.disabled = locked;
    for (const input of this.fields.values()) input.readOnly = locked;
  }

  private get isLocked(): boolean {
    return [...this.fields.values()].some((input) => input.readOnly);
  }

  /** The master takes this browser's token no more, as another question was told. */
  deny(failure: Failure): void {
    this.showCapsFailure(failure);
  }

  /** As the address has it: what is typed into the form of a place stays, as long as that is the place. */
  show(place: Place): void {
    if (!isSamePlace(place, this.place)) this.turn(place);
  }

  private goTo(place: Place): void {
    if (isSamePlace(place, this.place)) this.turn(place);
    else this.onPlace(place);
  }

  private turn(place: Place): void {
    this.place = place;
    this.keepFocus(() => {
      this.showPick();
      this.dropPreview();
      fill(this.capsPlace, loadingBox("the caps"));
    });
    this.loop.now();
  }

  /** While `change` puts something else into the panel: who was at what is gone is at its heading. */
  private keepFocus(change: () => void): void {
    keepFocus(this.element, change, () => this.head);
  }

  /** Whose caps are shown, and the form that chooses others'. */
  private showPick(): void {
    const place = this.place;
    fill(this.head, "Caps of ", bdi(placeText(place)));
    const name = h("input", { type: "text", id: "place-name", value: place.owner === "all" ? "" : place.name, autocomplete: "off", spellcheck: "false" });
    const group = h("input", { type: "text", id: "place-group", value: place.metricGroup, placeholder: "all", autocomplete: "off", spellcheck: "false" });
    const owner = h("select", { id: "place-owner", onchange: () => { name.disabled = owner.value === "all"; } },
      (Object.keys(ownerNames) as Owner[]).map((one) => h("option", { value: one }, ownerNames[one])));
    owner.value = place.owner;
    name.disabled = place.owner === "all";
    fill(this.pick, h("form", { class: "tools spaced place", onsubmit: (event: SubmitEvent) => {
      event.preventDefault();
      if (owner.value !== "all" && name.value.trim() === "") name.focus();
      else {
        const typed = { owner: owner.value as Owner, name: owner.value === "all" ? "" : name.value.trim(), metricGroup: group.value.trim() };
        // The form has no project: as long as the trial is the one that is shown, its is meant.
        const isShown = typed.owner === place.owner && typed.name === place.name && place.project !== undefined;
        this.goTo(isShown ? { ...typed, project: place.project } : typed);
      }
    } },
    h("label", {}, "Of", owner), h("label", {}, "named", name),
    h("label", {}, "metric group", group), h("button", { type: "submit", "data-focus": "show-caps" }, "Show its caps"),
    !isAllTrials(place) && h("button", { type: "button", "data-focus": "all-trials", onclick: () => this.goTo(allTrials) }, "All trials")));
  }

  private async lookCaps(signal: AbortSignal): Promise<Outcome> {
    await this.setting;
    const answer = await ask((options) => admin.getCaps({ place: placeOf(this.place) }, options), signal);
    if (!answer) return "fine";
    if (!answer.ok) return this.showCapsFailure(answer.failure);
    this.keepFocus(() => this.showCaps(answer.value));
    return "stop"; // a form that a person may be typing into
  }

  private showCapsFailure(failure: Failure): Outcome {
    this.keepFocus(() => {
      if (failure.kind === "signedOut") fill(this.left);
      this.dropPreview();
      this.fields.clear();
      fill(this.capsPlace, failureBox(failure, () => this.loop.now()));
    });
    return failure.passing ? "failed" : "stop";
  }

  private showCaps(answer: GetCapsResponse): void {
    this.set = answer.set;
    const holds = new Map(answer.effective.map((one) => [one.field, one]));
    const ours = caps.filter((cap) => this.place.metricGroup === "" || !ofTrial.has(cap.field));
    this.fields.clear();
    const rows = ours.map((cap) => this.capRow(cap, holds.get(cap.wire), answer.set));
    const here = placeText(this.place);
    const others = answer.places.map((one) => ({ ...one, at: placeAt(one.place) })).filter((one) => placeText(one.at) !== here);
    fill(this.capsPlace,
      h("p", { class: "muted" }, "The narrowest place that sets a cap decides it: all trials, a project, a trial, a metric group. An empty field is not set here. What a cap removes is told as a gap."),
      h("form", { oninput: () => this.dropPreview(), onsubmit: (event: SubmitEvent) => { event.preventDefault(); void this.askPreview(); } },
        scroller("Caps", h("table", { class: "cards" },
          h("thead", {}, h("tr", {}, ["Cap", "Holds", "Decided by", "Set here"].map((head) => h("th", { scope: "col" }, head)))),
          h("tbody", {}, rows))),
        h("div", { class: "tools" }, h("button", { type: "submit", class: "primary", "data-focus": "preview" }, "Show what it would remove"),
          this.takeBack)),
      others.length > 0 && h("details", {}, h("summary", {}, `Set elsewhere (${others.length})`),
        h("ul", { class: "places" }, others.map((one) => h("li", {}, h("button", { type: "button", onclick: () => this.goTo(one.at) }, bdi(placeText(one.at))), ": ", setWords(one.caps).join(", "))))));
    fill(this.preview);
    this.lock(false);
  }

  private capRow(cap: CapWords, holds: EffectiveCap | undefined, set: Caps | undefined): HTMLElement {
    const value = set?.[cap.field];
    const id = `cap-${cap.field}`;
    const input = h("input", { type: "text", id, "data-focus": id, value: value === undefined ? "" : capText(cap.kind, Number(value)), placeholder: "not set", "aria-describedby": `${id}-help`, autocomplete: "off", spellcheck: "false" });
    this.fields.set(cap.field, input);
    return h("tr", {},
      h("td", { class: "name", "data-label": "Cap" }, h("label", { for: id }, cap.name), h("br"), h("span", { class: "muted", id: `${id}-help` }, `${cap.help} (${capHints[cap.kind]})`)),
      h("td", { "data-label": "Holds" }, holds ? capText(cap.kind, Number(holds.value)) : "none"),
      h("td", { "data-label": "Decided by" }, holds?.place ? placeText(placeAt(holds.place)) : "default"),
      h("td", { "data-label": "Set here" }, input));
  }

  /** What the form says; null where a field cannot be read (it is marked). */
  private wanted(): Wanted | null {
    const wanted: CapValues = {};
    const clear: string[] = [];
    let bad: HTMLInputElement | null = null;
    for (const cap of caps) {
      const input = this.fields.get(cap.field);
      if (!input) continue;
      const text = input.value.trim();
      const before = this.set?.[cap.field];
      const value = text === "" ? null : parseCap(cap.kind, text);
      input.setAttribute("aria-invalid", String(text !== "" && value === null));
      if (text !== "" && value === null) bad ??= input;
      else if (text === "" && before !== undefined) clear.push(cap.wire);
      else if (value !== null && (before === undefined || Number(before) !== value)) wanted[cap.field] = BigInt(value);
    }
    if (!bad) return { caps: wanted, clear };
    bad.focus();
    fill(this.preview, stateBox("failed", "One of the caps cannot be read", "Write it as the line below its name says."));
    return null;
  }

  private async askPreview(): Promise<void> {
    if (this.isLocked) return;
    const wanted = this.wanted();
    if (!wanted) return;
    if (Object.keys(wanted.caps).length === 0 && wanted.clear.length === 0) {
      fill(this.preview, stateBox("empty", "Nothing is changed", "The fields say what is set already."));
      return;
    }
    this.keepFocus(() => fill(this.preview, loadingBox("what it would remove")));
    this.begin();
    const { place, ofPlace } = this;
    const answer = await ask((options) => admin.previewCaps({ place: placeOf(place), caps: wanted.caps, clear: [...wanted.clear], forMergedRows: true }, options), ofPlace.signal);
    if (!answer || ofPlace.signal.aborted) return;
    if (!answer.ok) {
      if (answer.failure.kind === "signedOut") return this.deny(answer.failure);
      this.keepFocus(() => fill(this.preview, failureBox(answer.failure, () => void this.askPreview(), "reads")));
      return;
    }
    // Once they are set, who set them by keys is back in the first field that they changed.
    const changed = caps.find((cap) => wanted.caps[cap.field] !== undefined || wanted.clear.includes(cap.wire));
    this.showPreview(answer.value, wanted, `cap-${changed?.field ?? ""}`, () => void this.setCaps(place, wanted));
  }

  private showPreview(answer: PreviewCapsResponse, wanted: Wanted, focus: string, set: () => void): void {
    const button = h("button", { type: "button", class: "primary", "data-focus": focus, onclick: set }, "Set these caps");
    const capName = (field: string): string => caps.find((cap) => cap.wire === field)?.name ?? field;
    fill(this.preview, capsPreview({ answer, sets: wantedWords(wanted), capName, button }, this.ofPlace.signal));
  }

  private async setCaps(place: Place, wanted: Wanted): Promise<void> {
    if (this.isLocked) return;
    this.lock(true); // Until the form is made anew.
    const { ofPlace } = this;
    this.forgetLeft(place);
    // Nothing gives it up: whoever looks at another place meanwhile wanted it none the less.
    const asked = ask((options) => admin.setCaps({ place: placeOf(place), caps: wanted.caps, clear: [...wanted.clear] }, options), new AbortController().signal);
    this.setting = asked;
    const answer = await asked;
    if (!answer) return;
    if (!answer.ok) {
      if (answer.failure.kind === "signedOut") return this.deny(answer.failure);
      if (ofPlace.signal.aborted) return this.showLeft(place, wanted, answer.failure);
      this.lock(false);
      this.keepFocus(() => fill(this.preview, failureBox(answer.failure, () => void this.setCaps(place, wanted), "changes")));
      return;
    }
    if (!ofPlace.signal.aborted) this.loop.now();
  }

  /** Above the caps of whichever place is shown then. It is set again where its caps are, behind a look at them. */
  private showLeft(place: Place, wanted: Wanted, failure: Failure): void {
    const of = placeText(place);
    this.left.append(h("div", { class: "note", "data-left": of },
      h("p", {}, "Caps of ", bdi(of), ` that were to be set: ${wantedWords(wanted)}`),
      failureBox(failure, undefined, "changes"),
      h("p", { class: "state-actions" },
        h("button", { type: "button", onclick: () => this.goTo(place) }, "Show its caps"),
        h("button", { type: "button", onclick: () => this.keepFocus(() => this.forgetLeft(place)) }, "Close"))));
  }

  private forgetLeft(place: Place): void {
    const of = placeText(place);
    fill(this.left, [...this.left.children].filter((one) => one.getAttribute("data-left") !== of));
  }
}
