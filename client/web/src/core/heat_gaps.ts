// Declared gaps in a heat map: those of one writer in its own rows, others in all of them.
import { bandAt, gapBands, type GapBand, type KnownGap } from "./gap_bands";
import type { AxisKind, Range } from "./range";

export interface GapOwner {
  /** -1 = a machine's sampler. */
  readonly rank: number;
  readonly agent: string;
}

export interface HeatGaps {
  /** In all rows. */
  readonly everywhere: readonly GapBand[];
  readonly ofRow: ReadonlyMap<number, readonly GapBand[]>;
}

type Labels = Readonly<Record<string, string>>;

function rowsOf(owner: GapOwner | undefined, rows: readonly Labels[]): number[] {
  if (!owner) return [];
  const isOwn = (row: Labels): boolean => row["rank"] !== undefined
    ? owner.rank >= 0 && row["rank"] === String(owner.rank) : row["agent"] !== undefined && row["agent"] === owner.agent;
  return rows.flatMap((row, at) => (isOwn(row) ? [at] : []));
}

/** `owners` by number of the writer, `rows` by their labels; the rest as gapBands has it. */
export function heatGaps(
  gaps: readonly KnownGap[], owners: ReadonlyMap<number, GapOwner>, rows: readonly Labels[], range: Range, metricGroup: string, widthMin: number, axis: AxisKind,
): HeatGaps {
  const everywhere: KnownGap[] = [];
  const ofRow = new Map<number, KnownGap[]>();
  for (const gap of gaps) {
    const own = rowsOf(owners.get(gap.writerNo), rows);
    if (own.length === 0) everywhere.push(gap);
    for (const row of own) ofRow.set(row, [...(ofRow.get(row) ?? []), gap]);
  }
  const bands = (some: readonly KnownGap[]): GapBand[] => gapBands(some, range, metricGroup, widthMin, axis);
  return { everywhere: bands(everywhere), ofRow: new Map([...ofRow].map(([row, some]) => [row, bands(some)])) };
}

/** What is told of gaps at a place of a row. */
export function gapTextsAt(gaps: HeatGaps, row: number, place: number, slack: number): string[] {
  const bands = [gaps.everywhere, gaps.ofRow.get(row) ?? []];
  return [...new Set(bands.flatMap((some) => bandAt(some, place, slack)?.texts ?? []))];
}
