// Where a step's time goes: each scope's share over the batches, and in numbers per scope and rank.
import type { QueryBucketsResponse, SummarizeTimingsResponse } from "#gen/query_pb";
import { SeriesKind } from "#gen/model_pb";
import { Aggregation } from "#gen/query_pb";
import { ask, query } from "../api";
import { axisOf, coveredRange, holes } from "../buckets";
import { Chart } from "../chart";
import { folding, refill } from "../choice";
import { csvText } from "../core/csv";
import { gapBands, type KnownGap } from "../core/gap_bands";
import { lineLook, othersColor, restColor, type LineLook } from "../core/palette";
import { printable } from "../core/printable";
import { paceMs, tookMs } from "../core/pulse_pace";
import { bucketCount, sameRange, type Range } from "../core/range";
import { formatSorting, parseSorting, pressed } from "../core/sorting";
import { other, rateAligned, stackAligned, stacked, unaccounted, wholeShares, type ScopeTotals, type Stack } from "../core/stacking";
import { rankSelector, shownRank } from "../core/timing_rank";
import { countText, plural, secondsText, valueText } from "../core/units";
import type { TrialView } from "../core/view_state";
import { bdi, download, fill, h, named, scroller, type Part } from "../dom";
import { follow } from "../follow";
import { gapNote } from "../gap_note";
import { LiveBatches } from "../live_batches";
import { loop, type Loop, type Outcome } from "../loop";
import { News } from "../news";
import type { Failure } from "../failure";
import type { Go } from "../page";
import { patch } from "../patch";
import { savePng } from "../picture";
import { ends, followOf, linkButton, RangeMoves, rangeStatus, rangeTools, rangeWords, showBusy, toolsKey, type ChangeView } from "../range_tools";
import { sortHead } from "../sort_head";
import { failureBox, loadingBox, stateBox } from "../state_box";
import { onTheme, theme } from "../theme";
import { csvHead, csvRow, quantileTexts, rankText, ranksOf, sortedTimings, timingColumns, timingRows, type TimingColumn, type TimingRow } from "../timing_rows";
import { absenceBox, endedWords, isRunning, type Learnt, type TrialInfo, type TrialTab } from "../trial_info";
import { trialName } from "../words";

const chartHeight = 260;
const rateHeight = 140;
const layersMax = 7;
/** The table is of all batches, and asked for as a whole: not as often as the end of the charts. */
const tableMs = 3000;
const ranksShownMax = 64;
const heads: Readonly<Record<TimingColumn, string>> = {
  scope: "Scope", share: "Share", own: "Own time", total: "Total", mean: "Mean", p50: "p50", p95: "p95", p99: "p99", steps: "Steps", count: "Count",
};
/** As many characters as three lines have where they are narrowest. */
const labelsInSight = 45;

/** What the charts show: of which question, and the answer. */
interface Drawn {
  readonly rank: string;
  /** As asked; null = all. */
  readonly range: Range | null;
  readonly shown: Range;
  readonly stack: Stack;
  readonly answer: QueryBucketsResponse;
}

export class TimingsTab implements TrialTab {
  readonly element = h("section", { class: "through", "aria-label": "Timings" });
  private readonly tools = h("div", { class: "tools" });
  private readonly status = h("div", { class: "tools status" });
  private readonly stackNote = h("div", {}, loadingBox("the shares of the step"));
  private readonly tables = h("section", { class: "panel" }, loadingBox("the timings"));
  private readonly chart: Chart;
  private readonly rate: Chart;
  private readonly ratePanel = h("section", { class: "panel", "data-metric": "throughput" });
  private readonly moves: RangeMoves;
  private readonly loop: Loop;
  private readonly unTheme = onTheme(() => this.showStack());
  /** As the address has it, and as this tab shows it: by batch. */
  private given: TrialView | null = null;
  private view: TrialView | null = null;
  private info: TrialInfo | null = null;
  private asked = "";
  private shown: Range | null = null;
  private whole: Range | null = null;
  private summary: SummarizeTimingsResponse | null = null;
  /** The batches that it is of; null = all. */
  private summed: Range | null = null;
  /** It is shown: no failure stands there. */
  private tableStands = false;
  /** Of which question it is, as of when, and what it took. */
  private summarized = { question: "", atMs: -Infinity, tookMs: 0 };
  private readonly live = new LiveBatches();
  private readonly news = new News(follow, () => this.loop.soon(), () => this.showTools());
  private chartsBegunMs = 0;
  private answeredAtMs = 0;
  private drawnMs = 0;
  private drawn: Drawn | null = null;
  private failed: Failure | null = null;
  private isUnfolded = false;

