// What the machine did meanwhile, and the training's own metrics: a chart for each, one cursor for all.
import type { QueryBucketsResponse } from "#gen/query_pb";
import { Aggregation } from "#gen/query_pb";
import { ask, query } from "../api";
import { answersCsv } from "../bucket_csv";
import { axisOf, bucketed, coveredRange, holes, resolutionWords } from "../buckets";
import { Chart, sightOf, type ChartData } from "../chart";
import { seriesOfCharts, type ChartSeries } from "../chart_series";
import { choice, folding, refill } from "../choice";
import { aligned } from "../core/align";
import { isDrawable } from "../core/drawable";
import { Drawer } from "../core/drawer";
import { gapBands } from "../core/gap_bands";
import { bucketsOfLine, lineLimit } from "../core/line_budget";
import { printable } from "../core/printable";
import { tookMs } from "../core/pulse_pace";
import { liveRange, type Range } from "../core/range";
import { chosenCharts, foldsTogether, labelValues, lineNames, linesOfChart, metricCharts, selectorsOf, usualMetrics, wanted, type MetricChart } from "../core/series_choice";
import { countText } from "../core/units";
import type { TrialView } from "../core/view_state";
import { bdi, download, fill, h, hinted } from "../dom";
import { farBox } from "../far_box";
import { follow } from "../follow";
import { gapNote } from "../gap_note";
import type { Failure, Result } from "../failure";
import { LiveAnswer } from "../live_answer";
import { loop, type Loop, type Outcome } from "../loop";
import { News } from "../news";
import type { Go } from "../page";
import { patch } from "../patch";
import { savePng } from "../picture";
import { ends, followOf, linkButton, RangeMoves, rangeStatus, rangeTools, rangeWords, showBusy, staleWords, toolsKey, type ChangeView, type RangeState } from "../range_tools";
import { failureBox, loadingBox, stateBox } from "../state_box";
import { onTheme } from "../theme";
import { sharingWords, type SharedMachine } from "../core/sharing";
import { absenceBox, askedGroups, endedWords, isRunning, sampled, timeBounds, type Learnt, type TrialInfo, type TrialTab } from "../trial_info";
import { trialName } from "../words";

const chartHeight = 190;
const labelNames: Record<string, string> = { agent: "Agents", device: "GPUs", rank: "Ranks" };
const sharedBy = "shared_with";
const sharedMs = 10_000;

/** Of which question charts are; `range` null = none is known. */
interface Told {
  readonly view: TrialView;
  readonly range: Range | null;
  /** Of lines of one chart. */
  readonly limit: number;
}

type Asked<T> = Promise<Result<T> | null>;

interface Card {
  readonly element: HTMLElement;
  readonly chart: Chart;
  readonly note: HTMLElement;
  readonly source: HTMLElement; // what its values were made of
}

export class MetricsTab implements TrialTab {
  readonly element = h("section", { class: "through", "aria-label": "System metrics" });
  private readonly tools = h("div", { class: "tools" });
  private readonly status = h("div", { class: "tools status" });
  private readonly saves = h("div", { class: "tools" });
  /** Whether a person who looks by phone opened what else is to choose. */
  private isUnfolded = false;
  private readonly notes = h("div", {});
  private readonly place = h("div", { class: "charts" });
  private readonly cards = new Map<string, Card>();
  private readonly drawer = new Drawer();
  private readonly loop: Loop;
  private readonly moves: RangeMoves;
  private readonly unTheme = onTheme(() => this.cards.forEach((card) => card.chart.redraw()));
  private view: TrialView | null = null;
  private info: TrialInfo | null = null;
  private charts: MetricChart[] = [];
  /** Of all series of `of`. */
  private known: { readonly of: TrialInfo["series"]; readonly charts: readonly MetricChart[] } = { of: [], charts: [] };
  /** Of a chart, for they stand in columns; null = to be asked, which lays the page out. */
  private width: number | null = null;
  private readonly resize = new ResizeObserver(() => (this.width = this.chartWidth()));
  private asked = "";
  /** What is asked for, once it is known: where the next move goes on from. */
  private shown: Range | null = null;
  /** What all charts are of, until those of the next answer are there, all of them; null = nothing is drawn. */
  private drawn: Told | null = null;
  /** What `answers` are of: drawn, or being drawn. */
  private answered: Told | null = null;
  private whole: Range | null = null;
  private answers: QueryBucketsResponse[] = [];
  /** Of lines that stand alone, of lines that are folded. */
  private readonly live = [new LiveAnswer(), new LiveAnswer()] as const;
  private readonly news = new News(follow, () => this.loop.soon(), () => this.showTools());
  private answeredAtMs = 0;
  private drawnMs = 0;
  /** Of lines of one chart, in what was asked last. */
  private limit = 0;
  private isFirst = true;
  private failed: Failure | null = null;
  private shared: readonly SharedMachine[] = [];
  private sharedState = false;
  private sharedAt = -Infinity;

