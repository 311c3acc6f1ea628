// Comma-separated values as RFC 4180 has them, for spreadsheets that would run a cell that begins with "=". Where
// the separator is ";" or a tab, a text of ours may become several cells: each of them is tamed.

export type Cell = string | number | null;

function cellText(cell: Cell): string {
  if (cell === null) return "";
  if (typeof cell === "number") return Number.isNaN(cell) ? "NaN" : String(cell);
  const tame = cell.replace(/(^|[;\t\r\n])(?=[=+\-@\t\r])/g, "$1'");
  return /[",;\t\r\n]/.test(tame) ? `"${tame.replace(/"/g, '""')}"` : tame;
}

export function csvText(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return [head, ...rows].map((row) => row.map(cellText).join(",")).join("\r\n") + "\r\n";
}
