// What the tests of this folder share: the program that they speak to, and the contract as its own file says it.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

const root = fileURLToPath(new URL("../..", import.meta.url));

// The services and messages by name, from proto/ as protoc reads it: nothing is generated.
export function readContract() {
  const folder = mkdtempSync(join(tmpdir(), "stepwell-web-"));
  try {
    const out = join(folder, "contract.binpb");
    execFileSync("protoc", [
      "-I", join(root, "proto"), "--include_imports", `--descriptor_set_out=${out}`,
      "stepwell/v1/query.proto", "stepwell/v1/admin.proto", "google/rpc/error_details.proto",
    ]);
    return createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(out)));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

// Starts PROGRAM, which prints its address; { address, stop }.
export async function startStand(program) {
  const child = spawn(program, [], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("exit", (code, signal) => resolve(signal ?? code)));
  const lines = createInterface({ input: child.stdout });
  const address = await new Promise((resolve, reject) => {
    lines.once("line", resolve);
    void ended.then((how) => reject(new Error(`${program} ended with ${how}`)));
  });
  return {
    address,
    stop: () => {
      child.stdin.end();
      return ended;
    },
  };
}

// Polls until `holds` says true; an error after 30 s.
export async function eventually(what, holds) {
  const deadline = Date.now() + 30_000;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`not within 30 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
