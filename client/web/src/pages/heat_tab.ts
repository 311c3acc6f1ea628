// Ranks (or agents, GPUs) over time for one metric or scope: a straggler is a bright row.
import type { QueryBucketsResponse } from "#gen/query_pb";
import { Aggregation } from "#gen/query_pb";
import { ask, query } from "../api";
import { axisOf, coveredRange } from "../buckets";
import { refill } from "../choice";
import { cellAt, heatFraction, heatGrid, type HeatGrid } from "../core/heat";
import { heatColor } from "../core/palette";
import { printable } from "../core/printable";
import { bucketCount, type Range } from "../core/range";
import { metricId, type KnownSeries } from "../core/series_choice";
import { clockText } from "../core/time_text";
import { countText, valueText } from "../core/units";
import type { TrialView } from "../core/view_state";
import { bdi, fill, h } from "../dom";
import type { Failure } from "../failure";
import { heatDrawn } from "../heat_picture";
import { loop, type Loop, type Outcome } from "../loop";
import type { Go } from "../page";
import { savePng } from "../picture";
import { linkButton, RangeMoves, rangeStatus, rangeTools, rangeWords, toolsKey, type ChangeView } from "../range_tools";
import { failureBox, loadingBox, stateBox } from "../state_box";
import { absenceBox, endedWords, isRunning, timeBounds, type TrialInfo, type TrialTab } from "../trial_info";
import { trialName } from "../words";

const runningMs = 4000;
const rowLabels = ["rank", "agent", "device"];
const usual = "timing/step";

export class HeatTab implements TrialTab {
  readonly element = h("section", { class: "through", "aria-label": "Heat map" });
  private readonly tools = h("div", { class: "tools" });
  private readonly status = h("div", { class: "tools status" });
  private readonly place = h("div", {}, loadingBox("the heat map"));
  private readonly words = h("p", { class: "chart-place", "aria-live": "polite" });
  private readonly canvas = h("canvas", { tabindex: 0, role: "application" });
  private readonly moves: RangeMoves;
  private readonly loop: Loop;
  private view: TrialView | null = null;
  private info: TrialInfo | null = null;
  private asked = "";
  private shown: Range | null = null;
  private whole: Range | null = null;
  private grid: HeatGrid | null = null;
  private answer: QueryBucketsResponse | null = null;
  private at = { row: 0, column: 0 };

  constructor(private readonly go: Go) {
    this.moves = new RangeMoves(() => this.rangeState(), this.change);
    fill(this.element, h("div", { class: "panel" }, this.tools, this.status), h("section", { class: "panel heat" }, this.place));
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    this.loop = loop(() => runningMs, (signal) => this.look(signal), (failure) => this.showFailure(failure));
  }

  update(view: TrialView, info: TrialInfo): void {
    if (this.view && view.axis !== this.view.axis) this.shown = this.whole = null;
    this.view = view;
    this.info = info;
    this.showTools();
    const question = JSON.stringify([view.axis, view.start, view.end, view.liveUs, this.metric(), isRunning(info), info.series.length]);
    if (question !== this.asked) {
      this.asked = question;
      this.loop.now();
    }
  }

  destroy(): void {
    this.loop.stop();
  }

  private readonly change: ChangeView = (change, how = "replace") => {
    if (this.view) this.go({ ...this.view, ...change }, how);
  };