  constructor(private readonly go: Go, private readonly learnt: Learnt) {
    fill(this.element, h("div", { class: "panel" }, this.tools, h("div", { class: "status-line" }, this.status, this.saves)), this.notes, this.place);
    this.resize.observe(this.place);
    this.moves = new RangeMoves(() => this.rangeState(), this.change);
    this.loop = loop(() => this.news.intervalMs, (signal) => this.news.timed(() => this.look(signal), (begun) => this.counted(begun)), (failure) => this.showFailure(failure));
  }

  update(view: TrialView, info: TrialInfo): void {
    if (this.view && view.axis !== this.view.axis) this.shown = this.whole = null;
    this.view = view;
    this.info = info;
    const before = this.charts.map((chart) => chart.id).join("\n");
    this.charts = this.chosen(view, info);
    if (view.start !== null && view.end !== null) this.shown = { start: view.start, end: view.end };
    if (before !== this.charts.map((chart) => chart.id).join("\n") || this.cards.size === 0) this.showCards();
    this.showTools();
    this.followOrNot();
    // Ask anew where the question changed; a running trial's loop asks by itself.
    const question = JSON.stringify([view.axis, view.start, view.end, view.liveUs, view.lines, [...view.labels], this.charts.map((chart) => [chart.id, chart.series.length]), isRunning(info)]);
    if (question !== this.asked) {
      this.asked = question;
      showBusy(this.place, this.charts.length > 0);
      this.loop.now();
    }
  }

  destroy(): void {
    this.loop.stop();
    this.drawer.giveUp();
    this.news.stop();
    this.unTheme();
    this.resize.disconnect();
    this.cards.forEach((card) => card.chart.destroy());
  }

  private readonly change: ChangeView = (change, how = "replace") => {
    if (this.view) this.go({ ...this.view, ...change }, how);
  };

  private rangeState() {
    const view = this.view as TrialView;
    const bounds = view.axis === "time" && this.info && this.info.trial.sampleCount > 0n ? timeBounds(this.info.trial) : this.whole;
    return {
      view, shown: this.shown, bounds, running: this.info !== null && isRunning(this.info), ended: endedWords(this.info),
      follow: this.followed(),
    };
  }

  /** What passes is told beside a stream that goes on. */
  private followed(): RangeState["follow"] {
    const { failed, news } = this;
    const isBeside = failed?.passing && !(news.polls && failed.kind === "lost");
    return isBeside ? news.state : followOf(failed, news.state);
  }

  private chosen(view: TrialView, info: TrialInfo): MetricChart[] {
    return chosenCharts(this.allCharts(info), view.metrics)
      .map((chart) => ({ ...chart, series: chart.series.filter((series) => wanted(series, view.labels)) }))
      .filter((chart) => chart.series.length > 0);
  }

  private allCharts(info: TrialInfo): readonly MetricChart[] {
    if (this.known.of !== info.series) this.known = { of: info.series, charts: metricCharts(info.series) };
    return this.known.charts;
  }

  private showTools(): void {
    const { view, info } = this;
    if (!view || !info) return;
    const state = this.rangeState();
    const shared = sharingWords(this.shared, isRunning(info));
    const told = !this.drawn?.range ? this.shown : this.drawn.view.axis === view.axis ? this.drawn.range : null;
    patch(this.status, rangeStatus({ ...state, shown: told }),
      this.failed?.passing && this.news.state !== "lost" && hinted("stale", { class: "badge", "data-tone": "warn", "data-stale": "" }, `${this.failed.title}. ${this.failed.advice}`, staleWords),
      shared && hinted("shared", { class: "badge", "data-tone": "warn", "data-shared": "" }, printable(shared.title), shared.text));
    refill(this.tools, toolsKey(state, info.series.length), () => this.makeTools(view, info));
    refill(this.saves, JSON.stringify([view.lines, this.answers.length > 0]), () => [this.linesSelect(view), ends(
      h("button", { type: "button", "data-focus": "csv", disabled: this.answers.length === 0, onclick: () => this.saveCsv() }, "CSV"),
      h("button", { type: "button", "data-focus": "png", disabled: this.answers.length === 0, onclick: () => void this.savePng() }, "PNG"), linkButton())]);
  }

