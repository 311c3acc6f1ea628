// By which column the rows of a table are ordered, as an address says it, and what a press on a column's head
// makes of that.

export interface Sorting<Column extends string> {
  readonly column: Column;
  /** The smallest first. */
  readonly up: boolean;
}

const upEnd = ".up";

/** "p99": the largest first; "p99.up": the smallest; null = as the table is without. */
export function parseSorting<Column extends string>(text: string, columns: readonly Column[]): Sorting<Column> | null {
  const up = text.endsWith(upEnd);
  const name = up ? text.slice(0, -upEnd.length) : text;
  const column = columns.find((one) => one === name);
  return column === undefined ? null : { column, up };
}

export function formatSorting(sorting: Sorting<string> | null): string {
  return sorting === null ? "" : sorting.column + (sorting.up ? upEnd : "");
}

/** First the order that is asked for most (words from A on, numbers from the largest on), then the other, then none. */
export function pressed<Column extends string>(now: Sorting<Column> | null, column: Column, upFirst: boolean): Sorting<Column> | null {
  if (now?.column !== column) return { column, up: upFirst };
  return now.up === upFirst ? { column, up: !upFirst } : null;
}

/** What has no value comes last in both orders; what is equal stays in its order. */
export function sorted<Row>(rows: readonly Row[], valueOf: (row: Row) => number | string | null, up: boolean): Row[] {
  const compare = (a: number | string, b: number | string): number =>
    typeof a === "string" || typeof b === "string" ? (String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0) : a - b;
  return rows
    .map((row) => ({ row, value: valueOf(row) }))
    .sort((a, b) => {
      if (a.value === null || b.value === null) return Number(a.value === null) - Number(b.value === null);
      return up ? compare(a.value, b.value) : compare(b.value, a.value);
    })
    .map(({ row }) => row);
}