  private rangeState() {
    const view = this.view as TrialView;
    const bounds = view.axis === "time" && this.info ? timeBounds(this.info.trial) : this.whole;
    return { view, shown: this.shown, bounds, running: this.info !== null && isRunning(this.info), ended: endedWords(this.info), follow: "live" as const };
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

  private showTools(): void {
    const state = this.rangeState();
    fill(this.status, rangeStatus(state));
    refill(this.tools, toolsKey(state, this.metrics().length, this.grid !== null), () => {
      const metric = h("select", { "aria-label": "Metric or scope", "data-focus": "metric", onchange: () => this.change({ metrics: [metric.value] }, "push") },
        this.metrics().map((id) => h("option", { value: id }, printable(id))));
      metric.value = this.metric();
      return [metric, ...rangeTools(state, this.moves, this.change, ["time", "batch"]), h("span", { class: "space" }),
        h("button", { type: "button", "data-focus": "png", disabled: !this.grid, onclick: () => this.savePng() }, "PNG"), linkButton()];
    });
  }

  private series(): KnownSeries[] {
    const id = this.metric();
    return (this.info?.series ?? []).filter((series) => metricId(series) === id);
  }

  private async look(signal: AbortSignal): Promise<Outcome> {
    const { view, info } = this;
    if (!view || !info) return "stop";
    const series = this.series();
    const first = series[0];
    if (!first) {
      fill(this.place, absenceBox(info, "series"));
      return isRunning(info) ? "fine" : "stop";
    }
    const labels = rowLabels.filter((name) => series.some((one) => one.labels[name] !== undefined));
    // Ranks tell machines apart already; rows of machines are told apart by their GPUs.
    const groupBy = labels.includes("rank") ? ["rank"] : labels;
    const range = view.start !== null && view.end !== null ? { start: view.start, end: view.end }
      : view.liveUs > 0 && view.axis === "time" ? { start: Math.max(timeBounds(info.trial).start, timeBounds(info.trial).end - view.liveUs), end: timeBounds(info.trial).end } : null;
    const answer = await ask((options) => query.queryBuckets({
      trial: { trialId: info.trial.trialId }, selectors: [{ metricGroup: first.metricGroup, name: first.name }], axis: axisOf(view.axis, range),
      aggregation: Aggregation.ACROSS, groupBy, maxBuckets: Math.min(1200, bucketCount((this.place.clientWidth || 800) / 3, series.length * 2, range)),
    }, options), signal);
    if (!answer) return "fine";
    if (!answer.ok) return this.showFailure(answer.failure);
    this.answer = answer.value;
    const covered = coveredRange(answer.value);
    if (range === null) this.whole = covered;
    this.shown = range ?? covered;
    this.show(groupBy, first);
    this.showTools();
    return isRunning(info) && view.start === null ? "fine" : "stop";
  }

  private showFailure(failure: Failure): Outcome {
    if (failure.kind !== "lost" || !this.grid) fill(this.place, failureBox(failure, () => this.loop.now()));
    return failure.passing ? "failed" : "stop";
  }

  private show(groupBy: readonly string[], metric: KnownSeries): void {
    const order = new Intl.Collator("en", { numeric: true });
    const rows = (this.answer?.series ?? []).map((series) => ({
      name: groupBy.map((name) => `${name} ${series.key?.labels[name] ?? "–"}`).join(", ") || "all",
      indexes: series.indexes, values: series.means,
    })).sort((a, b) => order.compare(a.name, b.name));
    this.grid = heatGrid(rows);
    const grid = this.grid;
    if (!grid) {
      fill(this.place, stateBox("empty", "No samples in this range", "They lie outside of it, or have no batch: choose another axis or all.", h("button", { type: "button", onclick: () => this.moves.all() }, "Show all")));
      return;
    }
    this.at = { row: Math.min(this.at.row, grid.rows.length - 1), column: Math.min(this.at.column, grid.columnCount - 1) };
    fill(this.place,
      h("div", { class: "chart-head" }, h("h2", {}, bdi(printable(metric.name)), ` by ${groupBy.join(" and ") || "nothing that tells series apart"}`), scale(grid, metric.unit)),
      h("p", { class: "muted" }, `${countText(grid.rows.length)} ${grid.rows.length === 1 ? "row" : "rows"}: ${printable(grid.rows[0] ?? "")} on top${grid.rows.length > 1 ? `, ${printable(grid.rows[grid.rows.length - 1] ?? "")} at the bottom` : ""}. Each cell is a mean.`),
      this.canvas, this.words);
    this.canvas.setAttribute("aria-label", `Heat map of ${metric.name}, ${grid.rows.length} rows. Arrow keys move from cell to cell.`);
    this.draw(grid);
    this.say();
  }

  private draw(grid: HeatGrid): void {
    this.canvas.width = grid.columnCount;
    this.canvas.height = grid.rows.length;
    this.canvas.style.height = `${Math.min(640, Math.max(28 * Math.min(grid.rows.length, 8), grid.rows.length * 3))}px`;
    const context = this.canvas.getContext("2d");
    if (!context) return;
    for (let row = 0; row < grid.rows.length; ++row) {
      for (let column = 0; column < grid.columnCount; ++column) {
        const value = cellAt(grid, row, column);
        if (Number.isNaN(value)) continue;
        context.fillStyle = heatColor(heatFraction(grid, value));
        context.fillRect(column, row, 1, 1);
      }
    }
  }

  private point(event: PointerEvent): void {
    const grid = this.grid;
    if (!grid) return;
    const box = this.canvas.getBoundingClientRect();
    this.at = {
      row: Math.min(grid.rows.length - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * grid.rows.length))),
      column: Math.min(grid.columnCount - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * grid.columnCount))),
    };
    this.say();
  }

  private onKey(event: KeyboardEvent): void {
    const grid = this.grid;
    const moves: Record<string, readonly [number, number]> = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const move = moves[event.key];
    if (!grid || !move) return;
    event.preventDefault();
    this.at = {
      row: Math.min(grid.rows.length - 1, Math.max(0, this.at.row + move[0])),
      column: Math.min(grid.columnCount - 1, Math.max(0, this.at.column + move[1])),
    };
    this.say();
  }

  /** Where the column begins. */
  private where(column: number): string {
    const { grid, answer, view, shown } = this;
    if (!grid || !answer || !view || !shown) return "";
    const place = Number(answer.start) + (grid.firstIndex + column) * Number(answer.width);
    return view.axis === "time" ? `${clockText(place, shown.end - shown.start)} UTC` : `batch ${countText(place)}`;
  }

  private savePng(): void {
    const { grid, info, view, shown } = this;
    if (!grid || !info || !view || !shown) return;
    const unit = this.series()[0]?.unit ?? "";
    const drawn = heatDrawn({
      title: `${printable(this.metric())}, mean of each cell`, cells: this.canvas, rows: grid.rows, ends: [this.where(0), this.where(grid.columnCount - 1)],
      extremes: [valueText(grid.low, unit), valueText(grid.high, unit)], scale: scaleCanvas(),
    });
    savePng(`stepwell-trial-${view.trial}-heat.png`, `${trialName(info.trial)}, ${rangeWords(shown, view.axis)}`, [drawn]);
  }

  private say(): void {
    const { grid } = this;
    if (!grid) return;
    const value = cellAt(grid, this.at.row, this.at.column);
    const where = this.where(this.at.column);
    if (where === "") return;
    const unit = this.series()[0]?.unit ?? "";
    this.words.textContent = `${printable(grid.rows[this.at.row] ?? "")}, ${where}: ${Number.isNaN(value) ? "no samples" : valueText(value, unit)}`;
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
  return h("div", { class: "heat-scale" }, valueText(grid.low, unit), scaleCanvas(), valueText(grid.high, unit));
}
