// A heat map on the screen: a picture of its cells, gaps hatched over it, the cell that a person is on marked
// and told in words; dragging and keys zoom, as in a chart.
import { cellAt, cellSeen, heatPicture, heatPixels, heatSize, oddAt, samplesAt, type HeatGrid, type HeatPicture, type Worst } from "./core/heat";
import { gapTextsAt, type HeatGaps } from "./core/heat_gaps";
import { heatTicks, type HeatTick } from "./core/heat_ticks";
import { meanText, nanPart, totalWords } from "./core/odd_values";
import { farPixels, heatColors } from "./core/palette";
import { printable, shortened } from "./core/printable";
import type { AxisKind, Range } from "./core/range";
import { clockText } from "./core/time_text";
import { countText, rangeText, valueText } from "./core/units";
import { bdi, fill, h } from "./dom";
import { paintOver, reachOf } from "./heat_over";
import { onTheme } from "./theme";

export interface HeatData {
  /** For those who do not see it. */
  readonly title: string;
  readonly grid: HeatGrid;
  readonly unit: string;
  readonly worst: Worst;
  readonly axis: AxisKind;
  readonly gaps: HeatGaps;
}

export interface HeatCell {
  readonly row: number;
  readonly column: number;
}

export interface HeatMapOptions {
  /** Of the axis that what a person moves is drawn on: what is asked for meanwhile may be of another, and microseconds are no batches. */
  onZoom(range: Range, axis: AxisKind): void;
  onZoomBy(factor: number, center: number, axis: AxisKind): void;
  onPan(fraction: number, axis: AxisKind): void;
  onReset(): void;
  /** A person moved to another cell, by keys or a click, or its words are others. */
  onCell(cell: HeatCell): void;
  /** What a cell leads to is wanted. */
  onOpen(): void;
}

const colorCount = 256;
/** A drag that is shorter is a click. */
const dragPixels = 5;
/** So far from a gap the pointer still means it. */
const pointedPixels = 5;
const nameHeight = 16;
const nameLengthMax = 24;

export class HeatMap {
  private readonly cells = h("canvas", { tabindex: 0, role: "application" });
  private readonly gaps = h("canvas", { class: "heat-gaps", "aria-hidden": "true" });
  private readonly mark = h("div", { class: "heat-mark", "aria-hidden": "true" });
  private readonly drag = h("div", { class: "heat-drag", "aria-hidden": "true", hidden: true });
  private readonly axis = h("div", { class: "heat-axis", "aria-hidden": "true" });
  private readonly words = h("p", { class: "chart-place", "aria-live": "polite" });
  /** What the stripes are. */
  private readonly odd = h("p", { class: "odd-note striped", "data-odd": "", hidden: true });
  /** Of rows, as far as there is room. */
  private readonly names = h("div", { class: "heat-names", "aria-hidden": "true" });
  readonly element = h("div", { class: "heat-map" },
    h("div", { class: "heat-frame" }, this.names, h("div", { class: "heat-cells" }, this.cells, this.gaps, this.mark, this.drag), this.axis), this.odd, this.words);
  private readonly colors = heatColors(colorCount);
  private readonly farColors = farPixels();
  private readonly resize: ResizeObserver;
  private readonly unTheme = onTheme(() => this.drawGaps());
  private data: HeatData | null = null;
  private picture: HeatPicture | null = null;
  private waiting: HeatData | null = null;
  private width = 0;
  private at: HeatCell = { row: 0, column: 0 };
  private hovered: HeatCell | null = null;
  /** Where a drag began, in CSS pixels from the left. */
  private dragged: number | null = null;

  constructor(private readonly options: HeatMapOptions) {
    const on = <K extends keyof HTMLElementEventMap>(name: K, act: (event: HTMLElementEventMap[K]) => void): void => this.cells.addEventListener(name, act);
    on("pointerdown", (event) => this.press(event));
    on("pointermove", (event) => this.move(event));
    on("pointerup", (event) => this.release(event));
    on("pointercancel", () => this.letGo());
    on("lostpointercapture", () => this.letGo());
    on("pointerleave", () => this.hover(null));
    on("dblclick", () => this.options.onReset());
    on("keydown", (event) => this.onKey(event));
    this.resize = new ResizeObserver(() => this.fitWidth());
    this.resize.observe(this.cells);
  }

  destroy(): void {
    this.resize.disconnect();
    this.unTheme();
  }

  /** The cell that a person is on keeps its row and its place. While one drags, new data wait. */
  show(data: HeatData): void {
    if (this.dragged !== null) {
      this.waiting = data;
      return;
    }
    const before = this.data;
    this.data = data;
    const column = before ? Math.floor((before.grid.start + (this.at.column + 0.5) * before.grid.width - data.grid.start) / data.grid.width) : 0;
    this.at = this.inside({ row: this.at.row, column });
    this.hovered = null;
    this.cells.setAttribute("aria-label", `${data.title}, ${data.grid.rows.length} rows. Arrow keys move from cell to cell, plus and minus zoom, ` +
      "page up and down pan, Home shows all, Enter opens what a cell leads to.");
    this.draw();
  }