  private makeTools(view: TrialView, info: TrialInfo): (Node | null)[] {
    const all = this.allCharts(info);
    const labels = [...labelValues(info.series)].filter(([, values]) => values.length > 1 || view.labels.size > 0).map(([name, values]) =>
      choice(labelNames[name] ?? name, values.map((value) => ({ value, text: value })), view.labels.get(name) ?? [], (chosen) => {
        const next = new Map(view.labels);
        if (chosen.length > 0) next.set(name, chosen);
        else next.delete(name);
        this.change({ labels: next });
      }));
    const usual = view.metrics.length > 0 ? view.metrics : chosenCharts(all, []).map((chart) => chart.id);
    const metrics = choice("Metrics", all.map((chart) => ({ value: chart.id, text: chart.name, heading: chart.metricGroup })), usual, (metrics) => this.change({ metrics }), "The usual ones");
    const chosen = view.labels.size + Number(view.metrics.length > 0);
    return [
      ...rangeTools(this.rangeState(), this.moves, this.change, ["time", "batch"]),
      ...folding(chosen > 0 ? `Chosen: ${chosen}` : "Choose", "Choose what is drawn", this.isUnfolded, (isOpen) => { this.isUnfolded = isOpen; }, labels, metrics),
    ];
  }

  private linesSelect(view: TrialView): HTMLElement {
    const lines = h("select", { "aria-label": "Lines", "data-focus": "lines", onchange: () => this.change({ lines: lines.value as TrialView["lines"] }) },
      h("option", { value: "" }, "lines: automatic"), h("option", { value: "each" }, "lines: one each"), h("option", { value: "one" }, "lines: all in one"));
    lines.value = view.lines;
    return lines;
  }

  private showCards(): void {
    const info = this.info;
    if (!info) return;
    this.dropCards(new Set(this.charts.map((chart) => chart.id)));
    this.width = null;
    if (this.charts.length === 0) {
      const none = this.allCharts(info).length === 0;
      fill(this.place, none ? absenceBox(info, sampled) : stateBox("empty", "Nothing of this choice", "The agents, GPUs, ranks or metrics chosen have no series in this trial.",
        h("button", { type: "button", onclick: () => this.change({ labels: new Map(), metrics: [] }) }, "Choose the usual ones")));
      fill(this.notes);
      return;
    }
    // What is there already stays where it is, with its focus and its lines.
    if (this.cards.size === 0) fill(this.place);
    this.charts.forEach((chart, at) => {
      const card = this.cards.get(chart.id) ?? this.makeCard(chart);
      this.cards.set(chart.id, card);
      const there = this.place.children[at] ?? null;
      if (there !== card.element) this.place.insertBefore(card.element, there);
    });
    fill(this.notes, this.notMeasured(info), info.seriesTruncated && h("p", { class: "note" }, "This trial has more series than this page lists; the command line has all: stepwell series."));
  }

  private dropCards(keep: ReadonlySet<string>): void {
    for (const [id, card] of this.cards) {
      if (keep.has(id)) continue;
      card.chart.destroy();
      card.element.remove();
      this.cards.delete(id);
    }
  }

  private notMeasured(info: TrialInfo): HTMLElement | null {
    const ids = new Set(this.allCharts(info).map((chart) => chart.id));
    const absent = usualMetrics.filter((id) => !ids.has(id));
    if (absent.length === 0 || (this.view && this.view.metrics.length > 0)) return null;
    const groups = askedGroups(info);
    const isAsked = (id: string): boolean => groups.length === 0 || groups.includes(id.split("/")[0] ?? "");
    const words = (some: readonly string[], why: string): string => `${some.map((id) => id.split("/")[1] ?? id).join(", ")} (${why})`;
    const [asked, others] = [absent.filter(isAsked), absent.filter((id) => !isAsked(id))];
    const parts = [
      others.length > 0 && words(others, `not enabled: by request only ${groups.join(", ")} ${groups.length === 1 ? "is" : "are"} sampled`),
      asked.length > 0 && words(asked, asked.every((id) => id.startsWith("gpu/")) ? "no agent of this trial found a GPU that it may read" : "no agent of this trial sampled them"),
    ];
    return h("p", { class: "muted", "data-absent": "" }, `Not measured: ${parts.filter((part) => part !== false).join("; ")}.`);
  }

