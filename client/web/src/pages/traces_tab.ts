// A trial's traces: which are here and how large, how far their clocks may be off, where their steps' time
// went, downloaded as they came, merged, handed to a viewer's window, deleted.
import { TraceAlignment, TraceFormat, TraceState, type MergedTrace, type Trace } from "#gen/trace_pb";
import { ask, readSettings, traces } from "../api";
import { refill } from "../choice";
import { ByteBound } from "../core/byte_bound";
import { printable } from "../core/printable";
import { timeText } from "../core/time_text";
import { countText, plural, valueText } from "../core/units";
import type { TrialView } from "../core/view_state";
import { bdi, downloadBlob, fill, h, keepFocus, scroller, type Part } from "../dom";
import { FilterBox } from "../filter_box";
import { orBroken, type Act, type Failure, type Result } from "../failure";
import { loop, type Loop, type Outcome } from "../loop";
import type { Go } from "../page";
import { asOfBefore, failureBox, loadingBox, stateBox } from "../state_box";
import { StepsPanel } from "../steps_panel";
import { blobOf, fetchMerged, fetchPlacement, fetchTrace, joined, type Arriving, type TraceBytes } from "../trace_bytes";
import { clockWords, cycleWord, fileName, formatWord, isMergeable, isWhole, matches, meant, named, traceStateWords } from "../trace_words";
import { isRunning, type Learnt, type TrialInfo, type TrialTab } from "../trial_info";
import { handOver, openViewer } from "../viewer";

const runningMs = 3000;
const restingMs = 30_000;
const pageTraces = 1000;
const tracesMax = 10_000;
const rowsMax = 500;
const progressMs = 200;
/** The master reads all of them to compare their clocks: of larger ones only when asked to. */
const comparedBytesMax = 4 * 2 ** 20;
/** What a browser hands from one window to another, and Perfetto reads in its own. */
const viewedBytesMax = 2 ** 30;
/** What a browser of one more window can be asked to hold until it is on the disk. */
const savedBytesMax = 2 ** 30;

/** What is being fetched, and how far that is. One at a time. */
interface Work {
  readonly what: string;
  readonly controller: AbortController;
}

export class TracesTab implements TrialTab {
  readonly element = h("section", { class: "through", "aria-label": "Traces" });
  private readonly tools = h("div", { class: "tools" });
  private readonly working = h("div", { class: "tools status", role: "status" });
  private readonly outcome = h("div", { "aria-live": "polite" });
  private readonly place = h("div", {});
  private readonly trouble = h("div", {});
  /** What stands where the table would: apart from it, for the table is only made where it changes. */
  private readonly instead = h("div", {}, loadingBox("the traces"));
  private readonly filter = new FilterBox({ placeholder: "name, rank or cycle …", class: "filter", "data-focus": "filter" }, () => this.show(), (filter) => this.change({ filter }));
  private readonly head = h("section", { class: "panel", hidden: true }, this.tools, this.working, this.outcome);
  private readonly loop: Loop;
  private readonly gone = new AbortController();
  private info: TrialInfo | null = null;
  private list: readonly Trace[] | null = null;
  private keptBytes = 0;
  private refusedCount = 0;
  private isCut = false;
  private viewer: string | null = null;
  private view: TrialView | null = null;
  private readonly steps: StepsPanel;
  /** By number; of the last comparison. */
  private clocks = new Map<number, MergedTrace>();
  private clocksOf = "";
  private clockWords: Part = null;
  /** Of what is told of clocks. */
  private clockVersion = 0;
  private work: Work | null = null;
  private deleting = 0;

  constructor(private readonly go: Go, private readonly learnt: Learnt) {
    this.steps = new StepsPanel(() => this.closeSteps(), learnt);
    fill(this.element, this.trouble, this.head, this.steps.element, this.instead, this.place);
    this.loop = loop(() => this.pace(), (signal) => this.look(signal), (failure) => this.showFailure(failure));
  }

  update(view: TrialView, info: TrialInfo): void {
    const ran = this.info && isRunning(this.info);
    this.info = info;
    this.view = view;
    this.filter.show(view.filter);
    this.steps.show(info.trial.trialId, view.steps);
    this.forgetClocks();
    this.show();
    if (ran && !isRunning(info)) this.loop.soon();
  }

