// One trial: who it is, how it stands, how complete it is; its tabs.
import { TrialState, type Completeness, type Trial } from "#gen/model_pb";
import { recordsAgain } from "../absence_words";
import { ask, query } from "../api";
import { completenessBadge, stateBadge } from "../badges";
import { timeText } from "../core/time_text";
import { countText, plural, secondsText } from "../core/units";
import { formatView, tabs, type Tab, type TrialView, type View } from "../core/view_state";
import { bdi, fill, h } from "../dom";
import type { Failure } from "../failure";
import { loop, type Loop, type Outcome } from "../loop";
import type { Go, Page } from "../page";
import { patch } from "../patch";
import { asOfBefore, failureBox, loadingBox } from "../state_box";
import { isRunning, readSeries, type Learnt, type TrialInfo, type TrialTab } from "../trial_info";
import { completenessWords, trialName } from "../words";
import { refill } from "../choice";
import { CompletenessTab } from "./completeness_tab";
import { HeatTab } from "./heat_tab";
import { MetricsTab } from "./metrics_tab";
import { TimingsTab } from "./timings_tab";
import { TracesTab } from "./traces_tab";

const runningMs = 2000;
const endedMs = 30_000;
const tabNames: Record<Tab, string> = { timings: "Timings", metrics: "System metrics", heat: "Heat map", traces: "Traces", completeness: "Completeness" };

export class TrialPage implements Page {
  readonly element = h("div", { class: "through" });
  readonly title: string;
  private readonly head = h("header", { class: "head" });
  private readonly line = h("div", { class: "line" });
  private readonly facts = h("p", { class: "muted" });
  private readonly notes = h("div", {});
  private readonly trouble = h("div", {});
  private readonly tabBar = h("nav", { class: "tabs", "aria-label": "Views of the trial" });
  private readonly place = h("div", { class: "through" });
  private readonly loop: Loop;
  private info: TrialInfo | null = null;
  private tab: { name: Tab; page: TrialTab } | null = null;

  constructor(private view: TrialView, private readonly go: Go) {
    this.title = `Trial ${view.trial}`;
    fill(this.element, this.head, this.tabBar, this.place);
    fill(this.head, this.line, this.facts, this.notes, this.trouble);
    this.clearHead();
    fill(this.place, loadingBox("the trial"));
    this.showTabs();
    this.loop = loop(() => (this.info && !isRunning(this.info) ? endedMs : runningMs), (signal) => this.look(signal), (failure) => this.failed(failure));
  }

  update(view: View): boolean {
    if (view.page !== "trial" || view.trial !== this.view.trial) return false;
    if (formatView(view) === formatView(this.view)) return true;
    this.view = view;
    this.showTabs();
    this.showTab();
    return true;
  }

  destroy(): void {
    this.loop.stop();
    this.tab?.page.destroy();
  }

  private async look(signal: AbortSignal): Promise<Outcome> {
    const trialId = BigInt(this.view.trial);
    // The first look wants both.
    const first = this.info ? null : readSeries(trialId, signal);
    const answer = await ask((options) => query.getTrial({ trial: { trialId } }, options), signal);
    if (!answer) return "fine";
    if (!answer.ok) return this.failed(answer.failure);
    const { trial, writers, completeness, profiling } = answer.value;
    if (!trial) return "stop";
    let { series, seriesTruncated } = this.info ?? { series: [], seriesTruncated: false };
    // The list that was asked for beside the trial may be older than its count.
    const missesSome = series.length < trial.seriesCount && !seriesTruncated;
    if (!this.info || missesSome || this.info.trial.seriesCount !== trial.seriesCount) {
      const listed = await (first ?? readSeries(trialId, signal));
      if (!listed) return "fine";
      if (!listed.ok) return this.failed(listed.failure);
      series = listed.value.series;
      seriesTruncated = listed.value.truncated;
    }
    this.info = { trial, writers, completeness, profiling, series, seriesTruncated };
    fill(this.trouble);
    this.showHead(trial, completeness);
    this.showTab();
    return "fine";
  }