  private makeCard(metric: MetricChart): Card {
    const chart = new Chart({
      title: metric.name, syncKey: "metrics", height: chartHeight,
      onZoom: (range, axis) => axis === this.view?.axis && this.moves.to(range),
      onZoomBy: (factor, center, axis) => axis === this.view?.axis && this.moves.by(factor, center),
      onPan: (fraction, axis) => axis === this.view?.axis && this.moves.pan(fraction),
      onReset: () => this.moves.all(),
    });
    const note = h("div", {}, loadingBox(metric.name));
    const source = h("span", { "data-source": "" });
    const element = h("section", { class: "panel", "data-metric": metric.id },
      h("div", { class: "chart-head" }, h("h3", {}, bdi(printable(metric.name))), h("span", { class: "muted" }, bdi(printable(metric.metricGroup)), source)),
      note, chart.element);
    chart.element.hidden = true;
    return { element, chart, note, source };
  }

  /** null = all there is. */
  private askedRange(view: TrialView): Range | null {
    if (view.start !== null && view.end !== null) return { start: view.start, end: view.end };
    if (view.liveUs === 0 || view.axis === "batch" || !this.info) return null;
    const bounds = timeBounds(this.info.trial);
    const newest = Math.max(bounds.end - 1, this.newest());
    return { start: liveRange(newest, view.liveUs, bounds).start, end: 0 };
  }

  private newest(): number {
    return Math.max(0, ...this.answers.map((answer) => Number(answer.completeness?.newestSampleTimeUs ?? 0n)));
  }

  /** What comes after the first is its end, drawn into charts that are there: nobody knows yet what that takes. */
  private counted(begunMs: number): number {
    return this.isFirst ? 0 : tookMs(Math.max(0, this.answeredAtMs - begunMs), this.drawnMs);
  }

  /** Whether other trials use its machines, too; not as often as all else. */
  private async lookShared(info: TrialInfo, signal: AbortSignal): Promise<void> {
    const series = info.series.filter((one) => one.metricGroup === "agent" && one.name === sharedBy);
    if (series.length === 0 || (performance.now() - this.sharedAt < sharedMs && this.sharedState === isRunning(info))) return;
    const answer = await ask((options) => query.queryBuckets({
      trial: { trialId: info.trial.trialId }, selectors: [{ metricGroup: "agent", name: sharedBy }], maxBuckets: 2,
      aggregation: Aggregation.ACROSS, groupBy: ["agent"],
    }, options), signal);
    // What it is beside the charts: where it fails they tell so.
    if (!answer?.ok) return;
    this.sharedAt = performance.now();
    this.sharedState = isRunning(info);
    // One that left long ago has nothing in the last bucket.
    const last = Math.max(0, ...answer.value.series.flatMap((one) => one.indexes));
    this.shared = answer.value.series.map((one) => ({
      agent: one.key?.labels["agent"] ?? "", most: Math.max(0, ...one.maxs),
      newest: one.indexes[one.indexes.length - 1] === last ? one.lasts[one.lasts.length - 1] ?? 0 : 0,
    }));
  }

  private async look(signal: AbortSignal): Promise<Outcome> {
    const { view, info, charts } = this;
    if (!view || !info || charts.length === 0) return "stop";
    const shared = this.lookShared(info, signal);
    const range = this.askedRange(view);
    this.limit = lineLimit(charts.map((chart) => chart.series.length), linesOfChart(view.lines), sightOf(chartHeight));
    // At once: one waits for the master while the other is on its way.
    const asked = [false, true].map((folds) => this.askBuckets(folds, view, info, range, signal)).filter((one) => one !== null);
    const answers: QueryBucketsResponse[] = [];
    for (const answer of await Promise.all(asked)) {
      if (!answer) return "fine";
      if (!answer.ok) return this.showFailure(answer.failure);
      answers.push(answer.value);
    }
    await shared;
    if (signal.aborted) return "fine";
    this.answeredAtMs = performance.now();
    this.answers = answers;
    this.failed = null;
    if (!await this.showAnswers(view, range, signal)) return "fine";
    // What stands still is asked for once.
    return isRunning(info) && view.start === null ? "fine" : "stop";
  }

