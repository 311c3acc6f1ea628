// One chart: lines with the smallest and largest of each bucket around them, declared gaps as hatched bands,
// a cursor shared with its neighbours, zoom by dragging or by keys, and in words what the cursor is on.
import uPlot from "uplot";
import type { Aligned, Extent } from "./core/align";
import { extentOf } from "./core/align";
import { batchSpace, batchSteps, byteSteps, endSpace, sideWidth, sincePlace, sinceSteps, sinceTexts, tickSpace, timeTick, yRange } from "./core/chart_axes";
import { lineStyle, paintBand, paintLone, paintOdd } from "./chart_paint";
import { bandAt, type GapBand } from "./core/gap_bands";
import type { Sight } from "./core/line_budget";
import { bucketWords, oddBands, summed, totalWords, type OddBand } from "./core/odd_values";
import { lineLook, type LineLook } from "./core/palette";
import { inSight, type AxisKind, type Range } from "./core/range";
import { clockText } from "./core/time_text";
import { countText, meanTexts, tickTexts, valueText } from "./core/units";
import { bdi, fill, h } from "./dom";
import { gapWords, longestWords } from "./gap_words";
import { LegendValue } from "./legend_value";
import { patch } from "./patch";
import type { Drawn } from "./picture";
import { swatch } from "./swatch";
import { css, theme } from "./theme";

export interface ChartData {
  readonly aligned: Aligned;
  readonly names: readonly string[];
  readonly unit: string;
  /** What is shown of the axis, in its units. */
  readonly range: Range;
  readonly axis: AxisKind;
  /** Words for the axis where it is neither UTC nor batches. */
  readonly axisName?: string;
  readonly bands: readonly GapBand[];
  /** Layers that lie on each other up to 1, not lines beside each other. */
  readonly stacked?: boolean;
  readonly looks?: readonly LineLook[];
  /** Which of the palette each line has, where that is not its place among them: a line keeps its colour when another ends. */
  readonly colors?: readonly number[];
  /** What is told of each line where no cursor is; else its newest value. */
  readonly rest?: { readonly words: string; readonly values: readonly string[] };
  /** Of the chart, in CSS pixels, where it is known: to ask for it lays out the page once for each chart. */
  readonly width?: number;
}

export interface ChartOptions {
  readonly title: string;
  /** Charts with one key share a cursor. */
  readonly syncKey: string;
  readonly height: number;
  /** Of the axis that what a person moves is drawn on: what is asked for meanwhile may be of another, and microseconds are no batches. */
  onZoom(range: Range, axis: AxisKind): void;
  onZoomBy(factor: number, center: number, axis: AxisKind): void;
  onPan(fraction: number, axis: AxisKind): void;
  onReset(): void;
}

const bandNamesMax = 12;
/** Of lines with something that no line shows, in words. */
const oddNamesMax = 3;
/** So near to what is seen a chart is drawn before somebody scrolls to it. */
const nearPixels = 200;
/** So far from a gap the pointer still means it. */
const pointedPixels = 5;

/** Also if the window is made larger. */
export function sightOf(chartHeight: number): Sight {
  return { height: Math.max(screen.height, innerHeight), chartHeight };
}

export class Chart {
  readonly element: HTMLElement;
  private readonly canvas = h("div", { class: "chart-canvas", tabindex: 0, role: "application" });
  private readonly legend = h("ul", { class: "legend" });
  private readonly place = h("p", { class: "chart-place" });
  /** What no line shows. */
  private readonly odd = h("p", { class: "odd-note", "data-odd": "", hidden: true });
  private readonly resize: ResizeObserver;
  private readonly sight: IntersectionObserver;
  private isSeen = true;
  /** Came while the chart was out of sight. */
  private unseen: (() => ChartData) | null = null;
  private plot: uPlot | null = null;
  private data: ChartData | null = null;
  private extent: Extent | null = null;
  private oddBands: readonly OddBand[] = [];
  private longestGap = "";
  private waiting: ChartData | null = null;
  private dragging = false;
  /** A drag began here: charts that share a cursor hear of its end, too. */
  private isOrigin = false;
  private shape = "";
  private values: LegendValue[] = [];

