// Ranks (or agents, GPUs) over time for one metric or scope: a straggler is a bright row.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { QueryBucketsRequestSchema, QueryBucketsResponse, QueryBucketsResponse_BucketSeries as BucketSeries } from "#gen/query_pb";
import { Aggregation } from "#gen/query_pb";
import { ask, query } from "../api";
import { bucketCsv } from "../bucket_csv";
import { axisOf, coveredRange, holes } from "../buckets";
import { folding, refill } from "../choice";
import { chosenClock, clockLabel, clockOf, clocksOf, type Clock } from "../core/clocks";
import { isDrawable } from "../core/drawable";
import { heatGrid, heatSize, type HeatGrid } from "../core/heat";
import { cellView, type CellPlace } from "../core/heat_cell";
import { heatScale } from "../core/heat_scale";
import { heatGaps, type HeatGaps } from "../core/heat_gaps";
import { naturally } from "../core/natural_order";
import { farColors, heatColor } from "../core/palette";
import { printable, shortened } from "../core/printable";
import { tookMs } from "../core/pulse_pace";
import { bucketCount, type Range } from "../core/range";
import { metricId, type KnownSeries } from "../core/series_choice";
import { countText } from "../core/units";
import { formatView, type TrialView } from "../core/view_state";
import { bdi, download, fill, h } from "../dom";
import { farBox } from "../far_box";
import type { Failure, Result } from "../failure";
import { follow } from "../follow";
import { gapNote } from "../gap_note";
import { HeatMap, type HeatCell } from "../heat_map";
import { heatDrawn } from "../heat_picture";
import { LiveAnswer } from "../live_answer";
import { LiveBatches } from "../live_batches";
import { loop, type Loop, type Outcome } from "../loop";
import { News } from "../news";
import type { Go } from "../page";
import { patch } from "../patch";
import { savePng } from "../picture";
import { ends, followOf, linkButton, RangeMoves, rangeStatus, rangeTools, rangeWords, showBusy, toolsKey, type ChangeView } from "../range_tools";
import { failureBox, loadingBox, stateBox } from "../state_box";
import { absenceBox, endedWords, isRunning, timeBounds, type Learnt, type TrialInfo, type TrialTab } from "../trial_info";
import { trialName } from "../words";

const rowLabels = ["rank", "agent", "device"];
const usual = "timing/step";
const columnPixels = 3;
/** Of a metric's name on the button that it stands behind. */
const foldTextMax = 24;
const columnsMax = 1200;
const clockNames: Record<Clock, string> = { host: "host clock", device: "device clock" };

type Asked = Promise<Result<QueryBucketsResponse> | null>;
type Question = Pick<MessageInitShape<typeof QueryBucketsRequestSchema>, "trial" | "aggregation" | "groupBy" | "selectors">;

/** What is shown: of which question, and the answer. */
interface Shown {
  /** As `whatIsAsked` had it. */
  readonly question: string;
  readonly axis: TrialView["axis"];
  readonly metric: KnownSeries;
  readonly clock: Clock;
  readonly answer: QueryBucketsResponse;
  /** A row each, from the top. */
  readonly rows: readonly BucketSeries[];
  readonly groupBy: readonly string[];
  readonly range: Range;
  readonly grid: HeatGrid;
}

export class HeatTab implements TrialTab {
  readonly element = h("section", { class: "through", "aria-label": "Heat map" });
  private readonly tools = h("div", { class: "tools" });
  private readonly status = h("div", { class: "tools status" });
  private readonly place = h("div", {}, loadingBox("the heat map"));
  private readonly head = h("div", { class: "chart-head" });
  private readonly note = h("p", { class: "muted" });
  private readonly gaps = h("div", {});
  private readonly leads = h("p", { class: "heat-leads" });
  private readonly map: HeatMap;
  private readonly moves: RangeMoves;
  private readonly loop: Loop;
  private view: TrialView | null = null;
  private info: TrialInfo | null = null;
  private asked = "";
  private range: Range | null = null;
  private whole: Range | null = null;
  private shown: Shown | null = null;
  private readonly live = new LiveAnswer();
  private readonly liveBatches = new LiveBatches();
  private readonly news = new News(follow, () => this.loop.soon(), () => this.showTools());
  private answeredAtMs = 0;
  private drawnMs = 0;
  private newestUs = 0;
  private failed: Failure | null = null;
  private isUnfolded = false;