  destroy(): void {
    this.loop.stop();
    this.filter.stop();
    this.gone.abort();
    this.work?.controller.abort();
    this.steps.destroy();
  }

  private change(change: Partial<TrialView>): void {
    if (this.view) this.go({ ...this.view, ...change }, "replace");
  }

  /** Whoever closed them by keys is back at the button that opened them. */
  private closeSteps(): void {
    const opened = `steps-${this.view?.steps ?? 0}`;
    this.change({ steps: 0 });
    this.focus(opened);
  }

  /** Those of the address that are here. */
  private chosen(): Set<number> {
    const there = new Set(this.list?.map((trace) => trace.traceNo));
    return new Set(this.view?.traces.filter((traceNo) => there.has(traceNo)));
  }

  private alignment(): TraceAlignment {
    return this.view?.placed === "start" ? TraceAlignment.START : TraceAlignment.CLOCK;
  }

  private pace(): number {
    const changes = (this.info && isRunning(this.info)) || this.list?.some((trace) => trace.state === TraceState.UPLOADING);
    return changes ? runningMs : restingMs;
  }

  private async look(signal: AbortSignal): Promise<Outcome> {
    const { info } = this;
    if (!info) return "stop";
    if (this.viewer === null) {
      const settings = await readSettings(signal);
      if (!settings) return "fine";
      if (!settings.ok) return this.showFailure(settings.failure);
      this.viewer = settings.value.traceViewer;
    }
    const found: Trace[] = [];
    let afterTraceNo = 0;
    do {
      const from: number = afterTraceNo;
      const page = await ask((options) => traces.listTraces({ trial: { trialId: info.trial.trialId }, pageSize: pageTraces, afterTraceNo: from }, options), signal);
      if (!page) return "fine";
      if (!page.ok) return this.showFailure(page.failure);
      found.push(...page.value.traces);
      afterTraceNo = page.value.nextAfterTraceNo;
      this.keptBytes = Number(page.value.byteCount);
      this.refusedCount = Number(page.value.refusedCount);
    } while (afterTraceNo !== 0 && found.length < tracesMax);
    fill(this.trouble);
    this.list = found;
    this.isCut = afterTraceNo !== 0;
    this.forgetClocks();
    this.show();
    return "fine";
  }

  private showFailure(failure: Failure): Outcome {
    this.learnt(failure);
    // What passes takes no list away.
    const stays = failure.passing && this.list !== null;
    fill(this.trouble, stays && asOfBefore(failure));
    if (!stays) {
      this.list = null;
      this.head.hidden = true;
      this.showInstead(failureBox(failure, () => this.loop.now()));
    }
    return failure.passing ? "failed" : "stop";
  }

  // --- what is shown

  /** null = the table itself. */
  private showInstead(box: HTMLElement | null): void {
    fill(this.instead, box);
    this.place.hidden = box !== null;
  }

  private show(): void {
    const { list, info } = this;
    if (!list || !info) return;
    this.head.hidden = list.length === 0;
    if (list.length === 0) {
      const command = h("code", {}, `stepwell trace import id:${info.trial.trialId} FILE…`);
      this.showInstead(isRunning(info)
        ? stateBox("no data yet", "No traces yet", "Profilers write them as files; what is imported appears here by itself:", command)
        : stateBox("empty", "No traces of this trial", "Profilers write them as files (PyTorch's, Composer's, TensorFlow's). This brings them here:", command));
      return;
    }
    this.showInstead(null);
    // Who was at a button that is gone, or waits for what is fetched, is beside it.
    keepFocus(this.element, () => {
      this.showTools(list);
      this.showTable(list);
    }, () => this.beside());
  }

  private beside(): HTMLElement | null {
    return this.place.querySelector<HTMLElement>(".scroll") ?? this.element.closest("main");
  }

  /** To the button of that key, from wherever what was pressed went. */
  private focus(key: string): void {
    this.element.querySelector<HTMLElement>(`[data-focus="${key}"]:not(:disabled)`)?.focus();
  }

