// Hands a trace over to the window of Perfetto's page, which runs in this browser: its handshake is a PING
// that is repeated until it answers PONG. The bytes go from this window to that one, by its origin alone.

export type Handing = "handed" | "closed" | "silent" | "given up";

const pingMs = 100;
/** A page of another site, perhaps over a slow network. */
const silentMs = 60_000;

/** Only in a click, or browsers block it: null = this one did. That page must know who opened it. */
export function openViewer(address: string): Window | null {
  return window.open(address, "_blank");
}

export function handOver(viewer: Window, address: string, title: string, buffer: ArrayBuffer, signal: AbortSignal): Promise<Handing> {
  const { origin } = new URL(address);
  const latest = Date.now() + silentMs;
  return new Promise((done) => {
    const end = (how: Handing): void => {
      clearInterval(timer);
      removeEventListener("message", heard);
      done(how);
    };
    const heard = (event: MessageEvent): void => {
      if (event.source !== viewer || event.origin !== origin || event.data !== "PONG") return;
      viewer.postMessage({ perfetto: { buffer, title } }, origin, [buffer]);
      end("handed");
    };
    const timer = setInterval(() => {
      if (signal.aborted) end("given up");
      else if (viewer.closed) end("closed");
      else if (Date.now() > latest) end("silent");
      // It may still be an empty window: this says nothing that others may not hear.
      else viewer.postMessage("PING", "*");
    }, pingMs);
    addEventListener("message", heard);
  });
}