  constructor(private readonly options: ChartOptions) {
    this.element = h("figure", { class: "chart" }, this.odd, this.canvas, this.place, this.legend);
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    // Of all that share a cursor one is read out.
    this.canvas.addEventListener("focus", () => this.place.setAttribute("aria-live", "polite"));
    this.canvas.addEventListener("blur", () => this.place.removeAttribute("aria-live"));
    this.resize = new ResizeObserver(() => this.fitWidth());
    this.resize.observe(this.canvas);
    this.sight = new IntersectionObserver((looks) => this.looked(looks[looks.length - 1]?.isIntersecting ?? true), { rootMargin: `${nearPixels}px` });
    this.sight.observe(this.element);
    document.addEventListener("mouseup", this.released);
  }

  /** In CSS pixels; for how many buckets to ask. */
  width(): number {
    return this.canvas.clientWidth || 600;
  }

  /** What comes by itself, on the axis of before: made and drawn once somebody sees it. */
  follow(data: () => ChartData): void {
    if (this.isSeen || !this.plot) this.show(data());
    else this.unseen = data;
  }

  /** New data of the same lines change nothing else: a live chart keeps its cursor. While a person drags
   *  they wait. */
  show(data: ChartData): void {
    this.unseen = null;
    if (this.dragging) {
      this.waiting = data;
      return;
    }
    const shape = JSON.stringify([data.names, data.unit, data.axis, data.axisName, data.stacked, data.looks, data.colors, data.aligned.places.length < 3, theme()]);
    this.data = data;
    this.extent = extentOf(data.aligned.lines);
    this.longestGap = longestWords(data.bands);
    this.showOdd(data);
    if (this.plot && shape === this.shape) {
      this.plot.setData(this.plotData(data));
    } else {
      this.shape = shape;
      this.plot?.destroy();
      this.plot = new uPlot(this.plotOptions(data), this.plotData(data), this.canvas);
      this.plot.over.addEventListener("mousedown", (event) => {
        if (event.button === 0) this.dragging = this.isOrigin = true;
      });
      this.showLegend(data);
    }
    this.canvas.setAttribute("aria-label", this.summary(data));
    this.canvas.dataset["values"] = String(data.aligned.places.length * data.aligned.lines.length);
    this.showCursor();
  }

  /** As it is now; null where nothing is shown. */
  drawn(): Drawn | null {
    if (this.unseen) this.show(this.unseen());
    if (!this.plot || !this.data || this.element.hidden) return null;
    const lines = this.data.names.map((name, index) => ({ name, color: this.look(index).color }));
    return { title: this.options.title, canvas: this.plot.ctx.canvas, lines };
  }

  /** Colours of another theme. */
  redraw(): void {
    const data = this.unseen?.() ?? this.data;
    if (data) this.show(data);
  }

  private looked(isSeen: boolean): void {
    this.isSeen = isSeen;
    if (isSeen && this.unseen) this.show(this.unseen());
  }

  private readonly released = (): void => {
    if (!this.dragging) return;
    this.dragging = false;
    setTimeout(() => (this.isOrigin = false));
    const waiting = this.waiting;
    this.waiting = null;
    // After uPlot has heard of the release, too.
    if (waiting) setTimeout(() => this.plot && this.show(waiting));
  };

  destroy(): void {
    this.resize.disconnect();
    this.sight.disconnect();
    document.removeEventListener("mouseup", this.released);
    this.plot?.destroy();
    this.plot = null;
  }

  private look(index: number): LineLook {
    return this.data?.looks?.[index] ?? lineLook(this.data?.colors?.[index] ?? index, theme());
  }