  /** Of the charts whose lines are folded, or of the others. null = there are none such. */
  private askBuckets(folds: boolean, view: TrialView, info: TrialInfo, range: Range | null, signal: AbortSignal): Asked<QueryBucketsResponse> | null {
    const seriesNos = this.charts.filter((chart) => foldsTogether(chart, this.limit) === folds).flatMap((chart) => chart.series.map((series) => series.seriesNo));
    if (seriesNos.length === 0) return null;
    const width = Math.max(200, this.width ??= this.chartWidth());
    const lineCounts = this.charts.map((chart) => (foldsTogether(chart, this.limit) ? 1 : chart.series.length));
    const countOf = (span: Range | null, isLive = false): number => bucketsOfLine(width, seriesNos.length, lineCounts, sightOf(chartHeight), span, isLive);
    const bucketsOf = (span: Range | null, maxBuckets: number): Asked<QueryBucketsResponse> => ask((options) => query.queryBuckets({
      trial: { trialId: info.trial.trialId }, selectors: selectorsOf(seriesNos), axis: axisOf(view.axis, span), maxBuckets,
      aggregation: folds ? Aggregation.ACROSS : Aggregation.UNSPECIFIED,
    }, options), signal);
    const all = (): Asked<QueryBucketsResponse> => bucketsOf(range, countOf(range && range.end > range.start ? range : null));
    const window = this.liveWindow(view, info, range);
    if (!window) return all();
    return this.live[folds ? 1 : 0].ask(`${view.liveUs}:${seriesNos.join(",")}`, window, countOf(window, true), folds ? this.charts.length : seriesNos.length, bucketsOf, all);
  }

  /** What a chart of the time shows that follows; null = it does not follow. */
  private liveWindow(view: TrialView, info: TrialInfo, range: Range | null): Range | null {
    if (!isRunning(info) || view.axis !== "time" || view.start !== null || info.trial.sampleCount === 0n) return null;
    const window = { start: range?.start ?? timeBounds(info.trial).start, end: this.newestEnd(info) };
    return isDrawable(window, "time") ? window : null;
  }

  private newestEnd(info: TrialInfo): number {
    return Math.max(timeBounds(info.trial).end, this.newest() + 1);
  }

  private showFailure(failure: Failure): Outcome {
    this.learnt(failure);
    this.failed = failure;
    showBusy(this.place, false);
    // What passes takes no chart away that shows what is asked for: another range's would stand under its words.
    const stays = failure.passing && this.view === this.answered?.view && this.isWhole(failure);
    if (!stays) {
      this.drawer.giveUp();
      this.answers = [];
      this.answered = this.drawn = null;
    }
    for (const card of this.cards.values()) {
      if (!stays || card.chart.element.hidden) this.showNote(card, failureBox(failure, () => this.loop.now()));
    }
    this.showTools();
    return failure.passing ? "failed" : "stop";
  }

  /** What stands while `failure` lasts are all charts of one answer. */
  private isWhole(failure: Failure): boolean {
    if (failure.kind !== "broken") this.finish(); // What threw would throw again.
    return this.drawer.isWhole;
  }

  /** What is saved, and what stays, is of one answer. */
  private finish(): void {
    this.drawer.finish();
    this.drawn = this.answered;
  }

  private showNote(card: Card, note: HTMLElement | null): void {
    // While a trial runs many times a second, under who is on its link.
    patch(card.note, note);
    card.chart.element.hidden = note !== null && note.getAttribute("data-absence") !== null;
  }

  /** Asked of a note, as its chart may be hidden. */
  private chartWidth(): number {
    return this.cards.values().next().value?.note.clientWidth ?? 0;
  }

  /** False = given up before all was drawn. */
  private async showAnswers(view: TrialView, range: Range | null, signal: AbortSignal): Promise<boolean> {
    const covered = this.answers.map(coveredRange).filter((one) => one.end > one.start);
    const all = covered.length === 0 ? null : { start: Math.min(...covered.map((one) => one.start)), end: Math.max(...covered.map((one) => one.end)) };
    if (range === null) this.whole = all;
    this.shown = range === null ? (view.axis === "time" && this.info ? { start: timeBounds(this.info.trial).start, end: this.newestEnd(this.info) } : all)
      : range.end > range.start ? range : { start: range.start, end: Math.max(this.newest(), range.start) + 1 };
    // What a person asked for is drawn at once, what comes by itself beside what they do.
    const pace = view === this.answered?.view ? "frames" : "tasks";
    const answered = this.answered = { view, range: this.shown, limit: this.limit };
    const found = seriesOfCharts(this.answers);
    this.showTools();
    const width = this.width ??= this.chartWidth();
    this.isFirst = pace === "tasks";
    const drawing = await this.drawer.draw(this.charts, (chart) => this.showChart(chart, answered, found.get(chart.id), width, pace === "frames"), pace);
    if (!drawing.isWhole) return false;
    this.drawn = answered;
    this.showTools();
    // The next is asked for already: it dims them until it is there.
    if (signal.aborted) return false;
    this.drawnMs = drawing.busyMs;
    showBusy(this.place, false);
    return true;
  }