  /** For a picture: pixels of cells, gaps and stripes over them, what these are, and the axis. */
  drawn(): { cells: HTMLCanvasElement; gaps: HTMLCanvasElement; striped: string; ticks: readonly HeatTick[] } {
    return { cells: this.cells, gaps: this.gaps, striped: this.stripedWords(), ticks: this.ticks() };
  }

  private ticks(): HeatTick[] {
    if (!this.data) return [];
    const { start } = this.data.grid;
    return heatTicks(this.data.axis, { start, end: start + this.span(), width: this.width });
  }

  private stripedWords(): string {
    const total = this.data?.grid.odd?.total;
    return total ? totalWords(total) : "";
  }

  /** Where a column begins, in words. */
  where(column: number): string {
    if (!this.data) return "";
    const { grid, axis } = this.data;
    const place = grid.start + column * grid.width;
    if (axis === "time") return `${clockText(place, grid.columnCount * grid.width)} UTC`;
    return grid.width < 2 ? `batch ${countText(place)}` : `batches ${countText(place)} to ${countText(place + grid.width - 1)}`;
  }

  private inside(cell: HeatCell): HeatCell {
    const { rows, columnCount } = this.data?.grid ?? { rows: [], columnCount: 1 };
    return { row: Math.min(rows.length - 1, Math.max(0, cell.row)), column: Math.min(columnCount - 1, Math.max(0, cell.column)) };
  }

