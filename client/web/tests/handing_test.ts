// How a trace is handed to the viewer's window: by a clock and windows of the test's own.
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { handOver, openViewer, type Handing } from "../src/viewer";

const address = "https://viewer.example/some/page";
const origin = "https://viewer.example";

type Heard = (event: { source: unknown; origin: string; data: unknown }) => void;

/** Who listens to messages of other windows. */
const listeners = new Set<Heard>();

class FakeWindow {
  closed = false;
  readonly got: { message: unknown; to: string; moved: unknown }[] = [];

  postMessage(message: unknown, to: string, moved?: unknown): void {
    this.got.push({ message, to, moved });
  }

  pings(): number {
    return this.got.filter(({ message }) => message === "PING").length;
  }

  handed(): unknown[] {
    return this.got.filter(({ message }) => message !== "PING");
  }
}

/** Of intervals and of the time: that of Node 18 mocks no dates. */
class FakeClock {
  private now = 0;
  private last = 0;
  private readonly intervals = new Map<number, { readonly every: number; at: number; readonly run: () => void }>();
  private readonly real = { setInterval: globalThis.setInterval, clearInterval: globalThis.clearInterval, now: Date.now };

  install(): void {
    Object.assign(globalThis, {
      setInterval: (run: () => void, every: number) => {
        this.intervals.set(++this.last, { every, at: this.now + every, run });
        return this.last;
      },
      clearInterval: (id: number) => this.intervals.delete(id),
    });
    Date.now = () => this.now;
  }

  remove(): void {
    Object.assign(globalThis, { setInterval: this.real.setInterval, clearInterval: this.real.clearInterval });
    Date.now = this.real.now;
  }

  tick(time: number): void {
    for (const until = this.now + time; this.now < until;) {
      this.now = Math.min(until, ...[...this.intervals.values()].map(({ at }) => at));
      for (const one of [...this.intervals.values()]) {
        if (one.at > this.now) continue;
        one.at += one.every;
        one.run();
      }
    }
  }
}

let clock = new FakeClock();

beforeEach(() => {
  clock = new FakeClock();
  clock.install();
  listeners.clear();
  Object.assign(globalThis, {
    addEventListener: (_type: string, heard: Heard) => listeners.add(heard),
    removeEventListener: (_type: string, heard: Heard) => listeners.delete(heard),
  });
});

afterEach(() => clock.remove());

interface Hand {
  readonly viewer: FakeWindow;
  readonly buffer: ArrayBuffer;
  readonly gone: AbortController;
  /** Null = it goes on. */
  ended(): Promise<Handing | null>;
}

function hand(): Hand {
  const [viewer, buffer, gone] = [new FakeWindow(), new ArrayBuffer(8), new AbortController()];
  let how: Handing | null = null;
  void handOver(viewer as unknown as Window, address, "a trace", buffer, gone.signal).then((one) => { how = one; });
  // What was resolved is heard of a turn later.
  return { viewer, buffer, gone, ended: async () => { for (let turn = 0; turn < 5; ++turn) await Promise.resolve(); return how; } };
}

function say(event: Parameters<Heard>[0]): void {
  for (const heard of [...listeners]) heard(event);
}

test("who answers from the viewer's window and origin is handed the trace, once and nobody else", async () => {
  const { viewer, buffer, ended } = hand();
  clock.tick(300);
  assert.equal(viewer.pings(), 3);
  const others = [
    { source: viewer, origin: "https://elsewhere.example", data: "PONG" }, { source: viewer, origin: "http://viewer.example", data: "PONG" },
    { source: new FakeWindow(), origin, data: "PONG" }, { source: viewer, origin, data: "PING" }, { source: viewer, origin, data: { PONG: true } },
  ];
  for (const event of others) {
    say(event);
    assert.equal(await ended(), null, JSON.stringify(event.data));
    assert.deepEqual(viewer.handed(), []);
  }
  say({ source: viewer, origin, data: "PONG" });
  assert.equal(await ended(), "handed");
  assert.deepEqual(viewer.handed(), [{ message: { perfetto: { buffer, title: "a trace" } }, to: origin, moved: [buffer] }]);
  assert.equal(listeners.size, 0);
  const pings = viewer.pings();
  clock.tick(1000);
  assert.equal(viewer.pings(), pings);
});

test("a viewer that does not answer is waited for a minute", async () => {
  const { viewer, ended } = hand();
  clock.tick(59_900);
  assert.equal(await ended(), null);
  assert.equal(viewer.pings(), 599);
  clock.tick(200);
  assert.equal(await ended(), "silent");
  assert.equal(listeners.size, 0);
  // Later it may say what it wants.
  say({ source: viewer, origin, data: "PONG" });
  assert.deepEqual(viewer.handed(), []);
});

test("a window that is closed gets nothing more, nor does one that nobody waits for", async () => {
  const closed = hand();
  clock.tick(100);
  closed.viewer.closed = true;
  clock.tick(100);
  assert.equal(await closed.ended(), "closed");
  const left = hand();
  left.gone.abort();
  clock.tick(100);
  assert.equal(await left.ended(), "given up");
  for (const { viewer } of [closed, left]) assert.deepEqual(viewer.handed(), []);
  assert.equal(listeners.size, 0);
});

test("a window that the browser does not open is none", () => {
  const asked: unknown[] = [];
  Object.assign(globalThis, { window: { open: (...of: unknown[]) => { asked.push(of); return null; } } });
  assert.equal(openViewer(address), null);
  // With an opener: the viewer answers it.
  assert.deepEqual(asked, [[address, "_blank"]]);
});
