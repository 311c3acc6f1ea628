// Ranks over time as a grid of cells, and what of it a picture of fewer pixels shows: no cell that is out of
// the ordinary is lost between two that are not.
import { usualDistance } from "./align";
import { farEnds, farSide } from "./heat_far";
import { overflows, type OddTotal } from "./odd_values";
import type { Range } from "./range";

export interface HeatRow {
  readonly name: string;
  readonly indexes: readonly number[];
  readonly values: readonly number[];
  /** Of the samples of each value; none = that value is all there is. */
  readonly mins?: readonly number[];
  readonly maxs?: readonly number[];
  /** The newest of these. */
  readonly lasts?: readonly number[];
  /** Samples of each value that are not NaN, and those that are: empty or none = there is no NaN. */
  readonly counts?: readonly bigint[];
  readonly nanCounts?: readonly bigint[];
}

/** Cells with samples that are NaN or infinite, or whose mean overflows; of all others all are 0. */
export interface OddCells {
  readonly nans: Uint32Array;
  /** Samples that are not NaN. */
  readonly counted: Uint32Array;
  /** 1 = its samples are finite, and their mean is not. */
  readonly overflowing: Uint8Array;
  readonly total: OddTotal;
}

export interface HeatGrid {
  readonly rows: readonly string[];
  /** What each was made of. */
  readonly of: readonly HeatRow[];
  /** Of the first column, among the indexes of these. */
  readonly first: number;
  /** Where the first column begins, on the axis, and how wide each is. */
  readonly start: number;
  readonly width: number;
  readonly columnCount: number;
  /** Row by row; NaN = nothing there, or (`odd` tells) nothing but NaN. */
  readonly cells: Float64Array;
  /** null = all samples are finite. */
  readonly odd: OddCells | null;
  /** Of finite values, NaN where there are none. Where colours begin and end: the 1st and the 99th of 100 values, so that one spike hides nothing. */
  readonly low: number;
  readonly high: number;
  readonly middle: number;
  /** Of all, beyond those ends too, and of what is drawn behind cells. */
  readonly least: number;
  readonly largest: number;
}

/** Twice of what a master answers at most. */
export const cellsMax = 2_000_000;
/** So many values tell where the 99th of 100 lies; sorting all of them takes longer than a frame. */
const sampleMax = 20_000;
const distanceRows = 16;

function quantile(sorted: Float64Array, part: number): number {
  if (sorted.length === 0) return NaN;
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.round(part * (sorted.length - 1))))] ?? 0;
}

/** At most `sampleMax` of `values`, spread over all of them, ascending. The same each time, so that colours stay. */
function sampled(values: Float64Array): Float64Array {
  if (values.length <= sampleMax) return values.sort();
  const taken = new Float64Array(sampleMax);
  // By a fixed sequence without order: steps of one width would meet the same column of each row.
  for (let i = 0, at = 1; i < sampleMax; ++i) {
    at = (Math.imul(at, 1_664_525) + 1_013_904_223) >>> 0;
    taken[i] = values[at % values.length] ?? 0;
  }
  return taken.sort();
}

/** Indexes ascend. */
function columnsOf(rows: readonly HeatRow[], start: number, width: number, within: Range | null): { first: number; count: number } {
  let first = Infinity;
  let last = -Infinity;
  for (const { indexes } of rows) {
    first = Math.min(first, indexes[0] ?? Infinity);
    last = Math.max(last, indexes[indexes.length - 1] ?? -Infinity);
  }
  if (first > last || !within) return { first, count: last - first + 1 };
  // All that is looked at, also where nothing came: a gap at an end is one.
  first = Math.min(first, Math.max(0, Math.floor((within.start - start) / width)));
  last = Math.max(last, Math.ceil((within.end - start) / width) - 1);
  return { first, count: last - first + 1 };
}

/** Of some rows, for all: how many columns the usual sample stands for, where columns are narrower than that. */
function usualColumns(rows: readonly HeatRow[]): number {
  const every = Math.max(1, Math.floor(rows.length / distanceRows));
  const distances = rows.filter((row, at) => at % every === 0 && row.indexes.length > 1).map((row) => usualDistance(row.indexes)).sort((a, b) => a - b);
  const usual = distances[Math.floor(distances.length / 2)] ?? 1;
  // A tick may come a little late.
  return usual < 2 ? 1 : Math.ceil(usual * 1.25);
}

function isOdd(odd: OddCells | null, cell: number): boolean {
  return odd !== null && ((odd.nans[cell] ?? 0) > 0 || (odd.counted[cell] ?? 0) > 0);
}

/** Of values, from where to where. */
interface Reach {
  least: number;
  largest: number;
}

