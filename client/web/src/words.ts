// The contract's values in the words of the command line (client/cli/words.cc, completeness_text.cc).
import { GapCause, TrialState, type Completeness, type Gap, type Trial } from "#gen/model_pb";
import type { KnownGap } from "./core/gap_bands";
import { rangesText } from "./core/numbers";
import { printable } from "./core/printable";
import { countText } from "./core/units";

export function stateWord(state: TrialState): string {
  switch (state) {
    case TrialState.RUNNING: return "running";
    case TrialState.COMPLETED: return "completed";
    case TrialState.FAILED: return "failed";
    case TrialState.LOST: return "lost";
    case TrialState.UNSPECIFIED: return "unknown";
  }
}

/** What a state means, for who does not know. */
export function stateHint(state: TrialState): string {
  switch (state) {
    case TrialState.RUNNING: return "A writer is open and was heard of within a minute";
    case TrialState.COMPLETED: return "All writers closed by themselves";
    case TrialState.FAILED: return "All writers closed, at least one because its process died";
    case TrialState.LOST: return "An open writer has not been heard of for a minute";
    case TrialState.UNSPECIFIED: return "";
  }
}

const states: readonly TrialState[] = [TrialState.RUNNING, TrialState.COMPLETED, TrialState.FAILED, TrialState.LOST];

/** What each means, a line each. */
export function stateHints(): string {
  return states.map((state) => `${stateWord(state)}: ${stateHint(state)}`).join("\n");
}

export function writerHint(state: TrialState): string {
  switch (state) {
    case TrialState.RUNNING: return "It is open and was heard of within a minute";
    case TrialState.COMPLETED: return "It closed by itself";
    case TrialState.FAILED: return "It was closed because its process died";
    case TrialState.LOST: return "It is open and has not been heard of for a minute";
    case TrialState.UNSPECIFIED: return "";
  }
}

/** As stateHints, of a writer. */
export function writerHints(): string {
  return states.map((state) => `${stateWord(state)}: ${writerHint(state)}`).join("\n");
}

export function stateOf(word: string): TrialState {
  return states.find((state) => stateWord(state) === word) ?? TrialState.UNSPECIFIED;
}

export function causeWords(cause: GapCause): string {
  switch (cause) {
    case GapCause.RING_FULL: return "ring full";
    case GapCause.SENSOR_FAILED: return "sensor failed";
    case GapCause.LATE: return "came too late";
    case GapCause.UNSUPPORTED: return "not supported here";
    case GapCause.NO_PERMISSION: return "no permission";
    case GapCause.SPOOL_FULL: return "spool full";
    case GapCause.SPOOL_CORRUPT: return "spool corrupt";
    case GapCause.SPOOL_LOST: return "spool lost";
    case GapCause.REJECTED: return "rejected";
    case GapCause.CLOCK: return "absurd clock";
    case GapCause.CAP: return "removed by a cap";
    case GapCause.CUT_OFF: return "cut off";
    case GapCause.RESTORED: return "database restored";
    case GapCause.UNSPECIFIED: return "unknown cause";
  }
}

/** Nothing of what was sent is missing: it could not be measured in the first place, or is only doubted. */
export function missesNothing(cause: GapCause): boolean {
  return cause === GapCause.UNSUPPORTED || cause === GapCause.NO_PERMISSION || cause === GapCause.CLOCK;
}

export function trialName(trial: Trial): string {
  if (trial.externalId === "") return `trial ${trial.trialId}`;
  const name = printable(trial.externalId);
  return trial.project === "default" ? name : `${printable(trial.project)}/${name}`;
}

export function labelsText(labels: Readonly<Record<string, string>>): string {
  return Object.keys(labels).sort().map((name) => printable(`${name}=${labels[name]}`)).join(" ");
}

export function knownGap(gap: Gap): KnownGap {
  return {
    cause: causeWords(gap.cause), metricGroup: gap.metricGroup, writerNo: gap.writerNo,
    missing: Number(gap.sampleCount), firstUs: Number(gap.firstTimeUs), lastUs: Number(gap.lastTimeUs),
    batchBefore: gap.batchBefore ?? null, batchAfter: gap.batchAfter ?? null, reason: printable(gap.reason),
  };
}

export interface CompletenessWords {
  readonly badge: "complete" | "incomplete" | "perhaps incomplete" | "recovering";
  readonly text: string;
}

function causesText(gaps: readonly Gap[], missing: boolean): string {
  const totals = new Map<GapCause, bigint>();
  for (const gap of gaps) {
    if (missesNothing(gap.cause) === missing || gap.cause === GapCause.CLOCK) continue;
    totals.set(gap.cause, (totals.get(gap.cause) ?? 0n) + gap.sampleCount);
  }
  return [...totals]
    .map(([cause, count]) => causeWords(cause) + (count > 0n ? ` ${countText(count)}` : missing ? ", number unknown" : ""))
    .join("; ");
}

export function completenessWords(held: Completeness): CompletenessWords {
  const count = countText(held.samplesHeld);
  const missing = causesText(held.gaps, true);
  const lacks = held.samplesMissing > 0n || missing !== "";
  const parts: string[] = [];
  if (held.contiguous) {
    parts.push(`Complete: all ${count} samples that were sent are here.`);
  } else if (lacks) {
    const lost = held.samplesMissing > 0n ? countText(held.samplesMissing) : "some";
    parts.push(`Incomplete: ${count} samples are here, ${lost} are missing${missing === "" ? "" : ` (${missing})`}.`);
  } else if (held.ranksMissingCount > 0) {
    parts.push(`Incomplete: ${count} samples are here.`);
  } else {
    parts.push(`Perhaps incomplete: ${count} samples are here, but a writer that never closed is not being heard of.`);
  }
  if (held.ranksMissingCount > 0) {
    const ranks = rangesText(held.ranksMissing, held.ranksMissingCount, 10);
    parts.push(`${held.ranksMissingCount === 1 ? "Rank" : "Ranks"} ${ranks} never opened: recorded into memory only, reached no master, or have not begun.`);
  }
  const never = causesText(held.gaps, false);
  if (never !== "") parts.push(`Not measured: ${never}.`);
  if (held.gaps.some((gap) => gap.cause === GapCause.CLOCK)) parts.push("Some samples carry times far from when they were sent.");
  if (held.recovering) parts.push("The master is still recovering: the last seconds may be missing.");
  if (held.gapsTruncated) parts.push("More gaps exist than were listed.");
  const badge = held.recovering ? "recovering" : held.contiguous ? "complete"
    : lacks || held.ranksMissingCount > 0 ? "incomplete" : "perhaps incomplete";
  return { badge, text: parts.join(" ") };
}