  private showTools(list: readonly Trace[]): void {
    const chosen = this.chosen();
    const wanted = meant(list, chosen);
    const merged = wanted.filter(isMergeable);
    const together = merged.length > 0 && wanted.length === merged.length;
    const key = JSON.stringify([wanted.map((trace) => trace.traceNo), together, this.work !== null, this.viewer, this.alignment(), chosen.size]);
    refill(this.tools, key, () => {
      const busy = this.work !== null;
      const align = h("select", { "aria-label": "How traces are placed", "data-focus": "align", class: "placed", disabled: busy, onchange: () => {
        this.change({ placed: align.value === "start" ? "start" : "" });
      } }, h("option", { value: "clock" }, "by their clocks"), h("option", { value: "start" }, "each from the first one's start"));
      align.value = this.alignment() === TraceAlignment.START ? "start" : "clock";
      return [
        h("span", {}, chosen.size === 0 ? `All that can be merged (${countText(merged.length)})` : `${countText(chosen.size)} chosen`),
        this.viewer !== null && this.viewer !== "" && h("button", {
          type: "button", class: "primary", "data-focus": "open", disabled: busy || !together, title: this.viewerWords(), onclick: () => this.open(wanted),
        }, "Open in Perfetto"),
        h("button", { type: "button", "data-focus": "merge", disabled: busy || !together, onclick: () => void this.saveMerged(merged) }, "Download merged"),
        h("button", { type: "button", "data-focus": "clocks", disabled: busy || !together || merged.length < 2, onclick: () => void this.compareClocks(merged) }, "Compare clocks"),
        h("label", {}, "placed", align),
        this.filter.element,
      ];
    });
  }

  private viewerWords(): string {
    return `Opens ${this.viewer ?? ""} in a window of this browser and hands the trace to it; it is sent nowhere else`;
  }