  private showChart(metric: MetricChart, { view, range, limit }: Told, found: ChartSeries | undefined, width: number, follows: boolean): void {
    const card = this.cards.get(metric.id);
    if (!card) return;
    if (!found || !range || found.series.every((series) => series.indexes.length === 0)) {
      this.showNote(card, this.emptyNote(view));
      return;
    }
    if (!isDrawable(range, view.axis)) return this.showNote(card, farBox([view.trial], () => this.change({ axis: "batch", start: null, end: null, liveUs: 0 }, "push")));
    const { answer, series } = found;
    const folds = foldsTogether(metric, limit);
    const folded = folds ? h("p", { class: "muted" }, `${countText(metric.series.length)} series in one line: their mean, smallest and largest.`,
      view.lines === "each" && metric.series.length > linesOfChart("each") && ` No more than ${linesOfChart("each")} lines can be told apart: choose some of them.`,
      view.lines === "each" && metric.series.length <= linesOfChart("each") && " Charts of so many lines beside each other are more than can be seen: choose some of them.") : null;
    const gaps = view.axis === "batch" ? gapNote([{ name: "", trial: view.trial, gaps: holes(answer) }], metric.metricGroup) : null;
    this.showNote(card, folded || gaps ? h("div", {}, folded, gaps) : null);
    // By its place among all of the chart: what has no samples here is left out of the answer.
    const places = series.map((one) => metric.series.findIndex((known) => known.seriesNo === one.seriesNos[0]));
    const names = folds ? [] : lineNames(metric.series).map(printable);
    const data = (): ChartData => ({
      aligned: aligned(series.map(bucketed), Number(answer.start), Number(answer.width)),
      names: folds ? [""] : places.map((at) => names[at] ?? ""), ...(folds ? {} : { colors: places }),
      unit: metric.unit, range, axis: view.axis, ...(width ? { width } : {}),
      bands: gapBands(holes(answer), range, metric.metricGroup, (range.end - range.start) / 100, view.axis),
    });
    if (follows) card.chart.follow(data);
    else card.chart.show(data());
    card.source.textContent = `, from ${resolutionWords(answer.resolution)}`;
  }

  private emptyNote(view: TrialView): HTMLElement {
    if (view.start !== null) return stateBox("empty", "No samples in this range", "They lie outside of it, or a gap is here: see Completeness.", h("button", { type: "button", onclick: () => this.moves.all() }, "Show all"));
    if (view.axis === "batch") return stateBox("empty", "No samples with a batch", "These were taken while no step had ended. The wall clock shows them.", h("button", { type: "button", onclick: () => this.change({ axis: "time", start: null, end: null }) }, "Wall clock"));
    return stateBox("no data yet", "No samples yet", "The series is known; its first samples are on the way.");
  }

  private followOrNot(): void {
    const { view, info } = this;
    const wants = view && info && isRunning(info) && view.start === null && this.charts.length > 0;
    this.news.of(info?.trial.trialId ?? 0n, wants ? this.charts.map((chart) => chart.series[0]?.seriesNo ?? 0) : []);
  }

  private saveCsv(): void {
    this.finish();
    download(`stepwell-trial-${this.view?.trial ?? ""}-metrics.csv`, answersCsv(this.answers, this.drawn?.view.axis ?? "time"));
  }

  private async savePng(): Promise<void> {
    if (!this.info) return;
    this.finish();
    const range = this.drawn?.range ? `, ${rangeWords(this.drawn.range, this.drawn.view.axis)}` : "";
    const charts = this.charts.map((chart) => this.cards.get(chart.id)?.chart.drawn() ?? null);
    const { trial } = this.info;
    await null; // Charts are painted in microtasks.
    savePng(`stepwell-trial-${this.view?.trial ?? ""}-metrics.png`, `${trialName(trial)}${range}`, charts);
  }
}
