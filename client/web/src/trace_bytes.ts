// Traces piece by piece from the master: one as it was uploaded, several as one, or only how their clocks
// compare.
import type { MergeTotals, TraceAlignment, TraceFormat, TracePlacement } from "#gen/trace_pb";
import { gather, traces } from "./api";
import type { Result } from "./failure";

export interface TraceBytes {
  readonly pieces: readonly Uint8Array[];
  readonly byteCount: number;
  readonly placement: TracePlacement | null;
  readonly totals: MergeTotals | null;
}

/** Hears how many bytes are there. False: no more of them. */
export type Arriving = (byteCount: number) => boolean;

export async function fetchTrace(trialId: bigint, traceNo: number, arriving: Arriving, signal: AbortSignal): Promise<Result<TraceBytes> | null> {
  const pieces: Uint8Array[] = [];
  let byteCount = 0;
  const got = await gather((options) => traces.getTrace({ trial: { trialId }, traceNo }, options), ({ message }) => {
    if (message.case !== "part") return true;
    pieces.push(message.value.data);
    byteCount += message.value.data.length;
    return arriving(byteCount);
  }, signal);
  return got && (got.ok ? { ok: true, value: { pieces, byteCount, placement: null, totals: null } } : got);
}

export interface Merging {
  readonly trialId: bigint;
  readonly traceNos: readonly number[];
  readonly alignment: TraceAlignment;
}

export async function fetchMerged(merging: Merging, format: TraceFormat, arriving: Arriving, signal: AbortSignal): Promise<Result<TraceBytes> | null> {
  const pieces: Uint8Array[] = [];
  let byteCount = 0;
  let placement: TracePlacement | null = null;
  let totals: MergeTotals | null = null;
  const { trialId, traceNos, alignment } = merging;
  const request = { trial: { trialId }, traceNos: [...traceNos], alignment, format, gzip: true };
  const got = await gather((options) => traces.mergeTraces(request, options), ({ message }) => {
    if (message.case === "placement") placement = message.value;
    if (message.case === "totals") totals = message.value;
    if (message.case !== "data") return true;
    pieces.push(message.value);
    byteCount += message.value.length;
    return arriving(byteCount);
  }, signal);
  return got && (got.ok ? { ok: true, value: { pieces, byteCount, placement, totals } } : got);
}

/** How a merge would place them, without its bytes. */
export async function fetchPlacement(merging: Merging, signal: AbortSignal): Promise<Result<TracePlacement | null> | null> {
  let placement: TracePlacement | null = null;
  const { trialId, traceNos, alignment } = merging;
  const got = await gather((options) => traces.mergeTraces({ trial: { trialId }, traceNos: [...traceNos], alignment }, options), ({ message }) => {
    if (message.case === "placement") placement = message.value;
    return false;
  }, signal);
  return got && (got.ok ? { ok: true, value: placement } : got);
}

/** One after the other, as they came. */
export function joined(bytes: TraceBytes): ArrayBuffer {
  const whole = new Uint8Array(bytes.byteCount);
  let at = 0;
  for (const piece of bytes.pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole.buffer;
}

export function blobOf(bytes: TraceBytes): Blob {
  // Of messages that were read from the network: none is shared between threads, as the type would allow.
  return new Blob(bytes.pieces as Uint8Array<ArrayBuffer>[], { type: "application/octet-stream" });
}
