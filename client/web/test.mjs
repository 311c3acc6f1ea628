// Tests of the cores: bundled together by esbuild, run by node's own test runner.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const tests = readdirSync(join(here, "tests")).filter((name) => name.endsWith("_test.ts"));
await build({
  entryPoints: tests.map((name) => join(here, "tests", name)),
  outdir: join(here, "build/tests"),
  outExtension: { ".js": ".mjs" },
  bundle: true,
  platform: "node",
  format: "esm",
  sourcemap: "inline",
  logLevel: "warning",
  alias: { "#gen": join(here, "build/gen/stepwell/v1") },
});
const built = tests.map((name) => join(here, "build/tests", name.replace(/\.ts$/, ".mjs")));
process.exit(spawnSync(process.execPath, ["--enable-source-maps", "--test", ...built], { stdio: "inherit" }).status ?? 1);
