// As much of a document as elements made of names and parts need. Moves are counted: they cost a browser the
// focus and the scrolling of what is moved.

export const counts = { inserted: 0, removed: 0, written: 0 };

export class FakeNode {
  readonly nodeType: number = 0;
  nodeName = "";
  parent: FakeNode | null = null;
  children: FakeNode[] = [];

  get childNodes(): FakeNode[] {
    return this.children;
  }

  get firstChild(): FakeNode | null {
    return this.children[0] ?? null;
  }

  get nextSibling(): FakeNode | null {
    const all = this.parent?.children ?? [];
    return all[all.indexOf(this) + 1] ?? null;
  }

  get textContent(): string {
    return this.children.map((one) => one.textContent).join("");
  }

  removeChild(child: FakeNode): void {
    ++counts.removed;
    this.children.splice(this.children.indexOf(child), 1);
    child.parent = null;
  }

  insertBefore(child: FakeNode, before: FakeNode | null): void {
    if (child.nodeType === 11) {
      for (const one of [...child.children]) this.insertBefore(one, before);
      return;
    }
    ++counts.inserted;
    if (child.parent) child.parent.children.splice(child.parent.children.indexOf(child), 1);
    const at = before === null ? this.children.length : this.children.indexOf(before);
    this.children.splice(at, 0, child);
    child.parent = this;
  }

  appendChild(child: FakeNode): void {
    this.insertBefore(child, null);
  }
}

class FakeText extends FakeNode {
  override readonly nodeType = 3;
  override nodeName = "#text";

  constructor(private data: string) {
    super();
  }

  get nodeValue(): string {
    return this.data;
  }

  set nodeValue(to: string) {
    ++counts.written;
    this.data = to;
  }

  override get textContent(): string {
    return this.data;
  }
}

class FakeFragment extends FakeNode {
  override readonly nodeType = 11;
}

export class FakeElement extends FakeNode {
  override readonly nodeType = 1;
  readonly style = { cssText: "" };
  checked = false;
  private readonly held = new Map<string, string>();
  private readonly heard: (() => void)[] = [];

  constructor(name: string) {
    super();
    this.nodeName = name.toUpperCase();
  }

  get attributes(): { name: string; value: string }[] {
    return [...this.held].map(([name, value]) => ({ name, value }));
  }

  getAttribute(name: string): string | null {
    return this.held.get(name) ?? null;
  }

  hasAttribute(name: string): boolean {
    return this.held.has(name);
  }

  setAttribute(name: string, value: string): void {
    this.held.set(name, value);
  }

  removeAttribute(name: string): void {
    this.held.delete(name);
  }

  addEventListener(_name: string, heard: () => void): void {
    this.heard.push(heard);
  }

  click(): void {
    for (const one of this.heard) one();
  }
}

export function installFakeDom(): void {
  Object.assign(globalThis, {
    Node: FakeNode,
    document: {
      createElement: (name: string) => new FakeElement(name),
      createTextNode: (text: string) => new FakeText(text),
      createDocumentFragment: () => new FakeFragment(),
    },
  });
}
