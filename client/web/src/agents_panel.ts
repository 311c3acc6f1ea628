// Who is connected to the master: the agent of each machine, with its version, its writers, and how long it
// has been silent.
import type { ConnectedAgent, GetStatusResponse } from "#gen/admin_pb";
import { refill } from "./choice";
import { printable } from "./core/printable";
import { agoText, timeText } from "./core/time_text";
import { countText, plural } from "./core/units";
import { bdi, h, scroller, type Part } from "./dom";

/** Where writers are open there are samples or heartbeats; so late, something is in the way. */
const silentUs = 30_000_000;

export class AgentsPanel {
  readonly element = h("section", { class: "panel", hidden: true, "aria-label": "Agents" });

  show(status: GetStatusResponse): void {
    // A master of an earlier version tells of none, and of no time.
    const now = Number(status.answeredTimeUs);
    this.element.hidden = now === 0;
    const rows = status.agents.map((agent) => [agent, agoText(Number(agent.seenTimeUs), now)] as const);
    const key = JSON.stringify([rows.map(([agent, ago]) => [agent.agentId, agent.agentVersion, agent.writersOpen, String(agent.sinceTimeUs), ago]), String(status.agentsLeftOut)]);
    refill(this.element, key, () => [
      h("h2", {}, "Agents"),
      rows.length === 0 ? h("p", { class: "muted" }, "None is connected: one starts with the first recording on its machine, or by 'stepwell agent'.")
        : scroller("Agents", h("table", { class: "cards" },
          h("caption", { class: "visually-hidden" }, "Agents that are connected"),
          h("thead", {}, h("tr", {}, ["Host", "Version", "Writers", "Connected since (UTC)", "Last message"].map((text) =>
            h("th", { scope: "col", class: text === "Writers" ? "number" : "" }, text)))),
          h("tbody", {}, rows.map(([agent, ago]) => this.row(agent, ago, now))))),
      status.agentsLeftOut > 0n ? h("p", { class: "muted" }, `And ${plural(status.agentsLeftOut, "more agent")}: listed are those that were silent the longest.`) : null,
    ]);
  }

  /** Nothing of them is known any more. */
  clear(): void {
    this.element.hidden = true;
    refill(this.element, "", () => []);
  }

  private row(agent: ConnectedAgent, ago: string, now: number): HTMLElement {
    const cell = (label: string, kind: string, ...parts: Part[]): HTMLElement => h("td", { "data-label": label, class: kind }, h("span", {}, ...parts));
    const isSilent = agent.writersOpen > 0 && now - Number(agent.seenTimeUs) > silentUs;
    return h("tr", {}, cell("Host", "name", agent.agentId === "" ? "–" : bdi(printable(agent.agentId))),
      cell("Version", "", agent.agentVersion === "" ? "–" : bdi(printable(agent.agentVersion))),
      cell("Writers", "number", countText(agent.writersOpen)),
      cell("Connected since", "nowrap", timeText(Number(agent.sinceTimeUs)).replace(" UTC", "")),
      cell("Last message", isSilent ? "nowrap worse" : "nowrap", ago));
  }
}
