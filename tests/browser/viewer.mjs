// A page of another origin that takes traces as Perfetto's does: it answers the PING of who opened it, and
// keeps what it is handed.
import { createServer } from "node:http";

const page = `<!doctype html><title>viewer</title><script>
  addEventListener("message", ({ source, origin, data }) => {
    if (source !== window.opener) return;
    if (data === "PING") source.postMessage("PONG", origin);
    else window.handed = { origin, title: data.perfetto.title, bytes: [...new Uint8Array(data.perfetto.buffer)] };
  });
</script>`;

export class Viewer {
  async start() {
    this.server = createServer((_request, response) => response.writeHead(200, { "content-type": "text/html" }).end(page));
    await new Promise((done) => this.server.listen(0, "127.0.0.1", done));
    this.origin = `http://127.0.0.1:${this.server.address().port}`;
  }

  async close() {
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }
}

/** A cycle of a rank as Composer writes it: left the barrier at `syncUs` by its own clock. */
export function composerCycle(rank, syncUs) {
  const event = (more) => ({ pid: rank, tid: 7, ts: syncUs, ...more });
  return JSON.stringify([
    event({ name: "global_rank", ph: "M", args: { value: rank } }),
    event({ name: "clock_sync_timestamp_us", ph: "M", args: { value: syncUs } }),
    event({ name: "clock_sync_error_bound", ph: "M", args: { value: 120 } }),
    event({ name: "forward", ph: "B", ts: syncUs + 100 }),
    event({ name: "forward", ph: "E", ts: syncUs + 300 }),
  ]);
}
