// Two trials or more side by side: the mean of each scope and metric with its change from the first, and
// a chart of those that are opened, by batch or by the time since each began.
import type { CompareTrialsResponse, CompareTrialsResponse_ComparedSeries as Compared } from "#gen/compare_pb";
import { CompareAxis } from "#gen/compare_pb";
import { SeriesKind, type Trial } from "#gen/model_pb";
import { ask, query } from "../api";
import { stateBadge } from "../badges";
import { Chart } from "../chart";
import { aligned } from "../core/align";
import { changeOf, largestChange, type Side } from "../core/compared";
import { printable, shortened } from "../core/printable";
import type { Range } from "../core/range";
import { metricId } from "../core/series_choice";
import { valueText } from "../core/units";
import { formatView, trialView, type CompareView, type View } from "../core/view_state";
import { bdi, fill, h, scroller } from "../dom";
import type { Failure } from "../failure";
import { loop, type Loop, type Outcome } from "../loop";
import type { Go, Page } from "../page";
import { savePng } from "../picture";
import { linkButton } from "../range_tools";
import { failureBox, loadingBox, stateBox } from "../state_box";
import { onTheme } from "../theme";
import { trialName } from "../words";

const refreshMs = 10_000;
const chartHeight = 240;
const rowsMax = 400;
const headMax = 160;
const usualCharts = ["timing/step", "training/loss"];

function side(of: Compared["sides"][number] | undefined): Side {
  return { count: Number(of?.count ?? 0n), mean: of?.mean ?? 0, ratio: of?.meanRatio ?? 0 };
}

function isTiming(series: Compared): boolean {
  return series.kind === SeriesKind.DURATION && series.key?.metricGroup === "timing";
}

export class ComparePage implements Page {
  readonly title = "Compare";
  readonly element = h("div", { class: "through" });
  private readonly head = h("section", { class: "panel" });
  private readonly charts = h("div", { class: "charts" });
  private readonly table = h("section", { class: "panel" });
  private readonly loop: Loop;
  private readonly unTheme = onTheme(() => this.drawn.forEach((chart) => chart.redraw()));
  private readonly filter = h("input", { type: "search", placeholder: "scope or metric …", "aria-label": "Filter", oninput: () => this.showTable() });
  private drawn: Chart[] = [];
  private answer: CompareTrialsResponse | null = null;
  private found: readonly Trial[] = [];
  private range: Range | null = null;

  constructor(private view: CompareView, private readonly go: Go) {
    fill(this.element, this.head, this.charts, this.table);
    this.showHead();
    this.loop = loop(() => refreshMs, (signal) => this.look(signal), (failure) => this.showFailure(failure));
    if (view.trials.length >= 2) fill(this.table, loadingBox("the comparison"));
    else this.table.hidden = true;
  }

  update(view: View): boolean {
    if (view.page !== "compare") return false;
    if (formatView(view) === formatView(this.view)) return true;
    if (view.axis !== this.view.axis) this.range = null;
    this.view = view;
    this.showHead();
    this.loop.now();
    return true;
  }

  destroy(): void {
    this.loop.stop();
    this.unTheme();
    this.drawn.forEach((chart) => chart.destroy());
  }

  private change(change: Partial<CompareView>): void {
    this.go({ ...this.view, ...change }, "replace");
  }

  private name(id: string): string {
    const of = this.answer?.trials.find((one) => String(one.trial?.trialId) === id)?.trial ?? this.found.find((one) => String(one.trialId) === id);
    return of ? trialName(of) : `trial ${id}`;
  }