  constructor(private readonly go: Go, private readonly learnt: Learnt) {
    this.moves = new RangeMoves(() => this.rangeState(), this.change);
    this.map = new HeatMap({
      onZoom: (range, axis) => axis === this.view?.axis && this.moves.to(range),
      onZoomBy: (factor, center, axis) => axis === this.view?.axis && this.moves.by(factor, center),
      onPan: (fraction, axis) => axis === this.view?.axis && this.moves.pan(fraction),
      onReset: () => this.moves.all(),
      onCell: (cell) => this.showLead(cell),
      onOpen: () => this.leads.querySelector("a")?.click(),
    });
    fill(this.element, h("div", { class: "panel" }, this.tools, this.status), h("section", { class: "panel heat" }, this.place));
    this.loop = loop(() => this.news.intervalMs, (signal) => this.news.timed(() => this.look(signal), (begun) => tookMs(Math.max(0, this.answeredAtMs - begun), this.drawnMs)),
      (failure) => this.showFailure(failure));
  }

  update(view: TrialView, info: TrialInfo): void {
    if (this.view && view.axis !== this.view.axis) this.range = this.whole = null;
    this.view = view;
    this.info = info;
    this.showTools();
    this.news.of(info.trial.trialId, isRunning(info) && view.start === null ? this.seriesShown().map((one) => one.seriesNo) : []);
    const question = JSON.stringify([this.whatIsAsked(), isRunning(info), info.series.length]);
    if (question !== this.asked) {
      this.asked = question;
      showBusy(this.element, true);
      this.loop.now();
    }
  }

  /** What a map has to be of, to be what is chosen. */
  private whatIsAsked(): string {
    const { view } = this;
    return JSON.stringify([view?.axis, view?.start, view?.end, view?.liveUs, this.metric(), this.clock()]);
  }

  destroy(): void {
    this.loop.stop();
    this.news.stop();
    this.map.destroy();
  }

  private readonly change: ChangeView = (change, how = "replace") => {
    if (this.view) this.go({ ...this.view, ...change }, how);
  };

  private rangeState() {
    const view = this.view as TrialView;
    const bounds = view.axis === "time" && this.info ? timeBounds(this.info.trial) : this.whole;
    return { view, shown: this.range, bounds, running: this.info !== null && isRunning(this.info), ended: endedWords(this.info), follow: followOf(this.failed, this.news.state) };
  }

  /** Metrics and scopes that more than nothing can be said of, the step first. */
  private metrics(): string[] {
    const ids = new Set((this.info?.series ?? []).filter((series) => !series.name.endsWith(".count")).map(metricId));
    return [...ids].sort((a, b) => Number(b === usual) - Number(a === usual) || (a < b ? -1 : 1));
  }

  private metric(): string {
    const all = this.metrics();
    const wanted = this.view?.metrics[0] ?? usual;
    return all.includes(wanted) ? wanted : all[0] ?? "";
  }

  private seriesOfMetric(): KnownSeries[] {
    const id = this.metric();
    return (this.info?.series ?? []).filter((series) => metricId(series) === id);
  }

  /** Of the clock that is chosen. */
  private seriesShown(): KnownSeries[] {
    const clock = this.clock();
    return this.seriesOfMetric().filter((one) => clockOf(one.labels) === clock);
  }

  private clock(): Clock {
    return chosenClock(clocksOf(this.seriesOfMetric()), this.view?.clock ?? "");
  }

  private showTools(): void {
    const state = this.rangeState();
    patch(this.status, rangeStatus(state));
    const clocks = clocksOf(this.seriesOfMetric());
    refill(this.tools, toolsKey(state, this.metrics(), clocks, this.shown !== null), () => {
      const metric = h("select", { "aria-label": "Metric or scope", "data-focus": "metric", onchange: () => this.change({ metrics: [metric.value] }, "push") },
        this.metrics().map((id) => h("option", { value: id }, printable(id))));
      metric.value = this.metric();
      const saves = ends(
        h("button", { type: "button", "data-focus": "csv", disabled: !this.shown, onclick: () => this.saveCsv() }, "CSV"),
        h("button", { type: "button", "data-focus": "png", disabled: !this.shown, onclick: () => this.savePng() }, "PNG"), linkButton());
      return [...rangeTools(state, this.moves, this.change, ["time", "batch"]),
        ...folding(shortened(printable(this.metric()), foldTextMax) || "Choose", "Choose the metric, save what is shown", this.isUnfolded, (isOpen) => { this.isUnfolded = isOpen; },
          metric, clocks.length > 1 ? this.clockSelect(clocks) : null, saves)];
    });
  }

