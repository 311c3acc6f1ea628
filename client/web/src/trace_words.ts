// Traces in the words of the command line (client/cli/trace_words.cc), and what can be done with which.
import { TraceFormat, TraceState, type MergedTrace, type Trace, type TraceHeader } from "#gen/trace_pb";
import { printable } from "./core/printable";
import { secondsText } from "./core/units";

export function formatWord(format: TraceFormat): string {
  switch (format) {
    case TraceFormat.CHROME_JSON: return "json";
    case TraceFormat.PERFETTO: return "perfetto";
    case TraceFormat.XPLANE: return "xplane";
    case TraceFormat.TEXT: return "text";
    case TraceFormat.UNSPECIFIED: return "unknown";
  }
}

export function traceStateWords(trace: Trace): string {
  switch (trace.state) {
    case TraceState.COMPLETE: return "complete";
    case TraceState.UPLOADING: {
      const whole = Math.max(1, Number(trace.header?.byteCount ?? 1n));
      return `uploading, ${Math.floor((100 * Number(trace.receivedBytes)) / whole)} %`;
    }
    case TraceState.REFUSED: return `refused: ${printable(trace.reason)}`;
    case TraceState.REMOVED: return `removed: ${printable(trace.reason)}`;
    case TraceState.UNSPECIFIED: return "unknown";
  }
}

/** "ep0-ba7", "ba4...7"; empty = unknown. */
export function cycleWord(header: TraceHeader | undefined): string {
  const { epoch, firstBatch: first, lastBatch: last } = header ?? {};
  const parts = epoch === undefined ? [] : [`ep${epoch}`];
  if (first !== undefined && last !== undefined) parts.push(first === last ? `ba${last}` : `ba${first}...${last}`);
  else if (first !== undefined || last !== undefined) parts.push(`ba${first ?? last}`);
  return parts.join("-");
}

/** What bounds the error of its clock, and by how much it was shifted. */
export function clockWords(input: MergedTrace): { readonly error: string; readonly shift: string } {
  const shift = Number(input.shiftNs) / 1e9;
  const drift = input.driftUsPerS ?? 0;
  return {
    error: input.clockErrorNs === undefined ? "unknown" : `±${secondsText(Number(input.clockErrorNs) / 1e9)}`,
    shift: (shift === 0 ? "not shifted" : `shifted by ${shift > 0 ? "+" : "−"}${secondsText(Math.abs(shift))}`)
      + (drift === 0 ? "" : `, ${drift > 0 ? "+" : "−"}${secondsText(Math.abs(drift) / 1e6)} more each second`),
  };
}

export function isWhole(trace: Trace): boolean {
  return trace.state === TraceState.COMPLETE;
}


/** And by a viewer shown as it is. */
export function isMergeable(trace: Trace): boolean {
  const format = trace.header?.format;
  return isWhole(trace) && (format === TraceFormat.CHROME_JSON || format === TraceFormat.PERFETTO);
}

/** What is meant by a choice of traces: all that can be merged where none is chosen. */
export function meant(traces: readonly Trace[], chosen: ReadonlySet<number>): Trace[] {
  return traces.filter((trace) => (chosen.size === 0 ? isMergeable(trace) : chosen.has(trace.traceNo)));
}

/** What a merge of `of` names: nothing where these are all that can be merged, of which the master leaves out, and tells, what it cannot place. Of a list that is cut nobody knows. */
export function named(of: readonly Trace[], list: readonly Trace[], isCut: boolean): number[] {
  const isAll = !isCut && of.length === list.filter(isMergeable).length;
  return isAll ? [] : of.map((trace) => trace.traceNo);
}

export function matches(trace: Trace, filter: string): boolean {
  const header = trace.header;
  const rank = header?.rank === undefined ? "" : `rank ${header.rank}`;
  return `${header?.name ?? ""}\n${rank}\n${cycleWord(header)}\n${header?.machine ?? ""}`.toLowerCase().includes(filter.trim().toLowerCase());
}

/** For a file on the disk of whoever looks: nothing unseen, no path. */
export function fileName(name: string): string {
  const plain = printable(name).replace(/[\\/:*?"<>|]/g, "_").replace(/^\.+/, "_");
  return plain === "" ? "trace" : plain;
}
