// Two trials or more side by side: the mean of each scope and metric with its change from the first, and
// a chart of those that are opened, by batch or by the time since each began.
import type { CompareTrialsResponse, CompareTrialsResponse_ComparedSeries as Compared } from "#gen/compare_pb";
import { CompareAxis } from "#gen/compare_pb";
import { TrialState, type Trial } from "#gen/model_pb";
import type { ListTrialsResponse } from "#gen/query_pb";
import { ask, query } from "../api";
import { completenessBadge, stateBadge } from "../badges";
import { holes } from "../buckets";
import { Chart, sightOf } from "../chart";
import { refill } from "../choice";
import { compareCsvHead, compareCsvRows, measuredSides } from "../compare_rows";
import { CompareTable } from "../compare_table";
import { aligned } from "../core/align";
import { sincePlace } from "../core/chart_axes";
import { clockOf } from "../core/clocks";
import { comparedId, comparedSelectors, drawnTogether, keptLabels, offeredTrials, openedCharts, unitText, withChart } from "../core/compared";
import { csvText } from "../core/csv";
import { isDrawable } from "../core/drawable";
import { Drawer } from "../core/drawer";
import { sideBands, type GapBand } from "../core/gap_bands";
import { bucketsOfLine } from "../core/line_budget";
import { lineLook } from "../core/palette";
import { printable, shortened } from "../core/printable";
import { fit, panned, zoomed, type Range } from "../core/range";
import { countText } from "../core/units";
import { formatView, trialView, type CompareView, type View } from "../core/view_state";
import { bdi, download, fill, h, keepFocus } from "../dom";
import { farBox } from "../far_box";
import type { Failure, Result } from "../failure";
import { gapNote } from "../gap_note";
import { loop, type Loop, type Outcome } from "../loop";
import type { Go, Page } from "../page";
import { patch } from "../patch";
import { savePng } from "../picture";
import { ends, linkButton, showBusy } from "../range_tools";
import { asOfBefore, failureBox, loadingBox, stateBox } from "../state_box";
import { swatch } from "../swatch";
import { onTheme, theme } from "../theme";
import { trialName } from "../words";

const refreshMs = 10_000;
const chartHeight = 240;
const headMax = 160;
const trialsMax = 16;
/** The master's batches are of 32 bits, its times far below these. */
const placeMax = { batch: 2 ** 31 - 1, time: 2 ** 52 };

interface Card {
  readonly element: HTMLElement;
  readonly chart: Chart;
  readonly note: HTMLElement;
}

interface Answered {
  readonly view: CompareView;
  /** Means of all series. */
  readonly means: CompareTrialsResponse;
  /** Buckets of those that have charts; null = none has. */
  readonly buckets: CompareTrialsResponse | null;
}

export class ComparePage implements Page {
  readonly title = "Compare";
  readonly element = h("div", { class: "through" });
  private readonly list = h("ol", { class: "compared" });
  private readonly add = h("select", { "aria-label": "Add a trial", onchange: () => this.added() });
  private readonly tools = h("div", { class: "through" });
  /** Where there are not two yet. */
  private readonly few = h("div", {});
  private readonly charts = h("div", { class: "charts" });
  private readonly note = h("div", {}, loadingBox("the comparison"));
  private readonly table = new CompareTable(
    (id, opened) => this.change({ metrics: withChart(this.view.metrics, id, opened) }), (filter) => this.change({ filter }), (sort) => this.change({ sort }));
  private readonly panel = h("section", { class: "panel" }, this.note, this.table.element);
  private readonly cards = new Map<string, Card>();
  private readonly drawer = new Drawer();
  private readonly loop: Loop;
  private readonly unTheme = onTheme(() => {
    this.showHead();
    this.cards.forEach((card) => card.chart.redraw());
  });
  private answered: Answered | null = null;
  /** The newest that may be added. */
  private found: readonly Trial[] = [];
  /** Whether there are older ones than those. */
  private foundIsCut = false;
  /** Why the newest list of them did not come. */
  private unlisted: Failure | null = null;
  /** Whether what is drawn and listed is of another question, which failed: it is not seen. */
  private hides = false;
  private shown: Range | null = null;
  private whole: Range | null = null;
  private offered = "";