  private clockSelect(clocks: readonly Clock[]): HTMLElement {
    const select = h("select", { "aria-label": "Clock", "data-focus": "clock", onchange: () => this.change({ clock: select.value === "device" ? "device" : "" }, "push") },
      clocks.map((clock) => h("option", { value: clock }, clockNames[clock])));
    select.value = this.clock();
    return select;
  }

  private askedRange(view: TrialView, info: TrialInfo): Range | null {
    if (view.start !== null && view.end !== null) return { start: view.start, end: view.end };
    if (view.liveUs === 0 || view.axis === "batch") return null;
    const bounds = this.bounds(info);
    return { start: Math.max(bounds.start, bounds.end - view.liveUs), end: bounds.end };
  }

  /** Until the newest sample that any answer told of. */
  private bounds(info: TrialInfo): Range {
    const { start, end } = timeBounds(info.trial);
    return { start, end: Math.max(end, this.newestUs + 1) };
  }

  private async look(signal: AbortSignal): Promise<Outcome> {
    const { view, info } = this;
    if (!view || !info) return "stop";
    const asked = this.whatIsAsked();
    const clock = this.clock();
    const series = this.seriesShown();
    const metric = series[0];
    if (!metric) {
      this.showNothing(absenceBox(info, "series"));
      showBusy(this.element, false);
      return isRunning(info) ? "fine" : "stop";
    }
    const labels = rowLabels.filter((name) => series.some((one) => one.labels[name] !== undefined));
    // Ranks tell machines apart already; rows of machines are told apart by their GPUs.
    const groupBy = labels.includes("rank") ? ["rank"] : labels;
    const range = this.askedRange(view, info);
    const question: Question = {
      trial: { trialId: info.trial.trialId }, aggregation: Aggregation.ACROSS, groupBy: [...groupBy, clockLabel],
      selectors: [{ metricGroup: metric.metricGroup, name: metric.name, labels: clock === "device" ? { [clockLabel]: clock } : {} }],
    };
    const answer = await this.askBuckets(question, view, info, range, signal);
    if (!answer) return "fine";
    if (!answer.ok) return this.showFailure(answer.failure);
    this.failed = null;
    this.answeredAtMs = performance.now();
    this.newestUs = Math.max(this.newestUs, Number(answer.value.completeness?.newestSampleTimeUs ?? 0n));
    const covered = coveredRange(answer.value);
    if (range === null) this.whole = covered;
    // What follows goes on to what this answer has.
    const newest = this.askedRange(view, info);
    const shown = range && newest ? { start: newest.start, end: Math.max(newest.start + 1, range.end, Math.min(newest.end, covered.end)) } : newest;
    this.range = shown ?? covered;
    this.showAnswer(answer.value, { question: asked, axis: view.axis, metric, clock, groupBy, range: shown }, info);
    showBusy(this.element, false);
    this.showTools();
    this.drawnMs = performance.now() - this.answeredAtMs;
    return isRunning(info) && view.start === null ? "fine" : "stop";
  }