  constructor(private readonly go: Go, private readonly learnt: Learnt) {
    this.moves = new RangeMoves(() => this.rangeState(), this.change);
    const moves = {
      onZoom: (range: Range) => this.moves.to(range),
      onZoomBy: (factor: number, center: number) => this.moves.by(factor, center),
      onPan: (fraction: number) => this.moves.pan(fraction),
      onReset: () => this.moves.all(),
    };
    this.chart = new Chart({ title: "Share of the step by scope", syncKey: "timings", height: chartHeight, ...moves });
    this.rate = new Chart({ title: "Steps per second of stepping", syncKey: "timings", height: rateHeight, ...moves });
    this.hideCharts(true);
    fill(this.ratePanel, h("h2", {}, "Steps per second of stepping"),
      h("p", { class: "muted" }, "One second divided by what a step takes: what lies between steps (validation, checkpoints) is not in it."), this.rate.element);
    fill(this.element, h("div", { class: "panel" }, this.tools, this.status),
      h("section", { class: "panel" }, h("h2", {}, "Share of the step over the batches"), this.stackNote, this.chart.element),
      this.ratePanel, this.tables);
    this.loop = loop(() => this.news.intervalMs, (signal) => this.news.timed(() => this.look(signal), (begun) => this.counted(begun)), (failure) => this.showFailure(failure));
  }

  update(view: TrialView, info: TrialInfo): void {
    // Steps are counted in batches, whatever axis another tab has.
    const ours: TrialView = view.axis === "batch" ? view : { ...view, axis: "batch", start: null, end: null, liveUs: 0 };
    this.given = view;
    // The table that is there has all ranks.
    const isTableAnother = this.view !== null && (this.view.sort !== ours.sort || this.view.rank !== ours.rank);
    this.view = ours;
    this.info = info;
    this.showTools();
    if (isTableAnother) this.showTables();
    this.hearOrNot();
    const question = JSON.stringify([ours.start, ours.end, ours.rank, isRunning(info), info.trial.attemptCount]);
    if (question !== this.asked) {
      this.asked = question;
      showBusy(this.element, true);
      this.loop.now();
    }
  }

  destroy(): void {
    this.loop.stop();
    this.news.stop();
    this.unTheme();
    this.chart.destroy();
    this.rate.destroy();
  }

  private readonly change: ChangeView = (change, how = "replace") => {
    // A chosen rank leaves the axis of the other tabs alone, a chosen range is of batches for them, too.
    const from = "start" in change ? this.view : this.given;
    if (from) this.go({ ...from, ...change }, how);
  };

  /** Of the steps of who is shown: what else a step is made of comes with them. */
  private hearOrNot(): void {
    const { view, info } = this;
    if (!view || !info) return;
    const rank = this.rank();
    const steps = info.series.filter((one) => one.metricGroup === "timing" && one.name === "step" && (rank === "all" || (one.labels["rank"] ?? "-1") === rank));
    this.news.of(info.trial.trialId, isRunning(info) && view.start === null ? steps.map((one) => one.seriesNo) : []);
  }

