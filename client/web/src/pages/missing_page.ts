// What stands where an address names no page: which it is, and where to go on.
import { printable, shortened } from "../core/printable";
import { formatView, trialsView, type MissingView, type View } from "../core/view_state";
import { bdi, h } from "../dom";
import type { Page } from "../page";
import { stateBox } from "../state_box";

const addressMax = 200;

export class MissingPage implements Page {
  readonly title = "Not found";
  readonly element: HTMLElement;

  constructor(private readonly view: MissingView) {
    this.element = h("section", { class: "panel" }, h("h1", {}, "Not found"),
      stateBox("failed", "This address names no page", "A link may have been cut short, or be of another version. The list of trials finds each by its name.",
        h("a", { class: "button", href: formatView(trialsView) }, "All trials"),
        h("span", { class: "detail" }, "#", bdi(shortened(printable(view.address), addressMax)))));
  }

  update(view: View): boolean {
    return view.page === "missing" && view.address === this.view.address;
  }

  destroy(): void {}
}
