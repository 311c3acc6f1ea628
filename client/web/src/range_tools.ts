// The tools that move along an axis: which axis, all or a window that follows, back and forth, nearer and
// farther, pause. They know views, not charts.
import { fit, panned, placeMax, spanMin, zoomed, type AxisKind, type Range } from "./core/range";
import { clockText, isoText, isTellable, timeText } from "./core/time_text";
import { countText, secondsText } from "./core/units";
import type { TrialView } from "./core/view_state";
import { h, hinted, type Part } from "./dom";
import type { Failure } from "./failure";
import type { FollowState } from "./follow";

export interface RangeState {
  readonly view: TrialView;
  /** What is shown now. */
  readonly shown: Range | null;
  /** All there is, as far as known. */
  readonly bounds: Range | null;
  readonly running: boolean;
  /** What is said of a trial that does not run. */
  readonly ended: string;
  /** "stale": the last question failed, and is asked again; "denied": it was not accepted, and is not; null: there is nothing yet that a
   *  stream could tell of. */
  readonly follow: FollowState | "stale" | "denied" | null;
}

/** Of batches nobody knows how many there are before all were asked for: a link may show some of them first. As many as
 *  the contract has numbers for. */
const anywhere: Range = { start: 0, end: placeMax.batch };
/** Beside what stays while a question fails that may be answered later. */
export const staleWords = "as of before: the master does not answer this question now";

export type ChangeView = (change: Partial<TrialView>, how?: "push" | "replace") => void;

const windows: readonly (readonly [us: number, text: string])[] = [
  [60_000_000, "the last minute"], [300_000_000, "the last 5 minutes"], [1_800_000_000, "the last 30 minutes"], [14_400_000_000, "the last 4 hours"],
];
const usualWindowUs = 300_000_000;

/** Of longer ones a clock tells the day, too. */
const clockSpanUs = 12 * 3_600_000_000;

export function rangeWords(range: Range, axis: AxisKind): string {
  if (axis === "batch") return `batches ${countText(Math.floor(range.start))} to ${countText(Math.ceil(range.end) - 1)}`;
  if (!isTellable(range.start) || !isTellable(range.end)) return `${timeText(range.start)} to ${timeText(range.end)}`;
  const span = range.end - range.start;
  const begin = clockText(range.start, Math.min(span, clockSpanUs));
  return `${timeText(range.start).slice(0, 10)} ${begin} to ${clockText(range.end, span)} UTC (${secondsText(span / 1e6)})`;
}

/** Turns what a chart asks for into a change of the view. */
export class RangeMoves {
  constructor(private readonly state: () => RangeState, private readonly change: ChangeView) {}

  to(range: Range): void {
    const { bounds, view } = this.state();
    const wanted = bounds ? fit(range, widened(bounds, range), view.axis) : range;
    this.change({ start: Math.floor(wanted.start), end: Math.ceil(wanted.end), liveUs: 0 }, "push");
  }

  by(factor: number, center?: number): void {
    const { shown, bounds, view } = this.state();
    if (!shown) return;
    const within = bounds ?? (view.axis === "batch" ? anywhere : shown);
    const next = zoomed(shown, factor, within, view.axis, center);
    if (next.start <= within.start && next.end >= within.end) this.all();
    else this.to(next);
  }

  pan(fraction: number): void {
    const { shown, bounds, view } = this.state();
    if (shown) this.to(panned(shown, fraction, bounds ?? (view.axis === "batch" ? anywhere : shown), view.axis));
  }

  all(): void {
    this.change({ start: null, end: null, liveUs: 0 }, "push");
  }

  pause(): void {
    const { shown } = this.state();
    if (shown) this.change({ start: Math.floor(shown.start), end: Math.ceil(shown.end), liveUs: 0 }, "replace");
  }

  follow(): void {
    const { view } = this.state();
    this.change({ start: null, end: null, liveUs: view.axis === "time" ? usualWindowUs : 0 }, "replace");
  }
}

function widened(bounds: Range, range: Range): Range {
  return { start: Math.min(bounds.start, Math.max(0, range.start)), end: Math.max(bounds.end, range.end) };
}

function button(focus: string, text: string, label: string, disabled: boolean, act: () => void): HTMLElement {
  return h("button", { type: "button", "data-focus": focus, "aria-label": label, title: label, disabled, onclick: act }, text);
}

function followBadge(state: RangeState): HTMLElement {
  const standing = state.view.start !== null;
  // First what fails: what is asked of a trial that has ended, or of a chosen range, may fail as well.
  if (state.follow === "lost") return h("span", { class: "badge", "data-tone": "warn", "data-follow": "lost" }, "connection lost, reconnecting");
  if (state.follow === "stale") return h("span", { class: "badge", "data-tone": "warn", "data-follow": "stale" }, staleWords);
  // Whatever a stream tells: nothing of it is shown.
  if (state.follow === "denied") return h("span", { class: "badge", "data-tone": "warn", "data-follow": "denied" }, "not answered");
  if (!state.running) return h("span", { class: "badge", "data-follow": "ended" }, state.ended);
  if (standing) return h("span", { class: "badge", "data-follow": "paused" }, "paused");
  if (state.follow === "refused") return h("span", { class: "badge", "data-tone": "warn", "data-follow": "refused" }, "refreshed every few seconds");
  if (state.follow === "polling") {
    return hinted("follow", { class: "badge", "data-tone": "live", "data-follow": "polling" }, "Another tab has the live stream, or the master has no place for one more", "refreshed every few seconds");
  }
  if (state.follow === null) return h("span", { class: "badge", "data-follow": "asked" }, "refreshed every few seconds");
  if (state.follow === "live") return h("span", { class: "badge", "data-tone": "live", "data-follow": "live" }, h("span", { class: "dot", "aria-hidden": "true" }), "live");
  return h("span", { class: "badge", "data-follow": "connecting" }, "connecting");
}