  private draw(): void {
    const { data } = this;
    const context = this.cells.getContext("2d");
    if (!data || !context) return;
    const ratio = window.devicePixelRatio || 1;
    const size = heatSize(data.grid.rows.length, ratio);
    this.showNames(data.grid.rows, size.height);
    this.width = this.cells.clientWidth || 800;
    const picture = heatPicture(data.grid, size.rowsPerLine, Math.floor(this.width * ratio), data.worst);
    this.picture = picture;
    this.cells.style.height = `${size.height}px`;
    this.cells.width = picture.pixelCount;
    this.cells.height = picture.lineCount;
    const pixels = heatPixels(data.grid, picture, this.colors, this.farColors);
    context.putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer as ArrayBuffer), picture.pixelCount, picture.lineCount), 0, 0);
    fill(this.axis, this.ticks().map(({ left, text }) => {
      const tick = h("span", {}, text);
      tick.style.left = `${left * 100}%`;
      return tick;
    }));
    const odd = this.stripedWords();
    this.odd.hidden = odd === "";
    this.odd.textContent = odd === "" ? "" : `Striped cells: ${odd}`;
    this.drawGaps();
    this.tell();
  }

  private showNames(rows: readonly string[], height: number): void {
    const each = Math.max(1, Math.ceil((nameHeight * rows.length) / height));
    const named = rows.map((name, row) => ({ name: shortened(printable(name), nameLengthMax), row })).filter(({ row }) => row % each === 0);
    const longest = named.reduce((most, { name }) => (name.length > most.length ? name : most), "");
    fill(this.names, h("span", { class: "heat-longest" }, longest), named.map(({ name, row }) => {
      const element = h("span", {}, bdi(name));
      element.style.top = `${((row + 0.5) / rows.length) * 100}%`;
      return element;
    }));
  }

  private fitWidth(): void {
    if (this.data && this.cells.clientWidth > 0 && this.cells.clientWidth !== this.width) this.draw();
  }

  /** From the left, 0 ... 1. */
  private leftOf(place: number): number {
    if (!this.data || !this.picture) return 0;
    return (place - this.data.grid.start) / this.span();
  }

  private placeOf(left: number): number {
    if (!this.data || !this.picture) return 0;
    const { start, width, columnCount } = this.data.grid;
    return Math.min(start + width * columnCount, start + Math.max(0, left) * this.span());
  }

  /** Of the axis, as the cells show it: the last pixel may stand for less than its neighbours. */
  private span(): number {
    return this.data && this.picture ? this.data.grid.width * this.picture.pixelCount * this.picture.columnsPerPixel : 0;
  }

  private drawGaps(): void {
    const { data, picture } = this;
    if (!data || !picture) return;
    const ratio = window.devicePixelRatio || 1;
    this.gaps.width = Math.round(this.width * ratio);
    this.gaps.height = Math.round((this.cells.clientHeight || 1) * ratio);
    paintOver(this.gaps, data.grid, picture, data.gaps, (place) => this.leftOf(place));
  }

  private seenAt(left: number, top: number): HeatCell {
    const { data, picture } = this;
    if (!data || !picture) return this.at;
    return cellSeen(data.grid, picture, left, top, reachOf(this.cells.clientHeight / picture.lineCount));
  }

  private press(event: PointerEvent): void {
    if (event.button !== 0 || !this.data) return;
    this.cells.setPointerCapture(event.pointerId);
    this.dragged = event.offsetX;
  }

  private move(event: PointerEvent): void {
    if (this.dragged === null) {
      const box = this.cells.getBoundingClientRect();
      if (this.data) this.hover(this.seenAt((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height));
      return;
    }
    const [from, to] = this.dragEnds(event, this.dragged);
    this.drag.hidden = to - from < dragPixels;
    this.drag.style.left = `${from}px`;
    this.drag.style.width = `${to - from}px`;
  }

  private dragEnds(event: PointerEvent, from: number): readonly [number, number] {
    const to = Math.min(this.width, Math.max(0, event.offsetX));
    return from < to ? [from, to] : [to, from];
  }

  private release(event: PointerEvent): void {
    if (this.dragged === null || !this.data || !this.picture) return this.letGo();
    const [from, to] = this.dragEnds(event, this.dragged);
    const { data, dragged } = this;
    const range = { start: this.placeOf(from / this.width), end: this.placeOf(to / this.width) };
    this.letGo();
    if (to - from >= dragPixels) return this.options.onZoom(range, data.axis);
    if (this.data !== data) return; // What was clicked on is no longer there.
    this.at = this.seenAt(dragged / this.width, event.offsetY / Math.max(1, this.cells.clientHeight));
    this.tell();
  }

  /** A drag that nobody will end: what waited for it is shown. */
  letGo(): void {
    this.dragged = null;
    this.drag.hidden = true;
    const { waiting } = this;
    this.waiting = null;
    if (waiting) this.show(waiting);
  }

  private hover(cell: HeatCell | null): void {
    this.hovered = cell;
    this.say();
  }

  private onKey(event: KeyboardEvent): void {
    if (!this.data || event.ctrlKey || event.metaKey || event.altKey) return;
    const { row, column } = this.at;
    const { grid: { start, width }, axis } = this.data;
    const to = (cell: HeatCell) => (): void => {
      this.at = this.inside(cell);
      this.hovered = null;
      this.tell();
    };
    const by = (factor: number) => (): void => this.options.onZoomBy(factor, start + (column + 0.5) * width, axis);
    const moves: Record<string, () => void> = {
      ArrowLeft: to({ row, column: column - 1 }), ArrowRight: to({ row, column: column + 1 }),
      ArrowUp: to({ row: row - 1, column }), ArrowDown: to({ row: row + 1, column }),
      "+": by(0.5), "=": by(0.5), "-": by(2),
      PageUp: () => this.options.onPan(-0.5, axis), PageDown: () => this.options.onPan(0.5, axis),
      Home: () => this.options.onReset(), Enter: () => this.waiting ?? this.options.onOpen(),
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
  }

  private tell(): void {
    this.showMark();
    this.say();
    // Of what waits its cell is told once that is shown.
    if (!this.waiting) this.options.onCell(this.at);
  }

  private showMark(): void {
    const { picture, data } = this;
    if (!picture || !data) return;
    const { style } = this.mark;
    const { start, width } = data.grid;
    style.left = `${this.leftOf(start + this.at.column * width) * 100}%`;
    style.width = `${100 / (picture.pixelCount * picture.columnsPerPixel)}%`;
    style.top = `${(Math.floor(this.at.row / picture.rowsPerLine) / picture.lineCount) * 100}%`;
    style.height = `${100 / picture.lineCount}%`;
  }

  private say(): void {
    const { data, picture } = this;
    if (!data || !picture) return;
    const { row, column } = this.hovered ?? this.at;
    const { grid } = data;
    const place = grid.start + (column + 0.5) * grid.width;
    const slack = Math.max(grid.width / 2, (grid.width * grid.columnCount * pointedPixels) / Math.max(1, this.width));
    const texts = gapTextsAt(data.gaps, row, place, slack);
    fill(this.words, `${printable(grid.rows[row] ?? "")}, ${this.where(column)}: ${cellWords(grid, row, column, data.unit)}`,
      texts.length > 0 && h("span", { class: "heat-gap-words" }, ` Gap: ${texts.slice(0, 3).join("; ")}`));
  }
}

function cellWords(grid: HeatGrid, row: number, column: number, unit: string): string {
  const value = cellAt(grid, row, column);
  const odd = oddAt(grid, row, column);
  const samples = samplesAt(grid, row, column);
  const range = samples ? rangeText(samples.min, samples.max, unit) : "";
  if (!odd) return Number.isNaN(value) ? "no samples" : `${valueText(value, unit)}${range && ` (${range})`}`;
  const isPart = odd.nans > 0 && odd.counted > 0;
  return `${meanText(value, unit, odd.isOverflow)}${isPart ? `, ${nanPart(odd.nans, odd.nans + odd.counted, " samples")}` : ""}`;
}