  /** What the charts took, not the table, which has a pace of its own. */
  private counted(begunMs: number): number {
    return tookMs(Math.max(0, this.answeredAtMs - Math.max(begunMs, this.chartsBegunMs)), this.drawnMs);
  }

  private rangeState() {
    const running = this.info !== null && isRunning(this.info);
    return { view: this.view as TrialView, shown: this.shown, bounds: this.whole, running, ended: endedWords(this.info), follow: followOf(this.failed, this.news.state) };
  }

  private ranks(): number[] {
    return this.summary ? ranksOf(this.summary) : [];
  }

  /** "all", or the rank that is shown. */
  private rank(): string {
    return shownRank(this.view?.rank ?? "", this.ranks());
  }

  /** null = all there is. */
  private askedRange(): Range | null {
    const { view } = this;
    return view && view.start !== null && view.end !== null ? { start: view.start, end: view.end } : null;
  }

  private showTools(): void {
    const view = this.view;
    if (!view) return;
    const state = this.rangeState();
    patch(this.status, rangeStatus(state));
    refill(this.tools, toolsKey(state, this.ranks(), this.hasTable(), this.hasCharts()), () => {
      const ranks = h("select", { "aria-label": "Rank", "data-focus": "rank", onchange: () => this.change({ rank: ranks.value }, "push") },
        this.ranks().map((rank) => h("option", { value: rank }, rankText(rank))), h("option", { value: "all" }, "all ranks together"));
      ranks.value = this.rank();
      const hasRanks = this.ranks().length > 0;
      const saves = ends(
        h("button", { type: "button", "data-focus": "csv", disabled: !this.hasTable(), onclick: () => this.saveCsv() }, "CSV"),
        h("button", { type: "button", "data-focus": "png", disabled: !this.hasCharts(), onclick: () => this.savePng() }, "PNG"), linkButton());
      const [text, label] = hasRanks ? [this.rankWords(), "Choose the rank, save what is shown"] : ["Save", "Save what is shown"];
      return [...rangeTools(state, this.moves, this.change, ["batch"]),
        ...folding(text, label, this.isUnfolded, (isOpen) => { this.isUnfolded = isOpen; }, hasRanks ? ranks : null, saves)];
    });
  }

  private rankWords(): string {
    const rank = this.rank();
    return rank === "all" ? "all ranks" : rankText(Number(rank));
  }

  /** Something stands in it. */
  private hasTable(): boolean {
    return this.tableStands && this.summary !== null && this.summary.timings.length > 0;
  }

  /** Something is drawn in them. */
  private hasCharts(): boolean {
    return this.drawn !== null && this.drawn.stack.indexes.length > 0;
  }

  private async look(signal: AbortSignal): Promise<Outcome> {
    const { view, info } = this;
    if (!view || !info) return "stop";
    const trial = { trialId: info.trial.trialId };
    const range = this.askedRange();
    const table = this.summarize(range, trial, signal);
    // Beside the charts, but for the first, which tells of which ranks there are.
    if (!this.summary) await table;
    const charts = this.summary ? await this.lookCharts(view, info, range, trial, signal) : "fine";
    const failure = await table;
    return failure ? this.showFailure(failure) : charts;
  }