  constructor(private view: CompareView, private readonly go: Go) {
    fill(this.element, h("section", { class: "panel" }, h("h1", {}, "Compare"), this.list, h("div", { class: "tools" }, this.add, this.tools), this.few), this.charts, this.panel);
    this.table.element.hidden = true;
    this.table.arrange(view.filter, view.sort);
    this.showHead();
    this.loop = loop(() => refreshMs, (signal) => this.look(signal), (failure) => this.showFailure(failure));
  }

  update(view: View): boolean {
    if (view.page !== "compare") return false;
    this.table.arrange(view.filter, view.sort);
    if (askedView(view) === askedView(this.view)) {
      this.view = view;
      return true;
    }
    const { trials, axis } = this.view;
    if (view.axis !== axis) this.shown = null;
    if (view.axis !== axis || view.trials.join() !== trials.join()) this.whole = null;
    // One more chart, or one less, leaves the others what they are.
    if (!sameQuestion(view, this.view)) showBusy(this.charts, true);
    this.view = view;
    this.showHead();
    this.loop.now();
    return true;
  }

  destroy(): void {
    this.loop.stop();
    this.drawer.giveUp();
    this.unTheme();
    this.table.destroy();
    this.cards.forEach((card) => card.chart.destroy());
  }

  private change(change: Partial<CompareView>, how: "push" | "replace" = "replace"): void {
    this.go({ ...this.view, ...change }, how);
  }

  private added(): void {
    const id = this.add.value;
    this.add.value = "";
    if (id !== "") this.change({ trials: [...this.view.trials, id] });
  }

  private answeredTrial(id: string) {
    return this.answered?.means.trials.find((one) => String(one.trial?.trialId) === id);
  }

  private name(id: string): string {
    const of = this.answeredTrial(id)?.trial ?? this.found.find((one) => String(one.trialId) === id);
    return of ? trialName(of) : `trial ${id}`;
  }

  /** What is drawn and told: until the answer is there, that of the question before. */
  private told(): CompareView {
    return this.answered && !this.hides ? this.answered.view : this.view;
  }

  /** "" = all there is. */
  private rangeWords(view: CompareView): string {
    const range = rangeOf(view);
    if (!range) return "";
    if (view.axis === "batch") return `batches ${countText(range.start)} to ${countText(range.end - 1)}`;
    const [start, end] = [range.start / 1e6, range.end / 1e6];
    return `${sincePlace(start, end - start)} to ${sincePlace(end, end - start)} since start`;
  }

  private showHead(): void {
    const { trials, axis } = this.view;
    this.panel.hidden = trials.length < 2;
    this.charts.hidden = trials.length < 2 || this.hides;
    this.showFew();
    const facts = trials.map((id) => {
      const answered = this.answeredTrial(id);
      return [id, this.name(id), answered?.trial?.state, JSON.stringify(answered?.completeness?.contiguous)];
    });
    refill(this.list, JSON.stringify([facts, theme()]), () => trials.map((id, at) => this.item(id, at)));
    this.showOffered();
    const axisButton = (one: CompareView["axis"], text: string): HTMLElement =>
      h("button", { type: "button", "data-focus": `axis-${one}`, "aria-pressed": String(axis === one), onclick: () => this.change({ axis: one, start: null, end: null }, "push") }, text);
    const isPart = rangeOf(this.view) !== null;
    const words = this.rangeWords(this.told());
    const disabled = !this.answered || this.hides || trials.length < 2;
    refill(this.tools, JSON.stringify([axis, isPart, words, disabled]), () => [
      h("span", { class: "group", role: "group", "aria-label": "Axis" }, axisButton("batch", "By batch"), axisButton("time", "By time since start")),
      words !== "" && h("span", { class: "muted", "data-range": "" }, words),
      isPart && h("button", { type: "button", "data-focus": "all", onclick: () => this.zoom(null) }, "Show all"), ends(
      h("button", { type: "button", "data-focus": "csv", disabled, onclick: () => this.saveCsv() }, "CSV"),
      h("button", { type: "button", "data-focus": "png", disabled, onclick: () => void this.savePng() }, "PNG"), linkButton()),
    ]);
  }