  /** What no line shows: most charts have none of it. */
  private showOdd(data: ChartData): void {
    const told = data.aligned.lines.flatMap(({ total }, at) => (total ? [{ total, name: data.names[at] ?? "" }] : []));
    if (told.length === 0) {
      this.oddBands = [];
      this.odd.hidden = true;
      return;
    }
    this.oddBands = oddBands(data.aligned);
    const names = data.names.length < 2 ? [] : told.slice(0, oddNamesMax).map(({ name }) => name);
    const more = told.length > names.length && names.length > 0 ? ` and ${told.length - names.length} more` : "";
    this.odd.hidden = false;
    const words = totalWords(summed(told.map(({ total }) => total)));
    // Counted are samples of these lines: it begins with which they are.
    patch(this.odd, names.map((name, at) => [at > 0 && ", ", bdi(name)]), more, names.length > 0 ? `: ${words}` : `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`);
  }

  private summary(data: ChartData): string {
    const { extent } = this;
    const range = extent ? `between ${valueText(extent.min, data.unit)} and ${valueText(extent.max, data.unit)}` : this.odd.hidden ? "no values" : "no finite values";
    const odd = this.odd.hidden ? "" : `${this.odd.textContent ?? ""}. `;
    return `${this.options.title}: ${data.names.length} ${data.names.length === 1 ? "line" : "lines"}, ${range}. ${odd}` +
      "Arrow keys move the cursor, plus and minus zoom, page up and down pan, Home shows all.";
  }

  // Seconds for uPlot's axis of time, batches as they are.
  private toPlot(place: number): number {
    return this.data?.axis === "time" ? place / 1e6 : place;
  }

  private fromPlot(place: number): number {
    return this.data?.axis === "time" ? place * 1e6 : place;
  }

  private plotRange(): [number, number] {
    const range = this.data?.range ?? { start: 0, end: 1 };
    return [this.toPlot(range.start), this.toPlot(range.end)];
  }

  private plotData(data: ChartData): uPlot.AlignedData {
    const columns = data.aligned.lines.map((line) => line.means);
    return [inSight(data.aligned.places, data.range.end).map((place) => this.toPlot(place)), ...columns] as uPlot.AlignedData;
  }

  private plotOptions(data: ChartData): uPlot.Options {
    const series: uPlot.Series[] = [{}];
    const bands: uPlot.Band[] = [];
    data.names.forEach((_, index) => {
      const look = this.look(index);
      const points = { show: false };
      if (data.stacked) {
        series.push({ stroke: css("--panel"), width: 1, fill: index === 0 ? look.color : undefined, points } as uPlot.Series);
        if (index > 0) bands.push({ series: [index + 1, index], fill: look.color });
        return;
      }
      // A single sample has no line: it is shown as a point.
      series.push({ stroke: look.color, ...lineStyle(data.names.length), dash: [...look.dash], points: { show: data.aligned.places.length < 3, size: 6 } });
    });
    const axisStyle = { stroke: css("--muted"), grid: { stroke: css("--grid"), width: 1 }, ticks: { stroke: css("--grid"), width: 1 }, font: "12px system-ui, sans-serif" };
    const unit = data.stacked ? "share" : data.unit;
    const isSince = data.axis === "time" && data.axisName !== undefined;
    const texts = (ticks: number[]): string[] => unit === "share" ? ticks.map((tick) => `${Math.round(tick * 100)} %`) : tickTexts(ticks, unit);
    return {
      width: data.width ?? this.width(),
      height: this.options.height,
      legend: { show: false },
      padding: [null, () => endSpace(data.axis, this.plotRange()[1] - this.plotRange()[0]), null, null],
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC"),
      cursor: {
        sync: { key: this.options.syncKey, scales: ["x", null] },
        drag: { x: true, y: false, setScale: false },
        y: false,
        points: { show: false },
        bind: { dblclick: () => () => (this.options.onReset(), null) },
      },
      scales: {
        x: { time: data.axis === "time" && data.axisName === undefined, range: () => this.plotRange() },
        y: data.stacked ? { range: [0, 1] } : { range: () => yRange(this.extent, data.unit) },
      },
      axes: [
        { ...axisStyle, size: 34, space: (_, __, min, max, width) => (data.axis === "batch" ? batchSpace(min, max, width) : tickSpace(data.axis, max - min, isSince ? Infinity : width)),
          values: (_, ticks, __, ___, step) => this.axisTexts(ticks, step), ...(data.axis === "batch" ? { incrs: batchSteps } : isSince ? { incrs: sinceSteps } : {}) },
        { ...axisStyle, size: (_, shown) => sideWidth(shown), space: this.options.height < 160 ? 18 : 30, values: (_, ticks) => texts(ticks), ...(unit.startsWith("bytes") ? { incrs: byteSteps } : {}) },
      ],
      series,
      bands,
      hooks: {
        // Layers of a stack would hide what lies under them.
        drawClear: [(plot) => data.stacked || this.drawGaps(plot)],
        draw: [(plot) => (data.stacked ? this.drawGaps(plot) : this.drawLone(plot))],
        drawAxes: [(plot) => this.drawBands(plot)],
        setCursor: [() => this.showCursor()],
        setSelect: [(plot) => this.onSelect(plot)],
      },
    };
  }