export function rangeTools(state: RangeState, moves: RangeMoves, change: ChangeView, axes: readonly AxisKind[]): (Node | null)[] {
  const { view, shown, running } = state;
  const names: Record<AxisKind, string> = { time: "Wall clock", batch: "Batch" };
  const axis = axes.length < 2 ? null : h("span", { class: "group", role: "group", "aria-label": "Axis" }, axes.map((one) =>
    h("button", { type: "button", "data-focus": `axis-${one}`, "aria-pressed": String(view.axis === one), onclick: () => change({ axis: one, start: null, end: null, liveUs: 0 }, "push") }, names[one])));
  const span = h("select", { "aria-label": "What is shown", "data-focus": "window", onchange: () => {
    if (span.value === "all") moves.all();
    else if (span.value !== "fixed") change({ start: null, end: null, liveUs: Number(span.value) }, "push");
  } },
    h("option", { value: "all" }, "all there is"),
    view.axis === "time" && windows.map(([us, text]) => h("option", { value: us }, text)),
    h("option", { value: "fixed", disabled: true }, "a chosen range"));
  if (view.liveUs > 0 && !windows.some(([us]) => us === view.liveUs)) {
    span.append(h("option", { value: view.liveUs }, `the last ${secondsText(view.liveUs / 1e6)}`));
  }
  span.value = view.start !== null ? "fixed" : view.liveUs > 0 && view.axis === "time" ? String(view.liveUs) : "all";
  const whole = view.start === null && view.liveUs === 0;
  const narrow = shown !== null && shown.end - shown.start <= spanMin(view.axis);
  const pausing = running && view.start === null;
  return [
    axis, span,
    h("span", { class: "group", role: "group", "aria-label": "Move and zoom" },
      button("earlier", "‹", "Earlier", whole || !shown, () => moves.pan(-0.5)),
      button("nearer", "+", "Zoom in", narrow || !shown, () => moves.by(0.5)),
      button("farther", "−", "Zoom out", whole || !shown, () => moves.by(2)),
      button("later", "›", "Later", whole || !shown, () => moves.pan(0.5)),
      button("all", "All", "Show all", whole, () => moves.all())),
    running ? button("pause", pausing ? "Pause" : "Follow", pausing ? "Hold what is shown" : "Follow the running trial", pausing && !shown, () => (pausing ? moves.pause() : moves.follow())) : null,
  ];
}

/** How a tab's last question stands, where it failed. */
export function followOf(failed: Failure | null, state: FollowState | null): RangeState["follow"] {
  if (!failed) return state;
  if (!failed.passing) return "denied";
  return failed.kind === "lost" ? "lost" : "stale";
}

/** Between a question and its answer what is drawn, and told of it, is of the question before. */
export function showBusy(element: HTMLElement, isBusy: boolean): void {
  element.setAttribute("aria-busy", String(isBusy));
}

/** What changes by itself, apart from the tools: those keep what a person has open. */
export function rangeStatus(state: RangeState): HTMLElement[] {
  const { view, shown } = state;
  const parts = [followBadge(state)];
  if (shown && view.axis === "time") parts.push(hinted("range", { class: "muted", "data-range": "" }, `${isoText(shown.start)} to ${isoText(shown.end)}`, rangeWords(shown, view.axis)));
  else if (shown) parts.push(h("span", { class: "muted", "data-range": "" }, rangeWords(shown, view.axis)));
  return parts;
}

/** What the tools depend on: as long as it is the same, they stay. Where the range lies is none of it: they are not made anew with each
 *  zoom, before the question is on its way. */
export function toolsKey(state: RangeState, ...more: unknown[]): string {
  const { view, shown, bounds, running } = state;
  return JSON.stringify([{ ...view, start: view.start !== null, end: null, labels: [...view.labels] }, running, bounds !== null, shown !== null, shown !== null && shown.end - shown.start <= spanMin(view.axis), more]);
}

/** What saves and shares stands together at the right end of the tools, wherever a line of them ends. */
export function ends(...parts: Part[]): HTMLElement {
  return h("span", { class: "ends" }, ...parts);
}

export function linkButton(): HTMLElement {
  const copy = h("button", { type: "button", "data-focus": "link", title: "Copies a link that shows just this" }, "Copy link");
  copy.addEventListener("click", () => {
    const done = (text: string): void => {
      copy.textContent = text;
      setTimeout(() => (copy.textContent = "Copy link"), 2000);
    };
    if (!navigator.clipboard) done("It is in the address bar");
    else navigator.clipboard.writeText(location.href).then(() => done("Copied"), () => done("It is in the address bar"));
  });
  return copy;
}
