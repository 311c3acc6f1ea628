// Where the time of the steps in a native profiler's trace went, in the words of the command line
// (client/cli/trace_report.cc).
import type { SummarizeTraceResponse, TraceStepTimes } from "#gen/trace_pb";
import { percentTexts, plural, secondsText } from "./core/units";

type ClassField = "kernelNs" | "memcpyNs" | "memsetNs" | "communicationNs" | "runtimeNs" | "dataLoaderNs" | "processorNs" | "otherNs";

/** In the order in which a moment counts for them. */
const classes: readonly (readonly [ClassField, string])[] = [
  ["kernelNs", "kernel"], ["memcpyNs", "memcpy"], ["memsetNs", "memset"], ["communicationNs", "communication"],
  ["runtimeNs", "runtime"], ["dataLoaderNs", "data loader"], ["processorNs", "processor"], ["otherNs", "other"],
];

export interface ClassRow {
  readonly name: string;
  /** Of a step, on average. */
  readonly meanText: string;
  readonly shareText: string;
  /** 0 ... 1. */
  readonly share: number;
}

export interface StepRow {
  readonly name: string;
  readonly lengthText: string;
  /** One for each class. */
  readonly shareTexts: readonly string[];
}

export interface StepTable {
  readonly classes: readonly ClassRow[];
  readonly steps: readonly StepRow[];
  /** Each a sentence. */
  readonly facts: readonly string[];
}

const text = (ns: number): string => secondsText(ns / 1e9);
const share = (part: number, whole: number): number => (whole > 0 ? part / whole : 0);

function shares(times: TraceStepTimes): number[] {
  return classes.map(([field]) => share(Number(times[field]), Number(times.lengthNs)));
}

/** Null = there was no step in it. Classes that took no time are left out. */
export function stepTable(answer: SummarizeTraceResponse): StepTable | null {
  const { total } = answer;
  const count = Number(answer.stepCount);
  if (!total || count === 0) return null;
  const there = classes.map(([field]) => total[field] > 0n);
  const ofTotal = shares(total);
  const percents = percentTexts(ofTotal);
  const rows = classes.map(([field, name], at) => ({
    name, meanText: text(Number(total[field]) / count), shareText: percents[at] ?? "", share: ofTotal[at] ?? 0,
  }));
  return {
    classes: rows.filter((_row, at) => there[at]),
    steps: answer.steps.map((step) => ({
      name: step.name, lengthText: text(Number(step.lengthNs)), shareTexts: percentTexts(shares(step)).filter((_share, at) => there[at]),
    })),
    facts: factsOf(answer, total, count),
  };
}

function factsOf(answer: SummarizeTraceResponse, total: TraceStepTimes, count: number): string[] {
  const facts = [`${plural(count, "step")} of ${text(Number(total.lengthNs) / count)} on average.`];
  const percent = (part: bigint, whole: bigint): string => percentTexts([share(Number(part), Number(whole))])[0] ?? "";
  if (answer.hasDevice) facts.push(`The device was busy ${percent(answer.deviceBusyNs, answer.deviceSpanNs)} of the time from its first event to its last${total.idleNs === undefined ? "" : `, and idle for ${text(Number(total.idleNs) / count)} a step`}.`);
  if (total.communicatingNs > 0n) {
    facts.push(`Communication took ${text(Number(total.communicatingNs) / count)} a step; something was computed during ${percent(total.overlapNs, total.communicatingNs)} of it.`);
  }
  if (answer.stepsLeftOut > 0n) facts.push(`${plural(answer.stepsLeftOut, "step")} at the end left out: recording stopped before the device's part.`);
  if (answer.isCut) facts.push("The trace ends too early; what it has is counted.");
  if (answer.badCount > 0n) facts.push(`${plural(answer.badCount, "thing")} that is no event left out.`);
  if (answer.eventsOverBound > 0n) facts.push(`${plural(answer.eventsOverBound, "event")} beyond what is held at once not counted.`);
  return facts;
}
