// Why an answer did not come, and what a person can do: each kind reads differently and asks for
// something else.
import { Code, ConnectError } from "@connectrpc/connect";

export type FailureKind = "lost" | "unavailable" | "refused" | "signedOut" | "notFound" | "invalid" | "busy" | "late" | "missing" | "failed" | "broken";

export interface Failure {
  readonly kind: FailureKind;
  readonly title: string;
  /** What to do about a question that is asked again and again. */
  readonly advice: string;
  /** What the master said; from anywhere, so only ever shown as text. */
  readonly detail: string;
  /** Whether the same question may be answered later. */
  readonly passing: boolean;
}

export type Result<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly failure: Failure };

/** Thrown by our fetch where no answer came at all. */
export class NoConnection extends Error {}

const silences = new WeakSet<object>();

/** Of a deadline that passed before an answer began, while nothing else was answered: nobody is there. */
export function markSilence(reason: unknown): void {
  if (typeof reason === "object" && reason !== null) silences.add(reason);
}

/** Whether a call was given up for its own deadline, not by who asked. */
export function isDeadline(reason: unknown): reason is ConnectError {
  return reason instanceof ConnectError && reason.code === Code.DeadlineExceeded;
}

/** The heading, and what to do: about a question that is asked again and again alone (`asked`), and about anything. */
const words: Record<FailureKind, readonly [title: string, asked: string, advice: string, passing: boolean]> = {
  lost: ["Lost the connection to the master", "It is asked again until it answers.", "Is 'stepwell serve' running, and this machine's network up?", true],
  unavailable: ["The master cannot answer now", "It is asked again.", "It may be starting, recovering, a standby, or without its database.", true],
  refused: ["Not permitted", "The master does not let this page see it.", "Ask whoever runs the master for access.", false],
  signedOut: ["Not permitted", "", "The master does not take this browser's token: it may have been revoked, or have expired. Reload the page and give one that counts as the password; 'stepwell token create' makes them.", false],
  notFound: ["Not found", "", "It may have been deleted, or the link is for another master.", false],
  invalid: ["The master did not accept the question", "Go back to the whole trial and choose anew; if it stays, this page and the master differ in version: reload.", "", false],
  busy: ["The master has too much to do", "It is asked again more slowly. Choose fewer series or a shorter range.", "", true],
  late: ["The answer took too long", "Choose fewer series or a shorter range; it is asked again.", "", true],
  missing: ["This master cannot do that yet", "", "It is of another version than this page. Reload the page after an upgrade.", false],
  broken: ["The page made a mistake", "It tries again by itself.", "Reload the page; if it stays, the browser's console says more.", true],
  failed: ["Something failed", "It is asked again.", "If it stays, the master's log says more.", true],
};

function kindOf(code: Code): FailureKind {
  switch (code) {
    case Code.Unavailable:
    case Code.Aborted:
      return "unavailable";
    case Code.PermissionDenied:
      return "refused";
    case Code.Unauthenticated:
      return "signedOut";
    case Code.NotFound:
      return "notFound";
    case Code.InvalidArgument:
    case Code.OutOfRange:
    case Code.FailedPrecondition:
    case Code.AlreadyExists:
      return "invalid";
    case Code.ResourceExhausted:
      return "busy";
    case Code.DeadlineExceeded:
      return "late";
    case Code.Unimplemented:
      return "missing";
    case Code.Canceled:
    case Code.Unknown:
    case Code.Internal:
    case Code.DataLoss:
      return "failed";
  }
}

export function failureOf(kind: FailureKind, detail: string): Failure {
  const [title, asked, advice, passing] = words[kind];
  return { kind, title, advice: sentences(asked, advice), detail, passing };
}

function sentences(...parts: string[]): string {
  return parts.filter((part) => part !== "").join(" ");
}

/** What happens once, because a person wants it: it reads, or changes what the master keeps. */
export type Act = "reads" | "changes";

/** A change may be done all the same: what became of a COMMIT that its database did not answer the master does not know either, and
 *  tells as one of the last two. */
const unsure: ReadonlySet<FailureKind> = new Set(["lost", "late", "unavailable", "failed"]);

/** What to do about an act: nobody does it again but who wants it. */
export function actAdvice(kind: FailureKind, act: Act): string {
  return sentences(words[kind][2], act === "changes" && unsure.has(kind) ? "Nobody knows whether it was done: look again." : "It was not done.");
}

export function toFailure(thrown: unknown): Failure {
  const error = ConnectError.from(thrown);
  // A TypeError is what fetch and a stream that is cut in the middle throw.
  const lost = thrown instanceof NoConnection || silences.has(error) || error.cause instanceof NoConnection || error.cause instanceof TypeError;
  const kind = lost ? "lost" : isUnsendable(error) ? "broken" : kindOf(error.code);
  if (kind === "broken") console.error(thrown);
  return failureOf(kind, error.rawMessage);
}

/** What the client throws where a question of ours is none of the contract's. Asked was nobody. */
function isUnsendable(error: ConnectError): boolean {
  return error.code === Code.Internal && error.rawMessage.startsWith("serialize ");
}

/** Of an answer that is no call's: a file of the page's. */
export function failureOfStatus(status: number, detail: string): Failure {
  return failureOf(status === 401 ? "signedOut" : status === 403 ? "refused" : "failed", detail);
}

/** What `act` gives; where it throws, which is nobody's answer but the page's or its browser's own: what `broke` gives. */
export async function orBroken<T>(act: () => Promise<T>, broke: (detail: string) => T): Promise<T> {
  try {
    return await act();
  } catch (thrown) {
    console.error(thrown);
    return broke(brokenPage(thrown).detail);
  }
}

/** What no call threw, but the page itself. */
export function brokenPage(thrown: unknown): Failure {
  return failureOf("broken", thrown instanceof Error ? thrown.message : String(thrown));
}

/** The follower's place is no longer in memory, or the database was set back behind it: begin anew. */
export function isPlaceLost(thrown: unknown): boolean {
  const { code } = ConnectError.from(thrown);
  return code === Code.OutOfRange || code === Code.InvalidArgument;
}
