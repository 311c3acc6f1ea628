// Where a cell of a heat map leads to: its rank's timings or its own chart.
import type { Range } from "./range";
import { spanMin } from "./range";
import type { TrialView } from "./view_state";

export interface CellPlace {
  /** "group/name". */
  readonly metric: string;
  readonly isTiming: boolean;
  /** Of its row. */
  readonly labels: Readonly<Record<string, string>>;
  /** Of its column, on the axis of the view. */
  readonly range: Range;
}

/** A rank's timing leads to the timings of this rank: of the column's batches, or of all where columns are times, for
 *  timings are counted in batches. Anything else leads to its chart in the same range. */
export function cellView(view: TrialView, cell: CellPlace): TrialView {
  const { rank } = cell.labels;
  if (cell.isTiming && rank !== undefined) {
    const to: TrialView = { ...view, tab: "timings", metrics: [], rank, clock: "", liveUs: 0 };
    if (view.axis === "time") return { ...to, axis: "batch", start: null, end: null };
    const start = Math.floor(cell.range.start);
    return { ...to, start, end: Math.max(Math.ceil(cell.range.end), start + spanMin("batch")) };
  }
  const labels = new Map(Object.entries(cell.labels).map(([name, value]) => [name, [value]] as const));
  return { ...view, tab: "metrics", metrics: [cell.metric], labels, clock: "" };
}
