// Where a line has a band: stretches in which smallest and largest differ.
import type { Value } from "./align";

/** Rows of each stretch, ascending. Rows without a due value are passed over, null ends one. Neighbours of both no height
 *  are in none: there is nothing to fill between them. */
export function bandRuns(mins: readonly Value[], maxs: readonly Value[]): number[][] {
  const runs: number[][] = [];
  let run: number[] = [];
  let before = -1;
  let beforeHasHeight = false;
  const end = (): void => {
    if (run.length > 1) runs.push(run);
    run = [];
  };
  for (let row = 0; row < mins.length; ++row) {
    const min = mins[row];
    const max = maxs[row];
    if (min === undefined || max === undefined) continue;
    if (min === null || max === null) {
      end();
      before = -1;
      continue;
    }
    const hasHeight = max > min;
    if (before < 0 || !(hasHeight || beforeHasHeight)) {
      end();
    } else {
      if (run.length === 0) run.push(before);
      run.push(row);
    }
    before = row;
    beforeHasHeight = hasHeight;
  }
  end();
  return runs;
}