  private axisTexts(ticks: number[], step: number): string[] {
    if (this.data?.axisName !== undefined && this.data.axis === "time") return sinceTexts(ticks, step);
    if (this.data?.axis === "time") return ticks.map((tick) => timeTick(tick, step));
    return ticks.map((tick) => (Number.isInteger(tick) ? countText(tick) : ""));
  }

  private onSelect(plot: uPlot): void {
    if (plot.select.width < 5) return;
    const start = this.fromPlot(plot.posToVal(plot.select.left, "x"));
    const end = this.fromPlot(plot.posToVal(plot.select.left + plot.select.width, "x"));
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    if (this.isOrigin && this.data) this.options.onZoom({ start, end }, this.data.axis);
  }

  private onKey(event: KeyboardEvent): void {
    const { plot, data } = this;
    if (!plot || !data || event.ctrlKey || event.metaKey || event.altKey) return;
    const width = plot.over.clientWidth;
    const left = plot.cursor.left ?? -1;
    const at = left < 0 ? width / 2 : left;
    const by = (factor: number) => (): void => this.options.onZoomBy(factor, this.fromPlot(plot.posToVal(at, "x")), data.axis);
    const moves: Record<string, () => void> = {
      ArrowLeft: () => this.moveCursor(-1),
      ArrowRight: () => this.moveCursor(1),
      "+": by(0.5), "=": by(0.5), "-": by(2),
      PageUp: () => this.options.onPan(-0.5, data.axis),
      PageDown: () => this.options.onPan(0.5, data.axis),
      Home: () => this.options.onReset(),
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
  }

  private moveCursor(by: number): void {
    const plot = this.plot;
    const places = plot?.data[0] ?? [];
    if (!plot || places.length === 0) return;
    const index = plot.cursor.idx ?? Math.floor(places.length / 2);
    const next = Math.min(places.length - 1, Math.max(0, index + by));
    plot.setCursor({ left: plot.valToPos(places[next] ?? 0, "x"), top: 1 });
  }

  private drawGaps(plot: uPlot): void {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const band of this.data?.bands ?? []) {
      const left = plot.valToPos(this.toPlot(band.start), "x", true);
      const width = Math.max(3, plot.valToPos(this.toPlot(band.end), "x", true) - left);
      ctx.fillStyle = css("--gap");
      ctx.fillRect(left, bbox.top, width, bbox.height);
      ctx.strokeStyle = css("--gap-line");
      ctx.lineWidth = 1;
      ctx.save();
      ctx.beginPath();
      ctx.rect(left, bbox.top, width, bbox.height);
      ctx.clip();
      ctx.beginPath();
      for (let x = left - bbox.height; x < left + width; x += 10) {
        ctx.moveTo(x, bbox.top + bbox.height);
        ctx.lineTo(x + bbox.height, bbox.top);
      }
      ctx.stroke();
      ctx.restore();
    }
    ctx.restore();
  }