  private showTable(list: readonly Trace[]): void {
    const rows = list.filter((trace) => matches(trace, this.filter.text));
    const chosen = this.chosen();
    const key = JSON.stringify([
      rows.slice(0, rowsMax).map((trace) => [trace.traceNo, traceStateWords(trace)]), rows.length, [...chosen], this.view?.steps, this.clockVersion, this.deleting, this.work !== null, this.keptBytes, this.refusedCount,
    ]);
    refill(this.place, key, () => [h("section", { class: "panel" },
      rows.length === 0 ? h("p", { class: "muted" }, "None of the traces matches.")
        : scroller("Traces", h("table", { class: "cards close" },
          h("caption", { class: "visually-hidden" }, "Traces"),
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("span", { class: "visually-hidden" }, "Chosen")),
            ["No.", "Name", "Rank", "Cycle", "Format", "Size", "Clock error", "State", "Uploaded (UTC)"].map((text) => h("th", { scope: "col", class: text === "No." || text === "Rank" || text === "Size" ? "number" : "" }, text)),
            h("th", { scope: "col" }, "Actions"))),
          h("tbody", {}, rows.slice(0, rowsMax).map((trace) => this.row(trace, chosen))))),
      rows.length > rowsMax && h("p", { class: "muted" }, `The first ${rowsMax} are listed: filter for others.`),
      this.isCut && h("p", { class: "muted" }, `There are more than ${countText(list.length)}: 'stepwell trace list' has all.`),
      this.clockWords,
      h("p", { class: "muted" }, `${valueText(this.keptBytes, "bytes")} are kept`, this.refusedCount > 0 && `; ${plural(this.refusedCount, "trace")} refused by caps (page Master)`, "."))]);
  }

  private row(trace: Trace, chosen: ReadonlySet<number>): HTMLElement {
    const { traceNo, header } = trace;
    const name = printable(header?.name ?? "");
    const box = h("input", { type: "checkbox", "aria-label": `Choose trace ${traceNo}, ${name}`, "data-focus": `choose-${traceNo}`, disabled: !isWhole(trace), onchange: () => {
      const now = this.chosen();
      if (box.checked) now.add(traceNo);
      else now.delete(traceNo);
      this.change({ traces: [...now] });
    } });
    box.checked = chosen.has(traceNo);
    const cell = (label: string, kind: string, ...parts: Part[]): HTMLElement => h("td", { "data-label": label, class: kind }, h("span", {}, ...parts));
    return h("tr", { "data-trace": traceNo }, h("td", { class: "pick" }, box), cell("No.", "number", String(traceNo)), cell("Name", "name lead", bdi(name)),
      cell("Rank", "number", header?.rank === undefined ? "–" : String(header.rank)), cell("Cycle", "nowrap", cycleWord(header) || "–"), cell("Format", "", header ? formatWord(header.format) : ""),
      cell("Size", "number", valueText(Number(header?.byteCount ?? 0n), "bytes")), cell("Clock error", "nowrap", this.clock(trace)),
      cell("State", "", traceStateWords(trace)), cell("Uploaded", "", timeText(Number(trace.createdTimeUs)).replace(" UTC", "")),
      h("td", { "data-label": "Actions" }, h("span", { class: "actions" }, this.actions(trace, name))));
  }

  private clock(trace: Trace): Part {
    const input = this.clocks.get(trace.traceNo);
    if (!input) return h("span", { class: "muted" }, isMergeable(trace) ? "not compared" : "of no form that is compared");
    const { error, shift } = clockWords(input);
    return [error, " ", h("br"), h("span", { class: "muted" }, shift), input.isCut && h("span", { class: "worse" }, " ends too early")];
  }

  private actions(trace: Trace, name: string): Part {
    const { traceNo } = trace;
    const button = (focus: string, text: string, label: string, act: () => void): HTMLElement =>
      h("button", { type: "button", "data-focus": `${focus}-${traceNo}`, "aria-label": `${label} trace ${traceNo}, ${name}`, disabled: this.work !== null, onclick: act }, text);
    if (this.deleting === traceNo) {
      return [h("span", {}, "For good?"), button("delete", "Delete", "Delete for good", () => void this.delete(traceNo)),
        button("keep", "Keep", "Keep", () => this.askToDelete(0))];
    }
    const isSeen = this.view?.steps === traceNo;
    return [
      isMergeable(trace) && h("button", {
        type: "button", "data-focus": `steps-${traceNo}`, "aria-label": `Steps of trace ${traceNo}, ${name}`, "aria-pressed": isSeen ? "true" : "false",
        onclick: () => this.change({ steps: isSeen ? 0 : traceNo }),
      }, "Steps"),
      this.viewer !== "" && isMergeable(trace) && button("open", "Open", "Open in Perfetto", () => this.open([trace])),
      isWhole(trace) && button("save", "Download", "Download", () => void this.save(trace)),
      button("delete", "Delete …", "Delete", () => this.askToDelete(traceNo)),
    ];
  }

  // --- clocks

  /** Those of another list, or of none. Of small ones they are asked for at once. */
  private forgetClocks(): void {
    const merged = (this.list ?? []).filter(isMergeable);
    const of = JSON.stringify([merged.map((trace) => trace.traceNo), this.alignment()]);
    if (of === this.clocksOf) return;
    this.clocksOf = of;
    this.clocks = new Map();
    this.clockWords = null;
    ++this.clockVersion;
    const bytes = merged.reduce((sum, trace) => sum + Number(trace.receivedBytes), 0);
    if (merged.length > 1 && bytes <= comparedBytesMax) void this.lookAtClocks(merged, this.gone.signal);
  }

  private async lookAtClocks(of: readonly Trace[], signal: AbortSignal): Promise<Failure | null> {
    const { info, clocksOf } = this;
    if (!info) return null;
    const answer = await fetchPlacement({ trialId: info.trial.trialId, traceNos: named(of, this.list ?? [], this.isCut), alignment: this.alignment() }, signal);
    if (!answer || clocksOf !== this.clocksOf) return null;
    if (!answer.ok) {
      this.learnt(answer.failure);
      this.clockWords = h("p", { class: "muted" }, "Their clocks are not compared: ", h("span", { class: "detail" }, answer.failure.detail));
      ++this.clockVersion;
    } else if (answer.value) {
      this.takePlacement(answer.value.inputs, answer.value.notes);
    }
    this.show();
    return answer.ok ? null : answer.failure;
  }

  private takePlacement(inputs: readonly MergedTrace[], notes: readonly string[]): void {
    ++this.clockVersion;
    for (const input of inputs) this.clocks.set(input.traceNo, input);
    const unknown = inputs.length > 1 && inputs.some((input) => input.clockErrorNs === undefined);
    this.clockWords = [notes.map((note) => h("p", { class: "muted" }, printable(note))),
      unknown && h("p", { class: "muted" }, "Nothing tells how far the clocks of different machines are apart.")];
  }

  private compareClocks(of: readonly Trace[]): Promise<void> {
    return this.during("Comparing clocks", async (signal) => {
      const failure = await this.lookAtClocks(of, signal);
      return failure && failureBox(failure, () => void this.compareClocks(of), "reads");
    });
  }

  // --- what is fetched

  /** `act` says what there is to tell in the end; null = nothing. */
  private async during(what: string, act: (signal: AbortSignal, arriving: Arriving) => Promise<HTMLElement | null>): Promise<void> {
    const controller = new AbortController();
    const work = { what, controller };
    const pressed = document.activeElement?.getAttribute("data-focus") ?? "";
    this.work = work;
    const words = h("span", {}, `${what} …`);
    fill(this.working, words, h("button", { type: "button", onclick: () => controller.abort() }, "Cancel"));
    keepFocus(this.element, () => (fill(this.outcome), this.show()), () => this.beside());
    let toldAt = 0;
    const arriving = (byteCount: number): boolean => {
      if (Date.now() - toldAt < progressMs) return true;
      toldAt = Date.now();
      words.textContent = `${what}: ${valueText(byteCount, "bytes")} so far`;
      return true;
    };
    const end = await orBroken(() => act(controller.signal, arriving), (detail) => stateBox("failed", `${what} failed in this browser`,
      "Perhaps it is more than the browser's memory holds. The command line writes traces to files as they come:", this.command("get"), h("span", { class: "detail" }, detail)));
    if (this.work !== work) return;
    this.work = null;
    fill(this.working, controller.signal.aborted && "Cancelled.");
    if (end) fill(this.outcome, end);
    const at = document.activeElement;
    const waits = at === document.body || at === this.beside();
    this.show();
    if (waits && pressed !== "") this.focus(pressed);
  }

  private refusal(failure: Failure, again: () => void, act: Act = "reads"): HTMLElement {
    this.learnt(failure);
    return failureBox(failure, again, act);
  }

  private command(what: string, which = ""): HTMLElement {
    return h("code", {}, `stepwell trace ${what} id:${this.info?.trial.trialId ?? ""}${which}`);
  }

  private tooMuchBox(command: HTMLElement): HTMLElement {
    return stateBox("failed", `More than ${valueText(savedBytesMax, "bytes")}`, "That is more than this page takes into its memory. The command line writes it to a file as it comes:", command);
  }

  private save(trace: Trace): Promise<void> {
    return this.during(`Fetching trace ${trace.traceNo}`, async (signal, arriving) => {
      const bound = new ByteBound(savedBytesMax, arriving);
      const isLarge = Number(trace.header?.byteCount ?? 0n) > savedBytesMax;
      const got = isLarge ? null : await this.fetch([trace], signal, bound.take);
      if (isLarge || bound.isOver) return this.tooMuchBox(this.command("get", ` ${trace.traceNo}`));
      if (!got) return null;
      if (!got.ok) return this.refusal(got.failure, () => void this.save(trace));
      downloadBlob(fileName(trace.header?.name ?? ""), blobOf(got.value));
      return null;
    });
  }

  private saveMerged(of: readonly Trace[]): Promise<void> {
    return this.during(`Merging ${plural(of.length, "trace")}`, async (signal, arriving) => {
      const bound = new ByteBound(savedBytesMax, arriving);
      const got = await this.merge(of, TraceFormat.CHROME_JSON, signal, bound.take);
      if (bound.isOver) return this.tooMuchBox(this.command("merge --output merged.json.gz --trial"));
      if (!got) return null;
      if (!got.ok) return this.refusal(got.failure, () => void this.saveMerged(of));
      downloadBlob(`stepwell-trial-${this.info?.trial.trialId ?? ""}.json.gz`, blobOf(got.value));
      return this.totalsWords(of, got.value);
    });
  }

  private totalsWords(of: readonly Trace[], bytes: TraceBytes): HTMLElement {
    const { totals, placement } = bytes;
    const left = totals && totals.leftOutCount > 0n ? `; ${plural(totals.leftOutCount, "event")} without a time or beyond a bound left out` : "";
    const counters = totals && totals.counterCount > 0 ? `, with ${countText(totals.counterCount)} series of what its machines measured meanwhile` : "";
    const note = totals && totals.countersNote !== "" ? ` ${printable(totals.countersNote)}` : "";
    return h("p", {}, `${plural(totals?.eventCount ?? 0n, "event")} of ${plural(placement?.inputs.length ?? of.length, "trace")}, ${valueText(bytes.byteCount, "bytes")}${counters}${left}.${note}`);
  }

  private async merge(of: readonly Trace[], format: TraceFormat, signal: AbortSignal, arriving: Arriving): Promise<Result<TraceBytes> | null> {
    if (!this.info) return null;
    const got = await fetchMerged({ trialId: this.info.trial.trialId, traceNos: named(of, this.list ?? [], this.isCut), alignment: this.alignment() }, format, arriving, signal);
    if (got?.ok && got.value.placement) this.takePlacement(got.value.placement.inputs, got.value.placement.notes);
    return got;
  }

  private async fetch(of: readonly Trace[], signal: AbortSignal, arriving: Arriving): Promise<Result<TraceBytes> | null> {
    const [first, second] = of;
    if (!this.info || !first) return null;
    // Perfetto's own form is a fifth of the bytes of JSON, and so is what its page has to read.
    return second ? this.merge(of, TraceFormat.PERFETTO, signal, arriving) : fetchTrace(this.info.trial.trialId, first.traceNo, arriving, signal);
  }

  private open(of: readonly Trace[]): void {
    const address = this.viewer;
    if (address === null || address === "") return;
    const viewer = openViewer(address);
    if (!viewer) {
      fill(this.outcome, stateBox("failed", "The browser let no window open", "Allow this page to open windows (pop-ups), and open the trace once more."));
      return;
    }
    void this.during(of.length === 1 ? `Fetching trace ${of[0]?.traceNo ?? ""} for Perfetto` : `Merging ${plural(of.length, "trace")} for Perfetto`, async (signal, arriving) => {
      const bound = new ByteBound(viewedBytesMax, (byteCount) => !viewer.closed && arriving(byteCount));
      const got = await this.fetch(of, signal, bound.take);
      if (!got || !got.ok || bound.isOver) viewer.close();
      if (!got) return null;
      if (!got.ok) return this.refusal(got.failure, () => this.open(of));
      if (bound.isOver) return stateBox("failed", `More than ${valueText(viewedBytesMax, "bytes")}`, "That is more than a browser shows. Choose fewer traces, or download them and use Perfetto's trace_processor.");
      const title = of.length === 1 ? printable(of[0]?.header?.name ?? "") : `trial ${this.info?.trial.trialId ?? ""}, ${plural(of.length, "trace")}`;
      const buffer = await orBroken(async () => joined(got.value), () => null);
      if (buffer) return this.handedWords(await handOver(viewer, address, title, buffer, signal), address);
      viewer.close();
      return stateBox("failed", `This browser has no memory for ${valueText(got.value.byteCount, "bytes")} more`, "Choose fewer traces, or fetch them by the command line and use Perfetto's trace_processor:", this.command("get"));
    });
  }

  private handedWords(handing: Awaited<ReturnType<typeof handOver>>, address: string): HTMLElement | null {
    switch (handing) {
      case "handed": return h("p", { "data-handed": "" }, `Handed over to ${address}, in its own window.`);
      case "closed": return stateBox("failed", "The window was closed before the trace was there", "Open the trace once more, or download it.");
      case "silent": return stateBox("failed", "Perfetto did not answer", `Can this browser reach ${address}? The master's --trace-viewer names another. Or download the trace, and open it there.`);
      case "given up": return null;
    }
  }

  // --- deletion

  private askToDelete(traceNo: number): void {
    const before = this.deleting;
    this.deleting = traceNo;
    this.show();
    this.focus(traceNo === 0 ? `delete-${before}` : `keep-${traceNo}`);
  }

  private delete(traceNo: number): Promise<void> {
    this.deleting = 0;
    return this.during(`Deleting trace ${traceNo}`, async (signal) => {
      if (!this.info) return null;
      const trial = { trialId: this.info.trial.trialId };
      const answer = await ask((options) => traces.deleteTrace({ trial, traceNo }, options), signal);
      this.loop.now();
      if (!answer) return null;
      return answer.ok ? h("p", {}, `Trace ${traceNo} is deleted: ${valueText(Number(answer.value.byteCount), "bytes")}.`) : this.refusal(answer.failure, () => void this.delete(traceNo), "changes");
    });
  }
}