  private showHead(): void {
    const { trials, axis } = this.view;
    const open = this.found.filter((trial) => !trials.includes(String(trial.trialId)));
    const add = h("select", { "aria-label": "Add a trial", onchange: () => add.value !== "" && this.change({ trials: [...trials, add.value] }) },
      h("option", { value: "" }, trials.length === 0 ? "Choose a trial …" : "Add a trial …"), open.map((trial) => h("option", { value: String(trial.trialId) }, trialName(trial))));
    add.disabled = trials.length >= 16;
    const item = (id: string, at: number): HTMLElement => h("li", { class: "line" },
      h("a", { href: formatView(trialView(id)) }, bdi(this.name(id))), at === 0 ? h("span", { class: "muted" }, " what the others are compared with ") : " ",
      this.stateOf(id), " ",
      at > 0 && h("button", { type: "button", onclick: () => this.change({ trials: [id, ...trials.filter((one) => one !== id)] }) }, "Make first"), " ",
      h("button", { type: "button", "aria-label": `Remove ${this.name(id)}`, onclick: () => this.change({ trials: trials.filter((one) => one !== id) }) }, "Remove"));
    const axisButton = (one: CompareView["axis"], text: string): HTMLElement =>
      h("button", { type: "button", "aria-pressed": String(axis === one), onclick: () => this.change({ axis: one }) }, text);
    fill(this.head, h("h1", {}, "Compare"), h("ol", { class: "compared" }, trials.map(item)),
      h("div", { class: "tools" }, add, h("span", { class: "group", role: "group", "aria-label": "Axis" }, axisButton("batch", "By batch"), axisButton("time", "By time since start")),
        this.range && h("button", { type: "button", onclick: () => this.zoom(null) }, "Show all"), h("span", { class: "space" }),
        h("button", { type: "button", disabled: !this.answer || trials.length < 2, onclick: () => this.savePng() }, "PNG"), linkButton()),
      trials.length < 2 && stateBox("empty", "Choose two trials or more", "Here, or by their boxes in the list of trials. The first is what the others are compared with."));
  }

  private stateOf(id: string): HTMLElement | null {
    const trial = this.answer?.trials.find((one) => String(one.trial?.trialId) === id)?.trial;
    return trial ? stateBadge(trial.state) : null;
  }

  private zoom(range: Range | null): void {
    this.range = range ? { start: Math.max(0, Math.floor(range.start)), end: Math.ceil(range.end) } : null;
    this.showHead();
    this.loop.now();
  }

  private savePng(): void {
    const { trials, axis } = this.view;
    const head = `${trials.map((id) => this.name(id)).join(", ")}, by ${axis === "batch" ? "batch" : "time since start"}`;
    savePng(`stepwell-compare-${trials.join("-")}.png`, shortened(head, headMax), this.drawn.map((chart) => chart.drawn()));
  }

  private async look(signal: AbortSignal): Promise<Outcome> {
    const listed = await ask((options) => query.listTrials({ pageSize: 200 }, options), signal);
    if (!listed) return "fine";
    if (listed.ok) {
      const before = this.found.map((trial) => trial.trialId).join();
      this.found = listed.value.trials;
      if (before !== this.found.map((trial) => trial.trialId).join()) this.showHead();
    }
    const { trials, axis } = this.view;
    this.table.hidden = trials.length < 2;
    this.charts.hidden = trials.length < 2;
    if (trials.length < 2) return "fine";
    const answer = await ask((options) => query.compareTrials({
      trials: trials.map((id) => ({ trialId: BigInt(id) })), axis: axis === "batch" ? CompareAxis.BATCH : CompareAxis.TIME_SINCE_START,
      start: BigInt(this.range?.start ?? 0), end: BigInt(this.range?.end ?? 0), maxBuckets: 300,
    }, options), signal);
    if (!answer) return "fine";
    if (!answer.ok) return this.showFailure(answer.failure);
    this.answer = answer.value;
    this.showHead();
    this.showCharts();
    this.showTable();
    return "fine";
  }

  private showFailure(failure: Failure): Outcome {
    if (failure.kind !== "lost" || !this.answer) fill(this.table, failureBox(failure, () => this.loop.now()));
    return failure.passing ? "failed" : "stop";
  }

  private opened(): string[] {
    return this.view.metrics.length > 0 ? [...this.view.metrics] : usualCharts;
  }

