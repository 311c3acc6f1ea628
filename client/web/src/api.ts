// The one door to the master: the generated client over the Connect protocol (binary), a Result for every
// question, and who wants to know whether the master answers at all.
import { createClient, type Client } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { AdminService } from "#gen/admin_pb";
import { QueryService } from "#gen/query_pb";
import { NoConnection, toFailure, type Result } from "./failure";

/** Of a question; the master has its own, shorter ones for statements. */
const timeoutMs = 30_000;

type Listener = (answers: boolean) => void;
const listeners = new Set<Listener>();

/** Hears after each call whether the master answered (with an error, too). Returns how to stop. */
export function onReach(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(answers: boolean): void {
  for (const listener of listeners) listener(answers);
}

// A fetch that says whether anybody answered: an aborted one says nothing.
async function fetchOrSay(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  try {
    const response = await fetch(input, { ...init, credentials: "same-origin", redirect: "error" });
    tell(true);
    return response;
  } catch (thrown) {
    if (init?.signal?.aborted) throw thrown;
    tell(false);
    throw new NoConnection(thrown instanceof Error ? thrown.message : String(thrown));
  }
}

const transport = createConnectTransport({
  baseUrl: location.origin,
  useBinaryFormat: true,
  useHttpGet: false, // names would stand in logs
  fetch: fetchOrSay,
});

export const query: Client<typeof QueryService> = createClient(QueryService, transport);
export const admin: Client<typeof AdminService> = createClient(AdminService, transport);

/** null = given up by `signal`: nobody waits for it. */
export async function ask<T>(
  call: (options: { signal: AbortSignal; timeoutMs: number }) => Promise<T>,
  signal: AbortSignal,
): Promise<Result<T> | null> {
  try {
    return { ok: true, value: await call({ signal, timeoutMs }) };
  } catch (thrown) {
    // "canceled" of the master's is an answer: only who asked can give it up.
    if (signal.aborted) return null;
    return { ok: false, failure: toFailure(thrown) };
  }
}