  /** Of a trial that runs its end alone, where that is enough. */
  private askBuckets(question: Question, view: TrialView, info: TrialInfo, range: Range | null, signal: AbortSignal): Asked {
    // Both clocks' rows are answered, and some may have come since the series were listed.
    const rowCount = this.seriesOfMetric().length * 2;
    const countOf = (span: Range | null): number => Math.min(columnsMax, bucketCount((this.place.clientWidth || 800) / columnPixels, rowCount, span));
    const bucketsOf = (of: Range | null, maxBuckets: number): Asked =>
      ask((options) => query.queryBuckets({ ...question, axis: axisOf(view.axis, of), maxBuckets }, options), signal);
    const all = (): Asked => bucketsOf(range, countOf(range));
    if (!isRunning(info) || view.start !== null || info.trial.sampleCount === 0n) return all();
    const key = JSON.stringify([question.groupBy, question.selectors]);
    // A later attempt takes batches back that are kept.
    if (view.axis === "batch") return info.trial.attemptCount < 2 ? this.liveBatches.ask(key, countOf(null), bucketsOf) : all();
    const window = range ?? this.bounds(info);
    if (!isDrawable(window, "time")) return all();
    return this.live.ask(`${view.liveUs}:${key}`, window, countOf(window), rowCount, bucketsOf, all);
  }

  private showFailure(failure: Failure): Outcome {
    this.learnt(failure);
    this.failed = failure;
    showBusy(this.element, false);
    // What passes takes no map away that is of what is asked for: another metric's would stand under this one's name.
    if (!failure.passing || this.shown?.question !== this.whatIsAsked()) {
      this.showNothing(failureBox(failure, () => this.loop.now()));
      this.range = (this.view && this.info && this.askedRange(this.view, this.info)) ?? this.whole;
    }
    this.showTools();
    return failure.passing ? "failed" : "stop";
  }

  private showNothing(instead: HTMLElement): void {
    this.shown = null;
    this.map.letGo();
    fill(this.place, instead);
  }

  private showAnswer(answer: QueryBucketsResponse, asked: Pick<Shown, "question" | "axis" | "metric" | "clock" | "groupBy"> & { range: Range | null }, info: TrialInfo): void {
    const nameOf = (series: BucketSeries): string => asked.groupBy.map((name) => `${name} ${series.key?.labels[name] ?? "–"}`).join(", ") || "all";
    const rows = answer.series.filter((series) => clockOf(series.key?.labels ?? {}) === asked.clock)
      .sort((a, b) => naturally(nameOf(a), nameOf(b)));
    const grid = heatGrid(rows.map((series) => ({ name: nameOf(series), indexes: series.indexes, values: series.means, lasts: series.lasts, mins: series.mins, maxs: series.maxs, counts: series.counts, nanCounts: series.nanCounts })),
      Number(answer.start), Number(answer.width), asked.range, asked.axis === "time" && this.isTiming(asked.metric) && asked.metric.unit === "seconds" ? microseconds : null);
    const all = h("button", { type: "button", onclick: () => this.moves.all() }, "Show all");
    if (grid === "empty") return this.showNothing(stateBox("empty", "No samples in this range", "They lie outside of it, or have no batch: choose another axis or all.", all));
    if (grid === "too many") return this.showNothing(stateBox("failed", "More cells than a browser draws", `${countText(rows.length)} rows of this range at once. Choose a shorter one; the command line has all: stepwell export.`, all));
    const range = { start: grid.start, end: grid.start + grid.columnCount * grid.width };
    if (!isDrawable(range, asked.axis)) return this.showNothing(farBox([String(info.trial.trialId)], () => this.change({ axis: "batch", start: null, end: null, liveUs: 0 }, "push")));
    this.shown = { question: asked.question, axis: asked.axis, metric: asked.metric, clock: asked.clock, answer, rows, groupBy: asked.groupBy, range, grid };
    this.showWords(this.shown);
    patch(this.gaps, asked.axis === "batch" && gapNote([{ name: "", trial: String(info.trial.trialId), gaps: holes(answer) }], asked.metric.metricGroup));
    if (this.map.element.parentNode !== this.place) fill(this.place, this.head, this.note, this.gaps, this.map.element, this.leads);
    this.map.show({
      title: `Heat map of ${asked.metric.name}`, grid, unit: asked.metric.unit, axis: asked.axis, worst: this.isTiming(asked.metric) ? "largest" : "farthest",
      gaps: this.gapsOf(answer, rows, range, asked, info),
    });
  }

  private gapsOf(answer: QueryBucketsResponse, rows: readonly BucketSeries[], range: Range, { axis, metric }: Pick<Shown, "axis" | "metric">, info: TrialInfo): HeatGaps {
    const owners = new Map(info.writers.map((writer) => [writer.writerNo, { rank: writer.rank, agent: writer.agentId }]));
    return heatGaps(holes(answer), owners, rows.map((row) => row.key?.labels ?? {}), range, metric.metricGroup, (range.end - range.start) / 200, axis);
  }

