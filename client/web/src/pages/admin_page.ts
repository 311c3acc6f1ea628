// The master itself: what it is and does, which agents are connected, and the caps of what it keeps.
import type { GetStatusResponse } from "#gen/admin_pb";
import { AgentsPanel } from "../agents_panel";
import { admin, ask } from "../api";
import { CapsPanel } from "../caps_panel";
import { printable } from "../core/printable";
import { countText, valueText } from "../core/units";
import type { AdminView, View } from "../core/view_state";
import { bdi, fill, h, type Part } from "../dom";
import type { Failure } from "../failure";
import { loop, type Loop, type Outcome } from "../loop";
import type { Go, Page } from "../page";
import { asOfBefore, failureBox, loadingBox } from "../state_box";

const refreshMs = 2000;

function diskWords(status: GetStatusResponse): Part {
  const free = Number(status.diskFreeBytes);
  if (status.diskError !== "") return h("span", { class: "worse" }, printable(status.diskError));
  return free === 0 ? "not known: it is elsewhere" : `${valueText(free, "bytes")} free`;
}

export class AdminPage implements Page {
  readonly title = "Master";
  readonly element = h("div", { class: "through" });
  private readonly status = h("div", {}, loadingBox("the master's status"));
  private readonly trouble = h("div", {});
  private readonly agents = new AgentsPanel();
  private readonly caps: CapsPanel;
  private readonly loop: Loop;
  private before: { answer: GetStatusResponse; at: number } | null = null;

  constructor(view: AdminView, go: Go) {
    this.caps = new CapsPanel(view.place, (place) => go({ page: "admin", place }, "push"));
    fill(this.element,
      h("section", { class: "panel" }, h("h1", {}, "Master"), this.trouble, this.status), this.agents.element, this.caps.element);
    this.loop = loop(() => refreshMs, (signal) => this.lookStatus(signal), (failure) => this.showStatusFailure(failure));
  }

  update(view: View): boolean {
    if (view.page !== "admin") return false;
    this.caps.show(view.place);
    return true;
  }

  destroy(): void {
    this.loop.stop();
    this.caps.destroy();
  }

  private async lookStatus(signal: AbortSignal): Promise<Outcome> {
    const answer = await ask((options) => admin.getStatus({}, options), signal);
    if (!answer) return "fine";
    if (!answer.ok) return this.showStatusFailure(answer.failure);
    fill(this.trouble);
    this.showStatus(answer.value);
    this.agents.show(answer.value);
    return "fine";
  }

  private showStatusFailure(failure: Failure): Outcome {
    // What passes takes nothing away that is there.
    const stays = failure.passing && this.before !== null;
    fill(this.trouble, stays && asOfBefore(failure));
    if (!stays) {
      this.before = null;
      fill(this.status, failureBox(failure, () => this.loop.now()));
      this.agents.clear();
    }
    // Who may not see the state may see caps; whose token counts no more sees neither.
    if (failure.kind === "signedOut") this.caps.deny(failure);
    return failure.passing ? "failed" : "stop";
  }

  private showStatus(status: GetStatusResponse): void {
    const now = performance.now();
    const before = this.before;
    const rate = before && now > before.at && status.samplesCommitted >= before.answer.samplesCommitted
      ? `${countText(Math.round((Number(status.samplesCommitted - before.answer.samplesCommitted) * 1000) / (now - before.at)))} /s` : "measuring …";
    this.before = { answer: status, at: now };
    const facts: readonly (readonly [string, Part])[] = [
      ["Role", status.role], ["Database", status.databaseUp ? "up" : h("span", { class: "worse" }, `down: ${printable(status.databaseError)}`)], ["Its disk", diskWords(status)],
      ["Version", status.version], ["Owner epoch", String(status.epoch)], ["Id", bdi(printable(status.masterId))],
      ["Clients connected", countText(status.streamsOpen)], ["Writers open", countText(status.writersOpen)],
      ["Samples committed", countText(status.samplesCommitted)], ["Samples now", rate], ["Chunks committed", countText(status.chunksCommitted)],
      ["Commit groups", countText(status.commitGroups)], ["Not yet folded", valueText(Number(status.unfoldedBytes), "bytes")],
      ["Chunks repeated", countText(status.chunksRepeated)], ["Chunks rejected", countText(status.chunksRejected)],
      ["Commits in doubt", countText(status.commitsInDoubt)], ["Samples replayed", countText(status.samplesReplayed)], ["Sequences lost", countText(status.sequencesLost)],
    ];
    fill(this.status,
      status.databaseUp && status.diskError !== "" && h("p", { class: "note" }, "A disk of the database is nearly full: nothing more is taken until there is room; agents keep what they have and send it later."),
      !status.databaseUp && h("p", { class: "note" }, "The database does not answer: agents keep what they have and send it later; this page shows what was asked before."),
      h("dl", { class: "facts" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))));
  }
}
