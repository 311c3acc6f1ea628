// What a live stream that failed means to who looks.
import type { FailureKind } from "../failure";

export interface AfterFailure {
  readonly state: "lost" | "polling" | "refused";
  /** It is not asked for again. */
  readonly final: boolean;
}

/** A master that has no place for one more stream answers all other questions: charts ask by themselves meanwhile. */
export function afterFailure(kind: FailureKind): AfterFailure {
  switch (kind) {
    case "refused":
    case "signedOut":
    case "missing":
    case "notFound":
      return { state: "refused", final: true };
    case "busy":
      return { state: "polling", final: false };
    default:
      return { state: "lost", final: false };
  }
}
