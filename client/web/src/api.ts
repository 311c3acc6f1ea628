// The one door to the master: the generated client over the Connect protocol (binary), a Result for every
// question, and who wants to know whether the master answers at all.
import { Code, ConnectError, createClient, type Client } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { AdminService } from "#gen/admin_pb";
import { QueryService } from "#gen/query_pb";
import { TraceService } from "#gen/trace_pb";
import { failureOfStatus, isDeadline, markSilence, NoConnection, toFailure, type Result } from "./failure";

/** Of a question; the master has its own, shorter ones for statements. */
const timeoutMs = 30_000;

type Listener = (answers: boolean) => void;
const listeners = new Set<Listener>();

/** Hears after each call whether the master answered (with an error, too). Returns how to stop. */
export function onReach(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

let answeredAt = -Infinity;
let toldAt = performance.now();

/** How long nothing has told whether the master answers. */
export function untoldMs(): number {
  return performance.now() - toldAt;
}

function tell(answers: boolean): void {
  toldAt = performance.now();
  if (answers) answeredAt = toldAt;
  for (const listener of listeners) listener(answers);
}

// A fetch that says whether anybody answered: one that was given up says nothing, one whose deadline passed before
// an answer began says that nobody did, unless the master answered something else meanwhile.
async function fetchOrSay(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const began = performance.now();
  try {
    const response = await fetch(input, { ...init, credentials: "same-origin", redirect: "error" });
    tell(true);
    return response;
  } catch (thrown) {
    if (init?.signal?.aborted) {
      const reason: unknown = init.signal.reason;
      if (isDeadline(reason) && answeredAt < began) {
        markSilence(reason);
        tell(false);
      }
      throw thrown;
    }
    tell(false);
    // What the browser says of it ("Failed to fetch") tells nobody anything.
    throw new NoConnection(`no answer from ${location.host}`);
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
export const traces: Client<typeof TraceService> = createClient(TraceService, transport);

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

/** The messages of a stream, each as it comes, however long all of them take; `take` says false where it has
 * enough. null = given up by `signal`. */
export async function gather<T>(
  call: (options: { signal: AbortSignal }) => AsyncIterable<T>, take: (message: T) => boolean, signal: AbortSignal,
): Promise<Result<null> | null> {
  const controller = new AbortController();
  const giveUp = (): void => controller.abort();
  signal.addEventListener("abort", giveUp);
  try {
    if (signal.aborted) return null;
    for await (const message of call({ signal: controller.signal })) {
      if (signal.aborted) return null;
      if (!take(message)) break;
    }
    return { ok: true, value: null };
  } catch (thrown) {
    if (signal.aborted) return null;
    return { ok: false, failure: toFailure(thrown) };
  } finally {
    signal.removeEventListener("abort", giveUp);
    giveUp(); // What was not taken is not wanted.
  }
}

/** What the page is told of the master's settings (server/http/page_settings.h). */
export interface PageSettings {
  /** Empty = none. */
  readonly traceViewer: string;
}

export async function readSettings(signal: AbortSignal): Promise<Result<PageSettings> | null> {
  try {
    return await read("page.json", signal, async (response): Promise<Result<PageSettings>> => {
      if (!response.ok) return { ok: false, failure: failureOfStatus(response.status, `page.json: ${response.status}`) };
      const read: unknown = await response.json();
      const viewer = typeof read === "object" && read !== null && "trace_viewer" in read ? read.trace_viewer : "";
      // Anything else than a page would be run here.
      return { ok: true, value: { traceViewer: typeof viewer === "string" && /^https?:\/\//.test(viewer) ? viewer : "" } };
    });
  } catch (thrown) {
    if (signal.aborted) return null;
    return { ok: false, failure: toFailure(thrown) };
  }
}

/** Asks the master whether it lives; who listens (onReach) hears the answer, and that there is none. */
export async function askWhetherAlive(signal: AbortSignal): Promise<void> {
  try {
    await read("livez", signal, (response) => response.text());
  } catch {
    // That no answer began is told already; one that was cut is one.
  }
}

/** What `take` makes of a file of the master's; throws where it has not come in time, or at all. */
async function read<T>(path: string, signal: AbortSignal, take: (response: Response) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const giveUp = (): void => controller.abort();
  signal.addEventListener("abort", giveUp);
  const deadline = setTimeout(() => controller.abort(new ConnectError(`${path}: no answer in time`, Code.DeadlineExceeded)), timeoutMs);
  try {
    return await take(await fetchOrSay(path, { signal: controller.signal }));
  } finally {
    clearTimeout(deadline);
    signal.removeEventListener("abort", giveUp);
  }
}