/** Cells of one row: of all rows those from `begin` to before `end`. */
interface OwnCells {
  readonly cells: Float64Array;
  readonly odd: OddCells | null;
  readonly begin: number;
  readonly end: number;
}

/** What cell `of` has in those from `from` to before `to`, too. */
function spread({ cells, odd }: OwnCells, of: number, from: number, to: number): void {
  cells.fill(cells[of] ?? NaN, from, to);
  if (!isOdd(odd, of)) return;
  odd?.nans.fill(odd.nans[of] ?? 0, from, to);
  odd?.counted.fill(odd.counted[of] ?? 0, from, to);
  odd?.overflowing.fill(odd.overflowing[of] ?? 0, from, to);
}

/** A value that is a length of the axis, told where it begins: a step that takes ten seconds stands for ten, as far as its row
 *  has no other there. Of several that begin in one cell it is the newest that goes on behind it: their mean ends before a
 *  stall does that some short ones stand beside. What is drawn so is in `reach` then. */
function drawOn(own: OwnCells, first: number, { indexes, lasts }: HeatRow, columnsOf: (value: number) => number, reach: Reach): void {
  for (let at = own.end - 1, next = own.end, i = indexes.length; at >= own.begin; --at) {
    // Indexes ascend: each is met once, from the last on.
    while (i > 0 && own.begin - first + (indexes[i - 1] ?? 0) >= at) --i;
    const value = own.cells[at] ?? NaN;
    // NaN has no length, and ends another's.
    if (!Number.isNaN(value)) {
      const last = lasts?.[i] ?? value;
      // Where in its cell it began nobody knows.
      const columns = last === value ? Math.round(columnsOf(last)) : Math.ceil(columnsOf(last));
      const end = Math.max(at + 1, Math.min(next, at + columns));
      spread(own, at, at + 1, end);
      if (last !== value && end > at + 1 && !isOdd(own.odd, at)) {
        own.cells.fill(last, at + 1, end);
        reach.least = Math.min(reach.least, last);
        reach.largest = Math.max(reach.largest, last);
      }
    } else if (!isOdd(own.odd, at)) continue;
    next = at;
  }
}

/** A value holds until the next one is due: a machine that is sampled each second is no comb. */
function hold(own: OwnCells, columns: number): void {
  if (columns < 2) return;
  for (let at = own.begin, last = -Infinity; at < own.end; ++at) {
    if (!Number.isNaN(own.cells[at]) || isOdd(own.odd, at)) last = at;
    else if (at - last >= columns) continue;
    else if (own.odd) spread(own, last, at, at + 1);
    else own.cells[at] = own.cells[last] ?? NaN; // Of millions of cells each: a fill would cost four times as much.
  }
}

/** Of rows whose first value is in column `first`. */
function oddCells(rows: readonly HeatRow[], first: number, columnCount: number): OddCells {
  const nans = new Uint32Array(rows.length * columnCount);
  const counted = new Uint32Array(nans.length);
  const overflowing = new Uint8Array(nans.length);
  const total = { nans: 0, samples: 0, hasPlus: false, hasMinus: false, hasOverflow: false };
  rows.forEach((row, at) => {
    row.indexes.forEach((index, i) => {
      const value = row.values[i] ?? NaN;
      const [nan, numbers] = [Number(row.nanCounts?.[i] ?? 0n), Number(row.counts?.[i] ?? 1n)];
      total.nans += nan;
      total.samples += nan + numbers;
      if (nan === 0 && Number.isFinite(value)) return;
      const cell = at * columnCount - first + index;
      nans[cell] = nan;
      counted[cell] = numbers;
      const [min, max] = [row.mins?.[i] ?? value, row.maxs?.[i] ?? value];
      if (max === Infinity) total.hasPlus = true;
      if (min === -Infinity) total.hasMinus = true;
      if (!overflows({ mean: value, min, max })) return;
      overflowing[cell] = 1;
      total.hasOverflow = true;
    });
  });
  return { nans, counted, overflowing, total };
}

/** Of an answer whose first bucket begins at `start`; the columns of `within`, or (null) those that have values. `lengthOf`:
 *  of a duration that begins where it stands, in units of the axis; null = values are none. */
