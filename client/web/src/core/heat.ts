// Ranks over time as a grid of cells: what a heat map draws, and what it says of a cell.

export interface HeatRow {
  readonly name: string;
  readonly indexes: readonly number[];
  readonly values: readonly number[];
}

export interface HeatGrid {
  readonly rows: readonly string[];
  /** First bucket that has a value, and how many columns from it on. */
  readonly firstIndex: number;
  readonly columnCount: number;
  /** Row by row; NaN = nothing there. */
  readonly cells: Float64Array;
  /** Where colours begin and end: the 1st and the 99th of 100 values, so that one spike hides nothing. */
  readonly low: number;
  readonly high: number;
}

/** Cells that a browser holds without effort; rows beyond are folded by the caller. */
export const cellsMax = 2_000_000;

function quantile(sorted: Float64Array, part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.round(part * (sorted.length - 1))))] ?? 0;
}

export function heatGrid(rows: readonly HeatRow[]): HeatGrid | null {
  let first = Infinity;
  let last = -Infinity;
  for (const row of rows) {
    for (const index of row.indexes) {
      if (index < first) first = index;
      if (index > last) last = index;
    }
  }
  if (first > last) return null;
  const columnCount = last - first + 1;
  if (columnCount * rows.length > cellsMax) return null;
  const cells = new Float64Array(columnCount * rows.length).fill(NaN);
  rows.forEach((row, at) => row.indexes.forEach((index, i) => {
    const value = row.values[i];
    cells[at * columnCount + index - first] = value !== undefined && Number.isFinite(value) ? value : NaN;
  }));
  const sorted = cells.filter((value) => !Number.isNaN(value)).sort();
  if (sorted.length === 0) return null;
  return {
    rows: rows.map((row) => row.name), firstIndex: first, columnCount, cells,
    low: quantile(sorted, 0.01), high: quantile(sorted, 0.99),
  };
}

export function cellAt(grid: HeatGrid, row: number, column: number): number {
  if (row < 0 || column < 0 || row >= grid.rows.length || column >= grid.columnCount) return NaN;
  return grid.cells[row * grid.columnCount + column] ?? NaN;
}

/** 0 ... 1 for the colour; everything alike is in the middle. */
export function heatFraction(grid: HeatGrid, value: number): number {
  if (grid.high <= grid.low) return 0.5;
  return Math.min(1, Math.max(0, (value - grid.low) / (grid.high - grid.low)));
}
