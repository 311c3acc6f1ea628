// A box that filters a list while somebody types, and tells what it holds, for the address, once they rest.
import { h } from "./dom";

const typingMs = 300;

export class FilterBox {
  readonly element: HTMLInputElement;
  private typing: ReturnType<typeof setTimeout> | undefined;

  /** `onInput` hears of each letter, `onRest` of the text a moment after the last. */
  constructor(attributes: Record<string, string>, onInput: () => void, private readonly onRest: (text: string) => void) {
    this.element = h("input", { ...attributes, type: "search", "aria-label": "Filter", oninput: () => {
      onInput();
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.rest(), typingMs);
    } });
  }

  get text(): string {
    return this.element.value;
  }

  /** As an address has it; who is typing goes on. True = it is another text than before. */
  show(text: string): boolean {
    if (this.typing !== undefined || this.element.value === text) return false;
    this.element.value = text;
    return true;
  }

  stop(): void {
    clearTimeout(this.typing);
    this.typing = undefined;
  }

  private rest(): void {
    this.typing = undefined;
    this.onRest(this.element.value);
  }
}
