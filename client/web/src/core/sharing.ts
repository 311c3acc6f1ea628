// Which machines a trial shares with other trials, now or at some time: what it measured there is then not its
// own doing alone.

export interface SharedMachine {
  readonly agent: string;
  /** Trials at once, this one included: the most ever, and the newest. */
  readonly most: number;
  readonly newest: number;
}

export interface SharingWords {
  readonly text: string;
  readonly title: string;
}

function others(count: number): string {
  return `${count - 1} other trial${count === 2 ? "" : "s"}`;
}

/** null: none is, or was. */
export function sharingWords(machines: readonly SharedMachine[], running: boolean): SharingWords | null {
  const now = running ? machines.filter((machine) => machine.newest > 1) : [];
  const ever = machines.filter((machine) => machine.most > 1);
  const meant = now.length > 0 ? now : ever;
  const most = Math.max(0, ...meant.map((machine) => (now.length > 0 ? machine.newest : machine.most)));
  if (meant.length === 0) return null;
  const whose = machines.length === 1 ? "machine" : `${meant.length} of ${machines.length} machines`;
  return {
    text: now.length > 0 ? `${whose} shared with ${others(most)}` : `${whose} shared for a time with up to ${others(most)}`,
    title: meant.map((machine) => `${machine.agent}: ${others(now.length > 0 ? machine.newest : machine.most)}`).join("\n"),
  };
}
