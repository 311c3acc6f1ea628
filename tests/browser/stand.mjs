// A master on a private PostgreSQL of its own, trainings that record there, and a browser that looks.
import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const deadlineMs = 45_000;

/** Polls `look` until it gives something true; names what was waited for. */
export async function until(what, look, ms = deadlineMs) {
  const end = Date.now() + ms;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

/** Asserts what comes true soon, for a page draws after it says: `claims` until they hold, with their own words if they never do. */
export async function soon(claims, ms = deadlineMs) {
  const end = Date.now() + ms;
  for (;;) {
    try {
      return await claims();
    } catch (error) {
      if (Date.now() > end) throw error;
    }
    await new Promise((done) => setTimeout(done, 100));
  }
}

export class Stand {
  /** `options` of the master beside those that every stand has. */
  constructor(bin, page, options = []) {
    this.bin = bin;
    this.options = options;
    this.page = page;
    this.folder = mkdtempSync(join(tmpdir(), "stepwell-browser-"));
    chmodSync(this.folder, 0o755); // PostgreSQL's own user passes through it
    mkdirSync(join(this.folder, "spool"), { mode: 0o700 });
    this.ports = { grpc: 0, http: 0 };
    this.scheme = "http";
    /** Of commands. */
    this.environment = {};
    this.children = new Set();
    this.master = null;
    /** Processes of the database that were stopped. */
    this.hanging = [];
  }

  start(name, program, args, env = {}) {
    const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
    child.said = "";
    child.stdout.on("data", (bytes) => (child.said += bytes));
    child.stderr.on("data", (bytes) => (child.said += bytes));
    // A program that is not there has no end but this error.
    child.ended = new Promise((done, fail) => child.on("error", fail).on("exit", (code, signal) => done({ code, signal })));
    child.ended.catch(() => {}).finally(() => this.children.delete(child));
    child.name = name;
    this.children.add(child);
    return child;
  }

  /** The second time on the ports of the first. */
  async startMaster() {
    const ready = join(this.folder, "ready.json");
    rmSync(ready, { force: true });
    this.master = this.start("master", join(this.bin, "stepwell"), [
      "serve", "--data-dir", join(this.folder, "data"), "--grpc-listen", `127.0.0.1:${this.ports.grpc}`,
      "--http-listen", `127.0.0.1:${this.ports.http}`, "--ready-file", ready, ...(this.page ? ["--ui-dir", this.page] : []), ...this.options,
    ]);
    const text = await until("the master is ready", () => {
      if (this.master.exitCode !== null) throw new Error(`the master ended: ${this.master.said}`);
      return existsSync(ready) && readFileSync(ready, "utf8").endsWith("}\n") && readFileSync(ready, "utf8");
    });
    const { grpc, http } = JSON.parse(text);
    this.ports = { grpc: Number(grpc.split(":").pop()), http: Number(http.split(":").pop()) };
    this.url = `${this.scheme}://127.0.0.1:${this.ports.http}/`;
  }

  /** Of our own, so that it ends with us: one that a recorder starts stays for a minute. */
  startAgent() {
    return this.start("agent", join(this.bin, "stepwell"), ["agent", "--server", `127.0.0.1:${this.ports.grpc}`, "--spool-dir", join(this.folder, "spool")]);
  }

  async killMaster() {
    this.master.kill("SIGKILL");
    await this.master.ended;
  }

  /** The private PostgreSQL as a machine that hangs has it: its processes stand still, its sockets stay. */
  stopDatabase() {
    const [server] = readFileSync(join(this.folder, "data", "pg", "postmaster.pid"), "utf8").split("\n").map(Number);
    const children = readFileSync(`/proc/${server}/task/${server}/children`, "utf8").split(" ").filter(Boolean).map(Number);
    // The server first: what it does not start cannot go on.
    this.hanging = [server, ...children];
    for (const pid of this.hanging) process.kill(pid, "SIGSTOP");
  }

  /** As often as one likes. */
  goOnDatabase() {
    for (const pid of this.hanging.splice(0)) process.kill(pid, "SIGCONT");
  }

  recording(trial) {
    return {
      STEPWELL_SERVER: `127.0.0.1:${this.ports.grpc}`, STEPWELL_SPOOL_DIR: join(this.folder, "spool"), STEPWELL_TRIAL: trial,
      PATH: `${this.bin}:${process.env.PATH}`, STEPWELL_EXIT_WAIT: "30",
    };
  }

  train(trial, ...args) {
    return this.start(trial, join(this.bin, "stepwell-demo"), ["--ranks", "2", "--quiet", "--trial", trial, ...args], this.recording(trial));
  }

  /** A command of the command line that is done by itself. */
  async command(...args) {
    const child = this.start(args.join(" "), join(this.bin, "stepwell"), [...args, "--server", `127.0.0.1:${this.ports.grpc}`], this.environment);
    const { code } = await child.ended;
    if (code !== 0) throw new Error(`${child.name}: ${code}\n${child.said}`);
    return child.said;
  }

  async close() {
    for (const child of this.children) child.kill(child === this.master ? "SIGTERM" : "SIGKILL");
    await Promise.all([...this.children].map((child) => child.ended));
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
