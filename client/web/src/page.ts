// What a page of the router is: made for a view, told of the next view as long as that is its own.
import type { View } from "./core/view_state";

export interface Page {
  /** Below the top bar. Filled by the page, for as long as it lives. */
  readonly element: HTMLElement;
  readonly title: string;
  /** False: this view is another page's. */
  update(view: View): boolean;
  destroy(): void;
}

/** Goes to a view: "push" leaves a step to come back to, "replace" does not. */
export type Go = (view: View, how: "push" | "replace") => void;
