// All trials, newest first: search, state, project, pages; pick two or more to compare.
import type { Trial } from "#gen/model_pb";
import type { ListTrialsResponse } from "#gen/query_pb";
import { ask, query } from "../api";
import { stateBadge, statesMark } from "../badges";
import { filledPage } from "../core/filled_page";
import { withPick } from "../core/picks";
import { agoText, timeText } from "../core/time_text";
import { countText, plural, secondsText } from "../core/units";
import { compareView, formatView, trialsView, trialView, type TrialsView, type View } from "../core/view_state";
import { bdi, fill, h, scroller, type Part } from "../dom";
import type { Failure } from "../failure";
import { loop, type Loop, type Outcome } from "../loop";
import type { Go, Page } from "../page";
import { patch } from "../patch";
import { asOfBefore, failureBox, loadingBox, stateBox } from "../state_box";
import { Utilisations } from "../utilisation";
import { stateHints, stateOf, trialName } from "../words";

const pageSize = 50;
const refreshMs = 4000;
const typingMs = 300;
/** As many as are compared. */
const picksMax = 16;

export class TrialsPage implements Page {
  readonly title = "Trials";
  readonly element = h("div", { class: "panel" });
  private readonly list = h("div", { "aria-busy": "true" });
  private readonly search: HTMLInputElement;
  private readonly project: HTMLInputElement;
  private readonly state: HTMLSelectElement;
  private readonly compare = h("button", { type: "button", disabled: true, onclick: () => this.goCompare() }, "Compare");
  private readonly pickNote = h("span", { class: "muted", role: "status" });
  private picked: ReadonlySet<string> = new Set<string>();
  /** Tokens of the pages that were seen of this list, by their numbers; a link may begin at any. */
  private tokens = new Map([[1, ""]]);
  /** The token of the page after this one; "" = there is none. */
  private next = "";
  private readonly loop: Loop;
  private readonly utilisations = new Utilisations();
  private typing: ReturnType<typeof setTimeout> | undefined;
  /** Which list is shown: of what was asked, and the page of it. */
  private shown = "";
  private readonly trouble = h("div", {});

