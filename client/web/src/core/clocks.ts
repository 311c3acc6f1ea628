// Which clock measured a scope: the host's, or the device's (CUDA events), where the same name has both. Their
// means together say nothing: a launch takes microseconds where its kernel takes milliseconds.

export type Clock = "host" | "device";

export const clockLabel = "clock";

/** Without the label it is the host's. */
export function clockOf(labels: Readonly<Record<string, string>>): Clock {
  return labels[clockLabel] === "device" ? "device" : "host";
}

/** Which ones there are, the host's first. */
export function clocksOf(series: readonly { readonly labels: Readonly<Record<string, string>> }[]): Clock[] {
  const there = new Set(series.map((one) => clockOf(one.labels)));
  return (["host", "device"] as const).filter((clock) => there.has(clock));
}

/** The wanted one where it is there, else the first that is. */
export function chosenClock(there: readonly Clock[], wanted: Clock | ""): Clock {
  return there.find((clock) => clock === wanted) ?? there[0] ?? "host";
}
