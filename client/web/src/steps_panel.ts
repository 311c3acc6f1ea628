// Where the time of the steps in one trace went: asked of the master once, shown until another is chosen.
import type { SummarizeTraceResponse } from "#gen/trace_pb";
import { ask, traces } from "./api";
import { printable } from "./core/printable";
import { countText } from "./core/units";
import { bdi, fill, h, scroller, type Part } from "./dom";
import { failureBox, loadingBox, stateBox } from "./state_box";
import { stepTable, type StepTable } from "./trace_steps";
import type { Learnt } from "./trial_info";

/** The master reads the whole trace. */
const readingMs = 300_000;
const rowsMax = 200;

export class StepsPanel {
  readonly element = h("section", { class: "panel", hidden: true, "aria-label": "Steps of a trace" });
  private shown = "";
  private asked: AbortController | null = null;

  /** `onClose`: whoever looks has seen enough. */
  constructor(private readonly onClose: () => void, private readonly learnt: Learnt) {}

  /** 0 = none. */
  show(trialId: bigint, traceNo: number): void {
    const wanted = traceNo === 0 ? "" : `${trialId}/${traceNo}`;
    if (wanted === this.shown) return;
    this.shown = wanted;
    this.asked?.abort();
    this.asked = null;
    this.element.hidden = traceNo === 0;
    if (traceNo !== 0) void this.look(trialId, traceNo);
  }

  destroy(): void {
    this.asked?.abort();
  }

  private async look(trialId: bigint, traceNo: number): Promise<void> {
    const controller = new AbortController();
    this.asked = controller;
    this.put(`trace ${traceNo}`, loadingBox(`trace ${traceNo}; of a large one that takes a while`));
    const answer = await ask((options) => traces.summarizeTrace({ trial: { trialId }, traceNo, stepsMax: rowsMax }, { ...options, timeoutMs: readingMs }), controller.signal);
    if (!answer || this.asked !== controller) return;
    if (answer.ok) return this.showAnswer(answer.value, traceNo);
    this.put(`trace ${traceNo}`, failureBox(answer.failure, () => void this.look(trialId, traceNo)));
    this.learnt(answer.failure);
  }

  private put(of: Part, ...parts: Part[]): void {
    fill(this.element,
      h("div", { class: "tools" }, h("h2", {}, "Steps of ", of), h("span", { class: "space" }),
        h("button", { type: "button", "data-focus": "close-steps", "aria-label": "Close the steps", onclick: () => this.onClose() }, "Close")),
      parts);
  }

  private showAnswer(answer: SummarizeTraceResponse, traceNo: number): void {
    const table = stepTable(answer);
    const name = bdi(printable(answer.header?.name ?? `trace ${traceNo}`));
    if (!table) {
      this.put(name, stateBox("empty", "No steps in this trace", "PyTorch's profiler marks them where its step() is called; Composer's and Stepwell's own have them by batches."));
      return;
    }
    this.put(name, table.facts.map((fact) => h("p", {}, fact)), this.classes(table), table.steps.length > 1 && this.steps(table),
      Number(answer.stepCount) > table.steps.length && h("p", { class: "muted" }, `The first ${countText(table.steps.length)} are listed: 'stepwell trace report --json' has more.`));
  }

  private classes(table: StepTable): HTMLElement {
    return scroller("Classes", h("table", {}, h("caption", { class: "visually-hidden" }, "Where the time of a step went"),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Class"), h("th", { scope: "col", class: "number" }, "A step"), h("th", { scope: "col", class: "number" }, "Share"), h("td", { class: "bar-cell" }))),
      h("tbody", {}, table.classes.map((row) => {
        const bar = h("span", { class: "bar" });
        bar.style.width = `${(100 * row.share).toFixed(2)}%`;
        return h("tr", {}, h("th", { scope: "row" }, row.name), h("td", { class: "number" }, row.meanText), h("td", { class: "number" }, row.shareText), h("td", { class: "bar-cell" }, bar));
      }))));
  }

  private steps(table: StepTable): HTMLElement {
    const head = (text: string, number: boolean): HTMLElement => h("th", { scope: "col", class: number ? "number" : "" }, text);
    return scroller("Steps", h("table", {}, h("caption", { class: "visually-hidden" }, "Steps, each with the shares of the classes"),
      h("thead", {}, h("tr", {}, head("Step", false), head("Length", true), table.classes.map((one) => head(one.name, true)))),
      h("tbody", {}, table.steps.map((step) => h("tr", {}, h("td", { class: "name" }, step.name === "" ? "–" : bdi(printable(step.name))),
        h("td", { class: "number" }, step.lengthText), step.shareTexts.map((share) => h("td", { class: "number" }, share)))))));
  }
}
