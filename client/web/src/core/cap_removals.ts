// What caps would remove, as lines of a table that a person can check before they are set.
import { printable } from "./printable";
import { timeText } from "./time_text";
import { plural, valueText } from "./units";

/** As the master answers (proto/stepwell/v1/caps.proto). */
export interface WireRemoval {
  readonly trialId: bigint;
  readonly metricGroup: string;
  readonly sampleCount: bigint;
  readonly rawBytes: bigint;
  readonly rollupBytes: bigint;
  readonly firstTimeUs: bigint;
  readonly lastTimeUs: bigint;
  readonly traceCount: bigint;
  readonly traceBytes: bigint;
}

export interface RemovalLine {
  readonly metricGroup: string;
  readonly goes: string;
  readonly from: string;
  readonly to: string;
}

/** As many lines as a person reads before more are wanted. */
export const removalsShown = 50;

export function removalLine(removal: WireRemoval): RemovalLine {
  const parts = [
    removal.sampleCount > 0n ? `${plural(removal.sampleCount, "sample")} (${valueText(Number(removal.rawBytes), "bytes")})` : "",
    removal.rollupBytes > 0n ? `${valueText(Number(removal.rollupBytes), "bytes")} of rollups` : "",
    removal.traceCount > 0n ? `${plural(removal.traceCount, "trace")} (${valueText(Number(removal.traceBytes), "bytes")})` : "",
  ].filter((part) => part !== "");
  return {
    metricGroup: removal.metricGroup === "" ? "all" : printable(removal.metricGroup), goes: parts.join(", ") || "nothing that counts",
    from: timeText(Number(removal.firstTimeUs)), to: timeText(Number(removal.lastTimeUs)),
  };
}

/** Of `listed`, of which so many are shown; `truncated`: the master has more than it listed. "" = none is hidden. */
export function moreWords(listed: number, shown: number, truncated: boolean): string {
  const hidden = listed - shown;
  if (hidden <= 0) return truncated ? "and more that the master does not list" : "";
  return `and ${truncated ? "at least " : ""}${plural(hidden, "line")} more`;
}