  private item(id: string, at: number): HTMLElement {
    const { trials } = this.view;
    const { trial, completeness } = this.answeredTrial(id) ?? {};
    return h("li", {}, h("div", { class: "line" }, swatch(lineLook(at, theme())),
      h("a", { href: formatView(trialView(id)), "data-focus": `open-${id}` }, bdi(this.name(id))), at === 0 && h("span", { class: "muted" }, "the base"),
      trial ? stateBadge(trial.state, `state-${id}`) : null, completeness && completenessBadge(completeness, formatView({ ...trialView(id), tab: "completeness" })),
      h("span", { class: "actions" },
        at > 0 && h("button", { type: "button", "data-focus": `first-${id}`, onclick: () => this.change({ trials: [id, ...trials.filter((one) => one !== id)] }) }, "Make first"),
        h("button", { type: "button", "data-focus": `remove-${id}`, "aria-label": `Remove ${this.name(id)}`, onclick: () => this.change({ trials: trials.filter((one) => one !== id) }) }, "Remove"))));
  }

  /** What can be added; a list that is open stays as it is. */
  private showOffered(): void {
    const { trials } = this.view;
    const options = offeredTrials(this.found.map((trial) => ({ id: String(trial.trialId), name: trialName(trial) })), trials, this.foundIsCut);
    this.add.disabled = trials.length >= trialsMax;
    const offered = JSON.stringify(options);
    if (offered === this.offered) return;
    this.offered = offered;
    fill(this.add, options.map(([value, text]) => h("option", { value: value ?? "", disabled: value === null }, text)));
  }

  /** What to do where there are too few to compare, and why nothing is offered for it. */
  private showFew(): void {
    const { unlisted } = this;
    const isFew = this.view.trials.length < 2;
    const offers = !unlisted || this.found.length > 0;
    keepFocus(this.few, () => refill(this.few, JSON.stringify([isFew, offers, unlisted?.kind, unlisted?.detail]), () => isFew ? [
      unlisted && (offers ? asOfBefore(unlisted) : failureBox(unlisted, () => this.loop.now())),
      offers && stateBox("empty", "Choose two trials or more", "Here, or by their boxes in the list of trials. The first is what the others are compared with."),
    ] : []), () => this.add);
  }

  private bounds(): Range {
    return this.whole ?? { start: 0, end: placeMax[this.view.axis] };
  }

  private zoom(range: Range | null): void {
    if (!range) return this.change({ start: null, end: null }, "push");
    const { axis } = this.view;
    const wanted = fit({ start: Math.max(0, Math.floor(range.start)), end: Math.ceil(range.end) }, this.bounds(), axis);
    this.change(wanted, "push");
  }

  private zoomBy(factor: number, center: number): void {
    if (!this.shown) return;
    const bounds = this.bounds();
    const next = zoomed(this.shown, factor, bounds, this.view.axis, center);
    this.zoom(next.start <= bounds.start && next.end >= bounds.end ? null : next);
  }

  private async look(signal: AbortSignal): Promise<Outcome> {
    const listed = await ask((options) => query.listTrials({ pageSize: 200 }, options), signal);
    if (!listed) return "fine";
    this.take(listed);
    const { view } = this;
    if (view.trials.length < 2) {
      showBusy(this.charts, false);
      return listed.ok ? "fine" : listed.failure.passing ? "failed" : "stop";
    }
    const answers = await Promise.all([this.askMeans(view, signal), this.askBuckets(view, signal)]);
    const [means, buckets] = answers;
    if (!means || signal.aborted) return "fine";
    if (!means.ok) return this.showFailure(means.failure);
    if (buckets && !buckets.ok) return this.showFailure(buckets.failure);
    this.answered = { view, means: means.value, buckets: buckets ? buckets.value : null };
    this.showAnswer(this.answered);
    // Whatever else is asked for meanwhile.
    if (await this.showCharts(this.answered) && sameQuestion(view, this.view)) showBusy(this.charts, false);
    // What has ended is asked for once.
    return means.value.trials.some((one) => one.trial?.state === TrialState.RUNNING) ? "fine" : "stop";
  }

  private take(listed: Result<ListTrialsResponse>): void {
    this.unlisted = listed.ok ? null : listed.failure;
    // What passes takes nothing away; what is denied is not offered any more.
    if (listed.ok || !listed.failure.passing) {
      this.found = listed.ok ? listed.value.trials : [];
      this.foundIsCut = listed.ok && listed.value.nextPageToken !== "";
    }
    this.showHead();
  }