export function heatGrid(
  rows: readonly HeatRow[], start: number, width: number, within: Range | null = null, lengthOf: ((value: number) => number) | null = null,
): HeatGrid | "empty" | "too many" {
  const { first, count: columnCount } = columnsOf(rows, start, width, within);
  if (first === Infinity) return "empty";
  if (columnCount * rows.length > cellsMax) return "too many";
  const cells = new Float64Array(columnCount * rows.length).fill(NaN);
  const there = new Float64Array(cells.length);
  let thereCount = 0;
  let [least, largest] = [Infinity, -Infinity];
  let hasOdd = rows.some((row) => (row.nanCounts?.length ?? 0) > 0);
  rows.forEach(({ indexes, values }, at) => {
    const begin = at * columnCount - first;
    for (let i = 0; i < indexes.length; ++i) {
      const value = values[i] ?? NaN;
      cells[begin + (indexes[i] ?? 0)] = value;
      if (!Number.isFinite(value)) {
        hasOdd = true;
        continue;
      }
      there[thereCount++] = value;
      if (value < least) least = value;
      if (value > largest) largest = value;
    }
  });
  const reach = thereCount === 0 ? { least: NaN, largest: NaN } : { least, largest };
  const odd = hasOdd ? oddCells(rows, first, columnCount) : null;
  const sorted = sampled(there.subarray(0, thereCount));
  const held = usualColumns(rows);
  rows.forEach((row, at) => {
    const own = { cells, odd, begin: at * columnCount, end: (at + 1) * columnCount };
    if (lengthOf) drawOn(own, first, row, (value) => lengthOf(value) / width, reach);
    hold(own, held);
  });
  return {
    rows: rows.map((row) => row.name), of: rows, first, start: start + first * width, width, columnCount, cells, odd,
    low: quantile(sorted, 0.01), high: quantile(sorted, 0.99), middle: quantile(sorted, 0.5), ...reach,
  };
}

export function cellAt(grid: HeatGrid, row: number, column: number): number {
  if (row < 0 || column < 0 || row >= grid.rows.length || column >= grid.columnCount) return NaN;
  return grid.cells[row * grid.columnCount + column] ?? NaN;
}

/** Of the samples that begin in a cell; null = none does, or nothing but one value is known. */
export function samplesAt(grid: HeatGrid, row: number, column: number): { readonly min: number; readonly max: number } | null {
  const { indexes = [], mins, maxs } = grid.of[row] ?? {};
  const wanted = grid.first + column;
  let [from, to] = [0, indexes.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((indexes[middle] ?? 0) < wanted) from = middle + 1;
    else to = middle;
  }
  const [min, max] = [mins?.[from], maxs?.[from]];
  return indexes[from] === wanted && min !== undefined && max !== undefined && min !== max ? { min, max } : null;
}

/** How many of a cell's samples are NaN, how many are not, and whether these have no mean; null = it is as any other. */
export function oddAt(grid: HeatGrid, row: number, column: number): { readonly nans: number; readonly counted: number; readonly isOverflow: boolean } | null {
  const cell = row * grid.columnCount + column;
  return isOdd(grid.odd, cell) ? { nans: grid.odd?.nans[cell] ?? 0, counted: grid.odd?.counted[cell] ?? 0, isOverflow: grid.odd?.overflowing[cell] === 1 } : null;
}

/** 0 ... 1 for the colour; where all but a few are alike they are in the middle, and the few at the ends. */
export function heatFraction(grid: HeatGrid, value: number): number {
  if (grid.high <= grid.low) return value > grid.high ? 1 : value < grid.low ? 0 : 0.5;
  return Math.min(1, Math.max(0, (value - grid.low) / (grid.high - grid.low)));
}

/** Which of the cells that share a pixel is shown: the largest (of timings: the slowest), or the one that lies
 *  farthest from the middle value (an idle GPU among busy ones). */
export type Worst = "largest" | "farthest";

export interface HeatSize {
  readonly lineCount: number;
  /** Lines that share a pixel; 1 = each has its own. */
  readonly rowsPerLine: number;
  /** In CSS pixels. */
  readonly height: number;
}

const heightMax = 640;
const fewRowHeight = 28;
const rowHeight = 3;

/** How high a map of so many rows is: each has a pixel of the screen, or shares it with its neighbours. */
export function heatSize(rowCount: number, pixelRatio: number): HeatSize {
  const pixels = Math.max(1, Math.floor(heightMax * pixelRatio));
  const rowsPerLine = Math.max(1, Math.ceil(rowCount / pixels));
  const lineCount = Math.max(1, Math.ceil(rowCount / rowsPerLine));
  const wished = Math.max(fewRowHeight * Math.min(lineCount, 8), lineCount * rowHeight);
  // Whole pixels of the screen for each line: none is twice as high as its neighbour.
  const height = wished <= heightMax ? wished : (lineCount * Math.max(1, Math.floor(pixels / lineCount))) / pixelRatio;
  return { lineCount, rowsPerLine, height };
}

/** What a picture of a grid shows. */
export interface HeatPicture {
  readonly lineCount: number;
  readonly rowsPerLine: number;
  readonly pixelCount: number;
  readonly columnsPerPixel: number;
  /** Line by line: which of the grid's cells is shown there; -1 = none of those has a value. */
  readonly shown: Int32Array;
}

/** `rowsPerLine` rows for each line, and at most `pixelsMax` columns. What is no finite number comes before all others; of the
 *  farthest, then, what is far on either side (heat_far.ts): the largest is what it says, also beside what is far below. */