  private async lookCharts(view: TrialView, info: TrialInfo, range: Range | null, trial: { trialId: bigint }, signal: AbortSignal): Promise<Outcome> {
    this.chartsBegunMs = performance.now();
    const rank = this.rank();
    const selector = rankSelector(rank, this.ranks(), info.series);
    if (!selector) {
      this.drawn = null;
      this.failed = null;
      showBusy(this.element, false);
      this.hideCharts(true);
      fill(this.stackNote, stateBox("empty", "No chart of what is without rank", "None of its series is among those that this page lists; its table is below."));
      this.showTools();
      return isRunning(info) && view.start === null ? "fine" : "stop";
    }
    // Of the note above the charts, for these are hidden until the first answer is there.
    const wanted = Math.min(400, bucketCount((this.stackNote.clientWidth || 600) / 2, 64, range));
    const bucketsOf = (of: Range | null, maxBuckets: number) => ask((options) => query.queryBuckets({
      trial, selectors: [selector], axis: axisOf("batch", of), groupBy: ["clock"], aggregation: Aggregation.ACROSS, maxBuckets,
    }, options), signal);
    // A later attempt takes batches back that are kept.
    const follows = isRunning(info) && range === null && info.trial.attemptCount < 2;
    const buckets = follows ? await this.live.ask(JSON.stringify(selector), wanted, bucketsOf) : await bucketsOf(range, wanted);
    if (!buckets) return "fine";
    if (!buckets.ok) return this.showFailure(buckets.failure);
    this.answeredAtMs = performance.now();
    this.failed = null;
    const scopes = buckets.value.series.filter((series) => series.kind === SeriesKind.DURATION && series.key?.labels["clock"] !== "device");
    const covered = coveredRange(buckets.value);
    const shown = range ?? covered;
    this.drawn = { rank, range, shown, stack: stacked(scopes.map(scopeTotals), layersMax), answer: buckets.value };
    // Of no steps at all nobody can say from where to where they go.
    const steps = this.hasCharts() ? covered : null;
    if (range === null) this.whole = steps;
    this.shown = range ?? steps;
    this.showStack();
    showBusy(this.element, false);
    this.showTools();
    this.drawnMs = performance.now() - this.answeredAtMs;
    return isRunning(info) && view.start === null ? "fine" : "stop";
  }

  /** The table, where it is due. null = it is shown, or nobody waits for it. */
  private async summarize(range: Range | null, trial: { trialId: bigint }, signal: AbortSignal): Promise<Failure | null> {
    const begun = performance.now();
    const { question, atMs, tookMs: took } = this.summarized;
    if (this.tableStands && question === this.asked && begun - atMs < Math.max(tableMs, paceMs(took))) return null;
    const asked = this.asked;
    const batchRange = range ? axisOf("batch", range).value : undefined;
    const summary = await ask((options) => query.summarizeTimings({ trial, batchRange }, options), signal);
    if (!summary) return null;
    if (!summary.ok) return summary.failure;
    this.summary = summary.value;
    this.summed = range;
    this.tableStands = true;
    this.showTables();
    this.showTools();
    const done = performance.now();
    this.summarized = { question: asked, atMs: done, tookMs: done - begun };
    this.hearOrNot(); // Its ranks are known.
    return null;
  }

  private showFailure(failure: Failure): Outcome {
    this.learnt(failure);
    this.failed = failure;
    showBusy(this.element, false);
    // What passes takes nothing away that is of what is asked for: another rank's charts would stand under this one's name.
    const range = this.askedRange();
    const stays = failure.passing && this.drawn !== null && this.drawn.rank === this.rank() && sameRange(this.drawn.range, range);
    if (!stays) {
      this.drawn = null;
      this.shown = range ?? this.whole;
      fill(this.stackNote, failureBox(failure, () => this.loop.now()));
      this.hideCharts(true);
    }
    if (!this.summary || !failure.passing || !sameRange(this.summed, range)) {
      this.tableStands = false;
      // One box tells it: where the charts are, unless they are shown.
      this.tables.hidden = !stays;
      if (stays) fill(this.tables, failureBox(failure, () => this.loop.now()));
    }
    this.showTools();
    return failure.passing ? "failed" : "stop";
  }

  private hideCharts(hidden: boolean): void {
    this.chart.element.hidden = hidden;
    this.ratePanel.hidden = hidden;
  }