  private question(view: CompareView) {
    return {
      trials: view.trials.map((id) => ({ trialId: BigInt(id) })), axis: view.axis === "batch" ? CompareAxis.BATCH : CompareAxis.TIME_SINCE_START,
      start: BigInt(view.start ?? 0), end: BigInt(view.end ?? 0), groupBy: keptLabels,
    };
  }

  private askMeans(view: CompareView, signal: AbortSignal) {
    return ask((options) => query.compareTrials({ ...this.question(view), maxBuckets: 1 }, options), signal);
  }

  private async askBuckets(view: CompareView, signal: AbortSignal) {
    const selectors = comparedSelectors(openedCharts(view.metrics));
    if (selectors.length === 0) return null;
    const width = Math.max(...[...this.cards.values()].map((card) => card.chart.width()), 600);
    const lineCounts = selectors.map(() => view.trials.length);
    // Series are those of both clocks, where there are both.
    const maxBuckets = bucketsOfLine(width, selectors.length * 2 * view.trials.length, lineCounts, sightOf(chartHeight), rangeOf(view));
    return ask((options) => query.compareTrials({ ...this.question(view), selectors, maxBuckets }, options), signal);
  }

  private showFailure(failure: Failure): Outcome {
    // What passes takes nothing away that is of what is asked for.
    const stays = failure.passing && this.answered !== null && sameQuestion(this.answered.view, this.view) && this.isWhole(failure);
    fill(this.note, stays ? asOfBefore(failure) : failureBox(failure, () => this.loop.now()));
    this.table.element.hidden = this.hides = !stays;
    showBusy(this.charts, false);
    if (!failure.passing) {
      // Not to be seen, nor to be named or saved any more.
      this.answered = null;
      this.drawer.giveUp();
      this.table.clear();
      this.placeCards([]);
    }
    this.showHead();
    return failure.passing ? "failed" : "stop";
  }

  /** What stands while `failure` lasts are all charts of one answer. */
  private isWhole(failure: Failure): boolean {
    if (failure.kind !== "broken") this.drawer.finish(); // What threw would throw again.
    return this.drawer.isWhole;
  }

  private names(view: CompareView): string[] {
    return view.trials.map((id) => this.name(id));
  }

  private showAnswer({ view, means }: Answered): void {
    this.table.element.hidden = this.hides = false;
    this.showHead();
    fill(this.note);
    this.table.show(means, this.names(view), openedCharts(view.metrics), this.rangeWords(view) || (view.axis === "batch" ? "all batches" : "the whole time"));
  }

  /** False = given up before all was drawn. */
  private async showCharts({ view, means, buckets }: Answered): Promise<boolean> {
    const opened = openedCharts(view.metrics);
    const series = (buckets?.series ?? []).filter((one) => one.key && opened.includes(comparedId(one.key)));
    const [start, width] = [Number(buckets?.start ?? 0n), Number(buckets?.width ?? 1n)];
    const last = series.reduce((largest, one) => one.sides.reduce((most, side) => Math.max(most, side.indexes[side.indexes.length - 1] ?? 0), largest), 0);
    // Of all, the one bucket of the means ends where the longest trial does; others only begin before it. What came meanwhile is in these alone.
    const covered = { start, end: Math.max(Number(means.start + means.width), start + last * width + 1) };
    const range = rangeOf(view);
    if (!range && series.length > 0) this.whole = covered;
    this.shown = range ?? covered;
    const shown = this.shown;
    this.placeCards(series);
    const drawing = await this.drawer.draw(series, (one) => {
      const card = this.cards.get(one.key ? comparedId(one.key) : "");
      if (!card || !buckets) return;
      const metricGroup = one.key?.metricGroup ?? "";
      card.chart.element.hidden = !isDrawable(shown, view.axis);
      if (card.chart.element.hidden) return void patch(card.note, farBox(view.trials, () => this.change({ axis: "batch", start: null, end: null }, "push")));
      const { drawn, leftOut, unit } = drawnTogether(measuredSides(one));
      const names = this.names(view);
      patch(card.note, this.leftOut(one, leftOut, unit, names),
        view.axis === "batch" && gapNote(drawn.flatMap((at) => (buckets.trials[at] ? [{ name: names[at] ?? "", trial: view.trials[at] ?? "", gaps: holes(buckets.trials[at]) }] : [])), metricGroup));
      card.chart.show({
        aligned: aligned(one.sides.filter((_, at) => drawn.includes(at)), start, width), names: drawn.map((at) => names[at] ?? ""), colors: drawn, unit,
        range: shown, axis: view.axis, ...(view.axis === "time" ? { axisName: "since start" } : {}),
        bands: this.bands(buckets, shown, metricGroup, drawn, names, view),
      });
    }, "tasks");
    return drawing.isWhole;
  }