export function heatPicture(grid: HeatGrid, rowsPerLine: number, pixelsMax: number, worst: Worst): HeatPicture {
  const columnsPerPixel = Math.max(1, Math.ceil(grid.columnCount / Math.max(1, pixelsMax)));
  const pixelCount = Math.ceil(grid.columnCount / columnsPerPixel);
  const lineCount = Math.ceil(grid.rows.length / rowsPerLine);
  const shown = new Int32Array(lineCount * pixelCount).fill(-1);
  const most = new Float64Array(shown.length).fill(-Infinity);
  const foremost = new Uint8Array(shown.length);
  const ends = farEnds(grid);
  for (let row = 0, cell = 0; row < grid.rows.length; ++row) {
    const line = Math.floor(row / rowsPerLine) * pixelCount;
    for (let column = 0; column < grid.columnCount; ++column, ++cell) {
      const value = grid.cells[cell] ?? NaN;
      const odd = isOdd(grid.odd, cell);
      if (Number.isNaN(value) && !odd) continue;
      const at = line + Math.floor(column / columnsPerPixel);
      const rank = odd ? 2 : worst === "farthest" && farSide(ends, value) !== 0 ? 1 : 0;
      const weight = odd ? 0 : worst === "largest" ? value : Math.abs(value - grid.middle);
      if (rank < (foremost[at] ?? 0) || (rank === foremost[at] && weight <= (most[at] ?? 0))) continue;
      foremost[at] = rank;
      most[at] = weight;
      shown[at] = cell;
    }
  }
  return { lineCount, rowsPerLine, pixelCount, columnsPerPixel, shown };
}

/** The cell that is seen at a place of the picture, 0 ... 1 from its left and its top. A far cell is painted over `reach` lines
 *  above and below its own, unless these are far themselves. */
export function cellSeen(grid: HeatGrid, picture: HeatPicture, left: number, top: number, reach = 0): { row: number; column: number } {
  const bounded = (part: number, count: number): number => Math.min(count - 1, Math.max(0, Math.floor(part * count)));
  const ends = farEnds(grid);
  const pixel = bounded(left, picture.pixelCount);
  const shownAt = (at: number): number => (at < 0 || at >= picture.lineCount ? -1 : picture.shown[at * picture.pixelCount + pixel] ?? -1);
  const own = bounded(top, picture.lineCount);
  const line = [...Array(2 * reach + 1).keys()].map((i) => own + (i % 2 === 0 ? i / 2 : -(i + 1) / 2))
    .find((at) => shownAt(at) >= 0 && farSide(ends, grid.cells[shownAt(at)] ?? NaN) !== 0) ?? own;
  const cell = shownAt(line);
  if (cell < 0) return { row: line * picture.rowsPerLine, column: pixel * picture.columnsPerPixel };
  return { row: Math.floor(cell / grid.columnCount), column: cell % grid.columnCount };
}

/** Pixels of a line of the picture: from `from` to before `to`. */
export interface PixelRun {
  readonly line: number;
  readonly from: number;
  readonly to: number;
}

/** Where the picture shows cells that no colour stands for. */
export function oddRuns(grid: HeatGrid, picture: HeatPicture): PixelRun[] {
  const runs: PixelRun[] = [];
  for (let line = 0; grid.odd && line < picture.lineCount; ++line) {
    let from = -1;
    for (let pixel = 0; pixel <= picture.pixelCount; ++pixel) {
      const cell = pixel < picture.pixelCount ? picture.shown[line * picture.pixelCount + pixel] ?? -1 : -1;
      const odd = cell >= 0 && isOdd(grid.odd, cell);
      if (odd && from < 0) from = pixel;
      if (odd || from < 0) continue;
      runs.push({ line, from, to: pixel });
      from = -1;
    }
  }
  return runs;
}

/** As many colours as `colors` has, and for far cells `below` and `above`; what has no value is left clear, and so is what no
 *  colour stands for (`oddRuns`). Pixels as a canvas has them. */
export function heatPixels(grid: HeatGrid, picture: HeatPicture, colors: Uint32Array, [below, above]: Uint32Array): Uint32Array {
  const ends = farEnds(grid);
  const pixels = new Uint32Array(picture.shown.length);
  const last = colors.length - 1;
  for (let at = 0; at < pixels.length; ++at) {
    const cell = picture.shown[at] ?? -1;
    if (cell < 0 || isOdd(grid.odd, cell)) continue;
    const value = grid.cells[cell] ?? 0;
    const side = farSide(ends, value);
    pixels[at] = (side === 0 ? colors[Math.round(heatFraction(grid, value) * last)] : side < 0 ? below : above) ?? 0;
  }
  return pixels;
}
