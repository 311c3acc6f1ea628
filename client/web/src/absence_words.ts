// Why there is nothing to draw of a trial, when there is nothing at all, and what to do about it: in words, without a document.
import { TrialState } from "#gen/model_pb";
import { plural } from "./core/units";
import type { Absence } from "./state_mark";

/** What is asked of a trial. */
export interface Lacking {
  /** "timings", "steps", "series", "system metrics". */
  readonly what: string;
  readonly trialId: bigint;
  readonly state: TrialState;
  /** By request its writers record nothing. */
  readonly isOff: boolean;
  /** The only groups that sensors are asked to sample, where these are what is asked for; empty = all. */
  readonly groups: readonly string[];
  readonly sampleCount: bigint;
  /** Whether it has series of other kinds. */
  readonly hasOthers: boolean;
}

export interface AbsenceWords {
  readonly absence: Absence;
  readonly title: string;
  readonly advice: string;
  /** Of the command line: what helps. */
  readonly command?: string;
  /** Samples of other kinds are there: where they are is worth a link. */
  readonly leadsElsewhere?: boolean;
}

/** Gives back to a trial what it was asked not to record. */
export function recordsAgain(trialId: bigint): string {
  return `stepwell admin profiling id:${trialId} on`;
}

export function absenceWords(lacking: Lacking): AbsenceWords {
  const { what, trialId, state, isOff, groups, sampleCount, hasOthers } = lacking;
  const isOver = state === TrialState.COMPLETED || state === TrialState.FAILED;
  const others = hasOthers ? { leadsElsewhere: true } : {};
  if (isOff && isOver) {
    return { absence: "not enabled", title: "Recording was off for this trial", advice: `By request its writers recorded nothing: it has ended, and no ${what} were recorded.`, ...others };
  }
  if (isOff) {
    return { absence: "not enabled", title: "Recording is off for this trial", advice: "By request its writers record nothing. This takes it back:", command: recordsAgain(trialId) };
  }
  if (groups.length > 0) {
    return { absence: "not enabled", title: `No ${what}: only some groups are recorded`, advice: `By request only these groups are sampled: ${groups.join(", ")}. This takes it back:`, command: recordsAgain(trialId) };
  }
  if (state === TrialState.RUNNING) {
    return { absence: "no data yet", title: `No ${what} yet`, advice: "The trial is running and has sent none so far. They appear here by themselves, within a second of being recorded." };
  }
  if (!isOver) {
    return {
      absence: "no data yet", title: `No ${what} so far`, ...others,
      advice: "Nobody has heard of this trial for a minute. Does it still run, and does its machine reach the master? What its agent keeps meanwhile comes by itself once it is connected again.",
    };
  }
  if (hasOthers) {
    return { absence: "empty", title: `No ${what} in this trial`, advice: `It has ended, and no ${what} were recorded, but ${plural(sampleCount, "sample")} of other kinds.`, leadsElsewhere: true };
  }
  return {
    absence: "empty", title: `No ${what} in this trial`,
    advice: "It has ended and recorded none. A training records timings with stepwell.scope(…) and step(); the machine is sampled by the agent, which the recorder starts.",
  };
}

/** Where its newest sample would be told. */
export function noSampleWords(state: TrialState): string {
  switch (state) {
    case TrialState.RUNNING: return "No sample yet.";
    case TrialState.COMPLETED:
    case TrialState.FAILED: return "It has ended without a sample.";
    case TrialState.LOST:
    case TrialState.UNSPECIFIED: return "No sample has come so far.";
  }
}