  private showStack(): void {
    const { drawn, info } = this;
    if (!drawn || !info) return;
    const { rank, shown, stack, answer } = drawn;
    const { indexes, layers, meanStepSeconds: mean } = stack;
    if (indexes.length === 0) {
      this.hideCharts(true);
      fill(this.stackNote, drawn.range
        ? stateBox("empty", "No steps in this range", "They lie outside of it.", h("button", { type: "button", onclick: () => this.moves.all() }, "Show all"))
        : absenceBox(info, this.summary?.timings.length === 0 ? "timings" : "steps"));
      return;
    }
    const gaps = this.ownGaps(rank, answer, info);
    const bands = gapBands(gaps, shown, "timing", (shown.end - shown.start) / 100, "batch");
    // Many times a second, under who is on its link.
    patch(this.stackNote, h("p", { class: "muted" }, `A step takes ${secondsText(mean)} on average, ${valueText(1 / mean, "")} steps per second of stepping, ${rank === "all" ? "over all ranks" : rankText(Number(rank))}; the chart is its whole, 100 %.`),
      gapNote([{ name: "", trial: String(info.trial.trialId), gaps }], "timing"));
    const looks = layers.map((layer, at): LineLook => layer.name === unaccounted || layer.name === other
      ? { color: layer.name === other ? othersColor(theme()) : restColor(theme()), dash: [] } : { color: lineLook(at, theme()).color, dash: [] });
    const [start, width] = [Number(answer.start), Number(answer.width)];
    this.hideCharts(false);
    // What stands still is told as the table tells it: of all that is shown.
    const follows = isRunning(info) && drawn.range === null;
    const rest = (values: readonly string[]) => (follows ? {} : { rest: { words: "over all batches shown", values } });
    this.rate.show({ aligned: rateAligned(stack, start, width), names: ["steps per second of stepping"], unit: "1/s", range: shown, axis: "batch", bands, ...rest([valueText(1 / mean, "1/s")]) });
    this.chart.show({
      aligned: stackAligned(stack, start, width),
      names: layers.map((layer) => printable(layer.name)), unit: "share", range: shown, axis: "batch", bands, stacked: true, looks,
      ...rest(wholeShares(stack).map((share) => `${(share * 100).toFixed(1)} %`)),
    });
  }

  /** Of the rank that is shown, or of all; not those of a machine's sampler. */
  private ownGaps(shown: string, answer: QueryBucketsResponse, info: TrialInfo): KnownGap[] {
    const ranks = new Map(info.writers.map((writer) => [writer.writerNo, writer.rank]));
    return holes(answer).filter(({ writerNo }) => {
      const rank = ranks.get(writerNo);
      return rank === undefined || (shown === "all" ? rank >= 0 : rank === Number(shown));
    });
  }

  private showTables(): void {
    const { summary, info } = this;
    if (!summary || !info || !this.tableStands) return;
    // One box tells it: where the charts are.
    this.tables.hidden = summary.timings.length === 0;
    if (this.tables.hidden) return fill(this.tables);
    const ranks = this.rank() === "all" ? this.ranks() : [Number(this.rank())];
    const attempt = info.trial.attemptCount > 1 ? `, attempt ${summary.attempt}` : "";
    const batches = this.summed ? `, batches ${countText(this.summed.start)} to ${countText(this.summed.end - 1)}` : "";
    // Every few seconds, under who reads them.
    patch(this.tables,
      h("h2", {}, `Where a step's time goes${attempt}${batches}`),
      ranks.slice(0, ranksShownMax).map((rank) => this.table(summary, rank)),
      ranks.length > ranksShownMax && h("p", { class: "muted" }, `The first ${ranksShownMax} ranks are listed; CSV has all.`));
  }