  /** The tab is cleared: the rest is asked for at once, for of a trial that has ended it would stand for half a minute yet. */
  private readonly learnt: Learnt = ({ kind }) => {
    if (kind === "signedOut" || kind === "refused" || kind === "notFound") this.loop.now();
  };

  private failed(failure: Failure): Outcome {
    // What passes takes nothing away that is there: charts, a download under way. A lost connection has a bar of its own.
    if (this.info && failure.passing) {
      fill(this.trouble, asOfBefore(failure));
    } else {
      this.tab?.page.destroy();
      this.tab = null;
      // With what was known of the trial goes what each tab would show of it, until it is asked for again.
      this.info = null;
      this.clearHead();
      fill(this.place, failureBox(failure, () => this.loop.now()));
    }
    return failure.passing ? "failed" : "stop";
  }

  /** As it is before anything is known: what may not be seen any more is not told there either. */
  private clearHead(): void {
    document.title = `${this.title} · Stepwell`;
    refill(this.line, "", () => [h("h1", {}, this.title)]);
    fill(this.facts);
    fill(this.notes);
    fill(this.trouble);
  }

  private showHead(trial: Trial, held: Completeness | undefined): void {
    const name = trialName(trial);
    document.title = `${name} · Stepwell`;
    const facts: string[] = [`trial ${trial.trialId}`];
    if (trial.sampleCount > 0n) {
      facts.push(timeText(Number(trial.firstSampleTimeUs)));
      facts.push(secondsText(Number(trial.lastSampleTimeUs - trial.firstSampleTimeUs) / 1e6));
    }
    facts.push(plural(trial.attemptCount, "attempt"), plural(trial.writerCount, "writer"), `${countText(trial.seriesCount)} series`, plural(trial.sampleCount, "sample"));
    const toCompleteness = formatView({ ...this.view, tab: "completeness" });
    // A line that is full ends with its dot.
    patch(this.facts, facts.map((fact, at) => [h("span", { class: "nowrap" }, at < facts.length - 1 ? `${fact} ·` : fact), " "]));
    // Every two seconds: who is on the link to Completeness stays there.
    refill(this.line, JSON.stringify([name, trial.state, toCompleteness, trial.archived, held && completenessWords(held)]), () => [
      h("h1", {}, bdi(name)), stateBadge(trial.state, "state"), held ? completenessBadge(held, toCompleteness) : null, trial.archived && h("span", { class: "badge" }, "archived")]);
    fill(this.notes,
      this.info?.profiling && !this.info.profiling.on && h("p", { class: "note" }, trial.state === TrialState.COMPLETED || trial.state === TrialState.FAILED
        ? "By request, recording was off." : `By request, recording is off; '${recordsAgain(trial.trialId)}' takes it back.`),
      held?.recovering && h("p", { class: "note" }, "The master is still recovering: the last seconds may be missing."));
  }

  private showTabs(): void {
    // The links stay and change where they lead: who has chosen one by keys is still on it.
    patch(this.tabBar, tabs.map((tab) => {
      // Axis and range go along: what did the machine do in these batches? What is drawn does not.
      const view: TrialView = { ...this.view, tab, metrics: tab === this.view.tab ? this.view.metrics : [] };
      return h("a", { href: formatView(view), "aria-current": tab === this.view.tab ? "page" : null }, tabNames[tab]);
    }));
  }

  private showTab(): void {
    if (!this.info) return;
    if (this.tab?.name !== this.view.tab) {
      this.tab?.page.destroy();
      this.tab = { name: this.view.tab, page: this.makeTab(this.view.tab) };
      fill(this.place, this.tab.page.element);
    }
    this.tab.page.update(this.view, this.info);
  }

  private makeTab(tab: Tab): TrialTab {
    switch (tab) {
      case "timings": return new TimingsTab(this.go, this.learnt);
      case "metrics": return new MetricsTab(this.go, this.learnt);
      case "heat": return new HeatTab(this.go, this.learnt);
      case "traces": return new TracesTab(this.go, this.learnt);
      case "completeness": return new CompletenessTab();
    }
  }
}