  /** Lines of another unit than the axis has: whose they are. */
  private leftOut({ sides, unit }: Compared, places: readonly number[], axisUnit: string, names: readonly string[]): HTMLElement | null {
    if (places.length === 0) return null;
    return h("p", { class: "muted", "data-left-out": "" }, `Not drawn, for the axis is of another unit (${unitText(axisUnit)}): `,
      places.map((at, which) => [which > 0 && ", ", bdi(names[at] ?? ""), ` (${unitText(unit || (sides[at]?.unit ?? ""))})`]), ".");
  }

  /** Declared gaps of all that are drawn; a gap's text says of whom it is. */
  private bands({ trials }: CompareTrialsResponse, range: Range, metricGroup: string, drawn: readonly number[], names: readonly string[], view: CompareView): GapBand[] {
    const sides = trials.flatMap((trial, at) => (drawn.includes(at) ? [{ name: names[at] ?? "", startUs: Number(trial.startTimeUs), gaps: holes(trial) }] : []));
    return sideBands(sides, range, metricGroup, (range.end - range.start) / 100, view.axis);
  }

  /** Those that are there already keep their place, their cursor and a drag. */
  private placeCards(series: readonly Compared[]): void {
    const wanted = new Set(series.map((one) => (one.key ? comparedId(one.key) : "")));
    for (const [id, card] of this.cards) {
      if (wanted.has(id)) continue;
      card.chart.destroy();
      card.element.remove();
      this.cards.delete(id);
    }
    series.forEach((one, at) => {
      const id = one.key ? comparedId(one.key) : "";
      const card = this.cards.get(id) ?? this.makeCard(id, one);
      this.cards.set(id, card);
      const there = this.charts.children[at] ?? null;
      if (there !== card.element) this.charts.insertBefore(card.element, there);
    });
  }

  private makeCard(id: string, series: Compared): Card {
    const chart = new Chart({
      title: series.key?.name ?? "", syncKey: "compare", height: chartHeight,
      onZoom: (range, axis) => axis === this.view.axis && this.zoom(range),
      onZoomBy: (factor, center, axis) => axis === this.view.axis && this.zoomBy(factor, center),
      onPan: (fraction, axis) => axis === this.view.axis && this.shown && this.zoom(panned(this.shown, fraction, this.bounds(), axis)),
      onReset: () => this.zoom(null),
    });
    const clock = clockOf(series.key?.labels ?? {}) === "device" ? ", device clock" : "";
    const note = h("div", {});
    const element = h("section", { class: "panel", "data-metric": id },
      h("div", { class: "chart-head" }, h("h3", {}, bdi(printable(series.key?.name ?? ""))), h("span", { class: "muted" }, bdi(printable(series.key?.metricGroup ?? "") + clock))), note, chart.element);
    return { element, chart, note };
  }

  private saveCsv(): void {
    if (!this.answered) return;
    const { view, means } = this.answered;
    download(`stepwell-compare-${view.trials.join("-")}.csv`, csvText(compareCsvHead, compareCsvRows(means, this.names(view))));
  }

  private async savePng(): Promise<void> {
    if (!this.answered) return;
    this.drawer.finish();
    const { trials, axis } = this.answered.view; // What is drawn, not what was just asked for.
    const head = `${trials.map((id) => this.name(id)).join(", ")}, by ${axis === "batch" ? "batch" : "time since start"}`;
    const charts = [...this.cards.values()].map((card) => card.chart.drawn());
    await null; // Charts are painted in microtasks.
    savePng(`stepwell-compare-${trials.join("-")}.png`, shortened(head, headMax), charts);
  }
}

/** null = all there is. */
function rangeOf({ start, end }: CompareView): Range | null {
  return start !== null && end !== null ? { start, end } : null;
}

/** What the master is asked for. */
function askedView(view: CompareView): string {
  return formatView({ ...view, filter: "", sort: "" });
}

/** But for which charts are open. */
function sameQuestion(one: CompareView, other: CompareView): boolean {
  return askedView({ ...one, metrics: [] }) === askedView({ ...other, metrics: [] });
}