  private showCharts(): void {
    const answer = this.answer;
    if (!answer) return;
    this.drawn.forEach((chart) => chart.destroy());
    this.drawn = [];
    const cards: HTMLElement[] = [];
    const width = Number(answer.width);
    const last = answer.series.reduce((largest, series) => series.sides.reduce((most, one) => Math.max(most, one.indexes[one.indexes.length - 1] ?? 0), largest), 0);
    const whole = { start: Number(answer.start), end: Number(answer.start) + (last + 1) * width };
    // Charts stand until those of another axis are there: microseconds are no batches.
    const { axis } = this.view;
    const zoom = (range: Range): void => {
      if (this.view.axis === axis) this.zoom(range);
    };
    for (const series of answer.series) {
      if (!series.key || !this.opened().includes(metricId(series.key))) continue;
      const by = (factor: number, center: number): void => zoom({ start: center - ((whole.end - whole.start) * factor) / 2, end: center + ((whole.end - whole.start) * factor) / 2 });
      const chart = new Chart({
        title: series.key.name, syncKey: "compare", height: chartHeight,
        onZoom: (range) => zoom(range), onZoomBy: by, onReset: () => this.zoom(null),
        onPan: (fraction) => zoom({ start: whole.start + (whole.end - whole.start) * fraction, end: whole.end + (whole.end - whole.start) * fraction }),
      });
      this.drawn.push(chart);
      cards.push(h("section", { class: "panel", "data-metric": metricId(series.key) },
        h("div", { class: "chart-head" }, h("h3", {}, bdi(printable(series.key.name))), h("span", { class: "muted" }, bdi(printable(series.key.metricGroup)))), chart.element));
      const data = aligned(series.sides.map((one) => ({ indexes: one.indexes, mins: one.mins, maxs: one.maxs, means: one.means })), whole.start, width);
      queueMicrotask(() => chart.show({
        aligned: data, names: this.view.trials.map((id) => this.name(id)), unit: series.unit, range: whole, axis: this.view.axis,
        ...(this.view.axis === "time" ? { axisName: "since start" } : {}), bands: [],
      }));
    }
    fill(this.charts, cards);
  }

  private showTable(): void {
    const answer = this.answer;
    if (!answer) return;
    const filter = this.filter.value.trim().toLowerCase();
    const first = (series: Compared): Side => side(series.sides[0]);
    const rows = answer.series
      .filter((series) => series.key && !(series.key.metricGroup === "timing" && series.kind !== SeriesKind.DURATION))
      .filter((series) => filter === "" || metricId(series.key ?? { metricGroup: "", name: "" }).toLowerCase().includes(filter))
      .sort((a, b) => Number(isTiming(b)) - Number(isTiming(a))
        || (isTiming(a) ? largestChange(first(b), b.sides.map(side)) - largestChange(first(a), a.sides.map(side)) : 0));
    const focused = document.activeElement === this.filter;
    fill(this.table,
      h("div", { class: "chart-head" }, h("h2", {}, "Means, and their change from the first trial"), this.filter),
      rows.length === 0 ? stateBox("empty", "Nothing to compare", "No scope or metric of these trials matches, or none has samples on this axis.")
        : scroller("Comparison", h("table", {},
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Chart"), h("th", { scope: "col" }, "Scope or metric"),
            this.view.trials.map((id) => h("th", { scope: "col", class: "number" }, bdi(this.name(id)))))),
          h("tbody", {}, rows.slice(0, rowsMax).map((series) => this.row(series))))),
      rows.length > rowsMax && h("p", { class: "muted" }, `The first ${rowsMax} are listed: filter for others.`));
    if (focused) this.filter.focus();
  }

  private row(series: Compared): HTMLElement {
    const id = series.key ? metricId(series.key) : "";
    const box = h("input", { type: "checkbox", "aria-label": `Chart of ${id}`, onchange: () => {
      const rest = this.opened().filter((one) => one !== id);
      this.change({ metrics: box.checked ? [...rest, id] : rest });
    } });
    box.checked = this.opened().includes(id);
    const first = side(series.sides[0]);
    const cells = series.sides.map((one, at) => {
      const { text, tone } = at === 0 ? { text: "", tone: 0 } : changeOf(first, side(one), isTiming(series));
      return h("td", { class: "number" }, one.count === 0n ? h("span", { class: "muted" }, "none") : valueText(one.mean, series.unit),
        text !== "" && h("span", { class: tone > 0 ? "better" : tone < 0 ? "worse" : "muted" }, ` ${text}`));
    });
    return h("tr", {}, h("td", {}, box), h("td", { class: "name" }, bdi(printable(series.key?.name ?? "")), h("span", { class: "muted" }, " ", bdi(printable(series.key?.metricGroup ?? "")))), cells);
  }
}