  /** Under the lines. */
  private drawBands(plot: uPlot): void {
    const { data } = this;
    const { ctx, bbox } = plot;
    if (!data || data.stacked) return;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    if (this.oddBands.length > 0) paintOdd(plot, this.oddBands.map((band) => ({ ...band, start: this.toPlot(band.start), end: this.toPlot(band.end) })), css("--bad"));
    data.aligned.lines.forEach((line, index) => paintBand(plot, plot.data[0], line, this.look(index).color + (theme() === "dark" ? "40" : "30")));
    ctx.restore();
  }

  private drawLone(plot: uPlot): void {
    this.data?.aligned.lines.forEach((line, index) => line.odd.size > 0 && paintLone(plot, plot.data[0], line, this.look(index).color));
  }

  private showLegend(data: ChartData): void {
    this.values = data.names.map(() => new LegendValue());
    const items = data.names.map((name, index) => {
      return h("li", {}, swatch(this.look(index), data.stacked), name !== "" && bdi(name, name), this.values[index]?.element ?? null);
    });
    fill(this.legend, items);
    this.legend.classList.toggle("rows", !data.stacked && data.names.length > 1);
    this.legend.classList.toggle("many", data.names.length > bandNamesMax);
  }

  /** The bucket under the cursor, else what is told at rest: by itself the newest one of each line. */
  private showCursor(): void {
    const data = this.data;
    if (!data || this.values.length !== data.names.length) return;
    const index = this.plot?.cursor.idx ?? null;
    const at = index === null ? null : data.aligned.places[index] ?? null;
    const rest = index === null ? data.rest : undefined;
    data.aligned.lines.forEach((line, which) => {
      const words: readonly [string, string, boolean?] = rest ? [rest.values[which] ?? "–", ""] : this.valueWords(line, which, index);
      this.values[which]?.show(...words);
    });
    const left = this.plot?.cursor.left ?? -1;
    const pointed = at === null || !this.plot || left < 0 ? null : this.fromPlot(this.plot.posToVal(left, "x"));
    // Told in the chart that a person is on, not in all that share its cursor. Only there its width is asked
    // for: that lays the page out.
    const band = pointed === null || data.bands.length === 0 || !this.element.matches(":hover, :focus-within") ? null : this.bandNear(data, pointed);
    const words = at === null ? rest?.words ?? (data.aligned.hasMeans ? "newest means" : "newest values") : this.placeWords(at, data);
    fill(this.place, words, gapWords(this.longestGap, band));
  }

  private bandNear(data: ChartData, pointed: number): GapBand | null {
    const slack = ((data.range.end - data.range.start) * pointedPixels) / Math.max(1, this.plot?.over.clientWidth ?? 1);
    return bandAt(data.bands, pointed, slack);
  }

  private valueWords(line: Aligned["lines"][number], which: number, index: number | null): [value: string, range: string, isOdd?: boolean] {
    const data = this.data;
    if (!data) return ["", ""];
    const at = index ?? line.last;
    const odd = line.odd.get(at);
    if (odd) {
      const { value, range } = bucketWords(odd, data.unit);
      return [value, range, true];
    }
    const mean = line.means[at];
    if (typeof mean !== "number") return ["–", ""];
    if (data.stacked) {
      const below = which === 0 ? 0 : data.aligned.lines[which - 1]?.means[at] ?? 0;
      return [`${((mean - below) * 100).toFixed(1)} %`, ""];
    }
    return meanTexts(mean, line.mins[at] ?? mean, line.maxs[at] ?? mean, data.unit);
  }

  private placeWords(at: number, data: ChartData): string {
    if (data.axis === "batch") return `batch ${countText(Math.floor(at))}`;
    if (data.axisName !== undefined) return `${data.axisName} ${sincePlace(at / 1e6, (data.range.end - data.range.start) / 1e6)}`;
    return `${clockText(at, data.range.end - data.range.start)} UTC`;
  }

  private fitWidth(): void {
    const width = this.canvas.clientWidth;
    if (this.plot && width > 0 && Math.abs(width - this.plot.width) > 1) this.plot.setSize({ width, height: this.options.height });
  }
}