  constructor(private view: TrialsView, private readonly go: Go) {
    const typed = (): void => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.changed(), typingMs);
    };
    this.search = h("input", { type: "search", value: view.search, oninput: typed, placeholder: "name contains …", "aria-label": "Search trials by name" });
    this.project = h("input", { type: "search", value: view.project, oninput: typed, placeholder: "any project", "aria-label": "Project" });
    this.state = h("select", { onchange: () => this.changed(), "aria-label": "State" },
      ["", "running", "completed", "failed", "lost"].map((one) => h("option", { value: one }, one === "" ? "any state" : one)));
    this.state.value = view.state;
    this.tokens.set(view.pageNo, view.pageToken);
    fill(this.element,
      h("div", { class: "tools", role: "search" },
        h("h1", {}, "Trials"), h("span", { class: "space" }), this.search, this.state,
        statesMark(stateHints()),
        this.project, this.pickNote, this.compare),
      this.trouble, this.list);
    fill(this.list, loadingBox("the trials"));
    this.loop = loop(() => refreshMs, (signal) => this.look(signal), (failure) => this.showFailure(failure));
  }

  update(view: View): boolean {
    if (view.page !== "trials") return false;
    const before = this.view;
    this.view = view;
    if (formatView(view) === formatView(before)) return true;
    if (listOf(view) !== listOf(before)) this.tokens = new Map([[1, ""]]);
    this.tokens.set(view.pageNo, view.pageToken);
    if (this.search.value !== view.search) this.search.value = view.search;
    if (this.project.value !== view.project) this.project.value = view.project;
    this.state.value = view.state;
    this.loop.now();
    return true;
  }

  destroy(): void {
    clearTimeout(this.typing);
    this.loop.stop();
    this.utilisations.stop();
  }

  private changed(): void {
    this.go({ ...trialsView, search: this.search.value, state: this.state.value, project: this.project.value }, "replace");
  }

  private goCompare(): void {
    this.go({ ...compareView, trials: [...this.picked] }, "push");
  }

  private async look(signal: AbortSignal): Promise<Outcome> {
    const { search, state, project, pageToken } = this.view;
    const answer = await filledPage(
      (token, size) => ask((options) => query.listTrials({ nameContains: search, state: stateOf(state), project, pageSize: size, pageToken: token }, options), signal),
      (page) => page.trials, pageToken, pageSize);
    if (!answer) return "fine";
    this.list.setAttribute("aria-busy", "false");
    if (!answer.ok) return this.showFailure(answer.failure);
    fill(this.trouble);
    this.show(answer.value);
    this.utilisations.look(answer.value.trials);
    this.shown = this.question();
    return "fine";
  }

  private showFailure(failure: Failure): Outcome {
    // What passes takes no list away that is of what is asked for.
    const stays = failure.passing && this.shown === this.question();
    fill(this.trouble, stays && asOfBefore(failure));
    if (!stays) {
      this.shown = "";
      // A page's token is of one list of one master: a link that is older may name none.
      fill(this.list, failureBox(failure, () => (failure.kind === "invalid" && this.view.pageNo > 1 ? this.turn(1, "", "replace") : this.loop.now())));
    }
    return failure.passing ? "failed" : "stop";
  }

  private question(): string {
    return formatView(this.view);
  }

  private show(answer: ListTrialsResponse): void {
    const now = Number(answer.completeness?.answeredTimeUs ?? 0);
    patch(this.list, answer.trials.length === 0 ? this.emptyBox(answer.nextPageToken !== "") : this.table(answer.trials, now), this.pager(answer));
    this.showPicks();
  }

  private showPicks(): void {
    this.compare.disabled = this.picked.size < 2;
    this.compare.textContent = this.picked.size > 0 ? `Compare ${this.picked.size}` : "Compare";
  }

  private emptyBox(hasMore: boolean): HTMLElement {
    const { search, state, project } = this.view;
    if (hasMore) return stateBox("empty", "No trial matches so far", "Many trials were looked at; Older looks at those before them.");
    if (this.view.pageNo > 1) return stateBox("empty", "No more trials", "This page is past the last one.");
    if (search !== "" || state !== "" || project !== "") {
      return stateBox("empty", "No trial matches", "Search looks for a part of the name, upper and lower case apart; the project is its whole name.",
        h("button", { type: "button", onclick: () => this.go(trialsView, "push") }, "Show all trials"));
    }
    return stateBox("no data yet", "No trial yet", "In a training: import stepwell; stepwell.init() — or, without touching it: stepwell run python train.py. It appears here by itself.");
  }

  private table(trials: readonly Trial[], now: number): HTMLElement {
    const heads: Part[] = ["Compare", "Trial", "State", "Began (UTC)", "Lasted", "Utilisation", "Ranks and samplers", "Series", "Samples", "Missing"]
      .map((text, at) => h("th", { scope: "col", class: at >= 4 && at !== 5 ? "number" : "" }, at === 0 ? h("span", { class: "visually-hidden" }, text) : text));
    return scroller("Trials", h("table", { class: "cards trials" },
      h("caption", { class: "visually-hidden" }, "Trials, newest first"),
      h("thead", {}, h("tr", {}, heads)),
      h("tbody", {}, trials.map((trial) => this.row(trial, now)))));
  }

  private row(trial: Trial, now: number): HTMLElement {
    const id = String(trial.trialId);
    const name = trialName(trial);
    const pick = h("input", { type: "checkbox", "aria-label": `Compare ${name}`, "data-focus": `pick-${id}`, onchange: (event: Event) => this.pick(id, event.currentTarget as HTMLInputElement) });
    pick.checked = this.picked.has(id);
    const began = Number(trial.firstSampleTimeUs) || Number(trial.createdTimeUs);
    const lasted = (Number(trial.lastSampleTimeUs) - Number(trial.firstSampleTimeUs)) / 1e6;
    const cell = (label: string, kind: string, ...parts: Part[]): HTMLElement => h("td", { "data-label": label, class: kind }, h("span", {}, ...parts));
    return h("tr", { "data-key": `row-${id}` },
      h("td", { class: "pick" }, pick),
      cell("Trial", "name", h("a", { href: formatView(trialView(id)), "data-focus": `trial-${id}` }, bdi(name)),
        trial.archived && h("span", { class: "muted" }, " archived")),
      cell("State", "", stateBadge(trial.state)),
      cell("Began (UTC)", "", h("span", { class: "nowrap" }, timeText(began).replace(" UTC", "")), " ", h("span", { class: "muted nowrap" }, agoText(began, now))),
      cell("Lasted", "number", trial.sampleCount > 0n ? secondsText(lasted) : "–"),
      cell("Utilisation", "", this.utilisations.place(trial)),
      cell("Ranks and samplers", "number", countText(trial.writerCount)),
      cell("Series", "number", countText(trial.seriesCount)),
      cell("Samples", "number", countText(trial.sampleCount)),
      cell("Missing", trial.samplesMissing > 0n || trial.hasMissingSamples ? "number worse" : "number", missingText(trial)));
  }

  private pick(id: string, box: HTMLInputElement): void {
    const { picked, refused } = withPick(this.picked, id, box.checked, picksMax);
    this.picked = picked;
    box.checked = picked.has(id);
    this.pickNote.textContent = refused ? `At most ${picksMax} are compared.` : "";
    this.showPicks();
  }

  private pager(answer: ListTrialsResponse): HTMLElement | null {
    const { pageNo } = this.view;
    this.next = answer.nextPageToken;
    if (pageNo === 1 && this.next === "") return null;
    const isKnown = this.tokens.has(pageNo - 1) || pageNo === 1;
    return h("nav", { class: "tools", "aria-label": "Pages of trials" },
      h("button", { type: "button", "data-focus": "newer", disabled: pageNo === 1, onclick: () => this.newer() }, isKnown ? "‹ Newer" : "« Newest"),
      h("span", { class: "muted" }, `page ${countText(pageNo)}, ${plural(answer.trials.length, "trial")}`),
      h("button", { type: "button", "data-focus": "older", disabled: answer.nextPageToken === "", onclick: () => this.turn(this.view.pageNo + 1, this.next) }, "Older ›"));
  }

  /** To the page before; of one that a link began at only the first is known. */
  private newer(): void {
    const before = this.view.pageNo - 1;
    const token = this.tokens.get(before);
    if (token === undefined) this.turn(1, "");
    else this.turn(before, token);
  }

  private turn(pageNo: number, pageToken: string, how: "push" | "replace" = "push"): void {
    this.go({ ...this.view, pageNo, pageToken }, how);
  }
}

/** Of gaps whose number nobody knows it can but be told that there are some. */
function missingText({ samplesMissing, hasMissingSamples }: Trial): string {
  if (samplesMissing > 0n) return countText(samplesMissing);
  return hasMissingSamples ? "unknown" : "none";
}

/** Which list of trials, whatever page of it. */
function listOf(view: TrialsView): string {
  return formatView({ ...view, pageNo: 1, pageToken: "" });
}