  private table(summary: SummarizeTimingsResponse, rank: number): HTMLElement {
    const rows = sortedTimings(timingRows(summary, rank), this.sorting());
    const steps = summary.ranks.find((one) => one.rank === rank);
    const head = steps && steps.steps > 0n
      ? `${rankText(rank)}: ${plural(steps.steps, "step")} of ${secondsText(steps.stepSeconds / Number(steps.steps))}, ${secondsText(steps.stepSeconds)} in all` : rankText(rank);
    const largest = rows.reduce((most, row) => Math.max(most, row.share ?? 0), 1e-9);
    const sections: Part[] = [];
    let kind: TimingRow["kind"] | "" = "";
    for (const row of rows) {
      if ((row.kind === "device" || row.kind === "outside") && row.kind !== kind) {
        const title = row.kind === "device" ? "On the device's clock, per step" : "Outside the steps";
        sections.push(h("tr", {}, h("th", { scope: "colgroup", colspan: timingColumns.length + 1 }, title)));
      }
      kind = row.kind;
      sections.push(this.row(row, largest));
    }
    return scroller(`Timings, ${rankText(rank)}`, h("table", { class: "holds-first timings", "data-rank": rank },
      h("caption", { class: "muted" }, head),
      h("thead", {}, h("tr", {}, timingColumns.map((column) => this.head(column, rank)))),
      h("tbody", {}, sections)));
  }

  private sorting() {
    return parseSorting(this.view?.sort ?? "", timingColumns);
  }

  private head(column: TimingColumn, rank: number): Part {
    const press = () => this.change({ sort: formatSorting(pressed(this.sorting(), column, column === "scope")) });
    const head = sortHead(String(rank), column, heads[column], column !== "scope", this.sorting(), press);
    return column === "share" ? [head, h("th", { scope: "col", class: "bar-cell" }, h("span", { class: "visually-hidden" }, "Bar"))] : head;
  }

  private row(row: TimingRow, largest: number): HTMLElement {
    const bar = h("span", { class: "bar", "aria-hidden": "true" });
    bar.style.width = `${row.share === null ? 0 : Math.max(0, row.share / largest) * 100}%`;
    const timing = row.timing;
    const cell = (text: string, column = ""): HTMLElement => h("td", { class: column === "" ? "number" : `number of-${column}` }, text);
    return h("tr", { class: row.kind === "step" ? "total" : "", "data-key": JSON.stringify([row.kind, row.name, row.labels]) },
      h("td", { class: "name" }, named(printable(row.name)), row.labels !== "" && this.labels(row.labels)),
      cell(row.shareText), h("td", { class: "bar-cell" }, row.share === null ? null : bar),
      cell(row.selfSeconds === null ? "" : secondsText(row.selfSeconds)), cell(secondsText(row.totalSeconds)),
      cell(timing ? secondsText(timing.meanSeconds) : ""), (timing ? quantileTexts(timing) : ["", "", ""]).map((text) => cell(text)),
      cell(timing && timing.steps > 0n ? countText(timing.steps) : "", "steps"), cell(timing ? countText(timing.count) : "", "count"));
  }

  /** Three lines of them; who comes to longer ones by keys, or touches them, sees all. */
  private labels(text: string): HTMLElement {
    const stop = text.length > labelsInSight ? { tabindex: 0, "data-focus": "labels" } : {};
    return h("span", { class: "muted labels", title: text, ...stop }, " ", bdi(text));
  }

  private saveCsv(): void {
    const summary = this.summary;
    if (!summary) return;
    const rows = ranksOf(summary).flatMap((rank) => timingRows(summary, rank)).map(csvRow);
    download(`stepwell-trial-${this.view?.trial ?? ""}-timings.csv`, csvText(csvHead, rows));
  }

  private savePng(): void {
    const { drawn } = this;
    if (!this.info || !drawn) return;
    const rank = drawn.rank === "all" ? "all ranks" : rankText(Number(drawn.rank));
    savePng(`stepwell-trial-${this.view?.trial ?? ""}-timings.png`, `${trialName(this.info.trial)}, ${rank}, ${rangeWords(drawn.shown, "batch")}`, [this.chart.drawn(), this.rate.drawn()]);
  }
}

function scopeTotals(series: QueryBucketsResponse["series"][number]): ScopeTotals {
  return { name: series.key?.name ?? "", indexes: series.indexes, means: series.means, counts: series.counts.map(Number) };
}