  private isTiming(metric: KnownSeries): boolean {
    return metric.metricGroup === "timing";
  }

  private showWords({ grid, metric, clock, groupBy }: Shown): void {
    const clockWords = clock === "device" ? " on the device's clock" : "";
    fill(this.head, h("h2", {}, bdi(printable(metric.name)), `${clockWords} by ${groupBy.join(" and ") || "nothing that tells series apart"}`), scale(grid, metric.unit));
    const { rowsPerLine } = heatSize(grid.rows.length, window.devicePixelRatio || 1);
    const [first = "", last = ""] = [grid.rows[0], grid.rows[grid.rows.length - 1]].map((name) => printable(name ?? ""));
    const shared = rowsPerLine < 2 ? "" : ` ${rowsPerLine} rows share a line, which shows ${this.isTiming(metric) ? "the largest" : "the most unusual"} of them.`;
    const count = grid.rows.length;
    this.note.textContent = `${count === 1 ? `One row: ${first}` : `${countText(count)} rows: ${first} on top, ${last} at the bottom`}. ` +
      `Each cell is a mean.${shared} Drag to zoom, click a cell to keep it.`;
  }

  private showLead(cell: HeatCell): void {
    const { shown, view } = this;
    const labels = { ...shown?.rows[cell.row]?.key?.labels };
    delete labels[clockLabel];
    if (!shown || !view || Object.keys(labels).length === 0) return fill(this.leads);
    const start = shown.grid.start + cell.column * shown.grid.width;
    const place: CellPlace = { metric: metricId(shown.metric), isTiming: this.isTiming(shown.metric), labels, range: { start, end: start + shown.grid.width } };
    const to = cellView({ ...view, axis: shown.axis }, place);
    const batches = to.tab === "timings" && to.start !== null ? `, ${rangeWords({ start: to.start, end: to.end ?? to.start }, "batch")}` : "";
    const name = printable(shown.grid.rows[cell.row] ?? "");
    fill(this.leads, h("a", { href: formatView(to) }, to.tab === "timings" ? `Timings of ${name}${batches}` : `Chart of ${name}`));
  }

  private saveCsv(): void {
    if (this.shown) download(`stepwell-trial-${this.view?.trial ?? ""}-heat.csv`, bucketCsv(this.shown.answer, this.shown.rows, this.shown.axis));
  }

  private savePng(): void {
    const { shown, info, view } = this;
    if (!shown || !info || !view) return;
    const { grid, metric, axis, clock, range } = shown;
    const drawn = heatDrawn({
      title: `${printable(metricId(metric))}${clock === "device" ? ", device clock" : ""}, mean of each cell`, ...this.map.drawn(), rows: grid.rows,
      means: heatScale(grid, metric.unit), scale: scaleCanvas(),
    });
    savePng(`stepwell-trial-${view.trial}-heat.png`, `${trialName(info.trial)}, ${rangeWords(range, axis)}`, [drawn]);
  }
}

function scaleCanvas(): HTMLCanvasElement {
  const canvas = h("canvas", { width: 64, height: 1, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  for (let x = 0; context && x < 64; ++x) {
    context.fillStyle = heatColor(x / 63);
    context.fillRect(x, 0, 1, 1);
  }
  return canvas;
}

function scale(grid: HeatGrid, unit: string): HTMLElement {
  const { low, high, beyond, far } = heatScale(grid, unit);
  return h("div", { class: "heat-scale" }, h("span", {}, low), scaleCanvas(), h("span", {}, high),
    far.map(({ side, text }) => h("span", { class: "heat-far", "data-far": side > 0 ? "above" : "below" }, farSwatch(side), text)),
    beyond !== "" && h("span", { class: "muted" }, beyond));
}

function farSwatch(side: -1 | 1): HTMLElement {
  const swatch = h("span", { class: "swatch filled", "aria-hidden": "true" });
  swatch.style.setProperty("--look", farColors[side]);
  return swatch;
}

function microseconds(seconds: number): number {
  return seconds * 1e6;
}
