// Builds the page into dist/ (committed), the same bytes each time: generated types, type check, one script and a small one
// before it, one style sheet, names by content. `node build.mjs DIR` builds elsewhere: check.sh compares the two.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const proto = join(here, "../../proto");
const dist = resolve(process.argv[2] ?? join(here, "dist"));
const bytesMax = 250_000; // gzipped, all together
process.chdir(here);

/** Types and descriptors of the services that the page asks, by Debian's protoc. */
export function generate() {
  const gen = join(here, "build/gen");
  rmSync(gen, { recursive: true, force: true });
  mkdirSync(gen, { recursive: true });
  const files = ["model", "query", "follow", "compare", "admin", "caps", "trace"].map((name) => `stepwell/v1/${name}.proto`);
  execFileSync("protoc", [
    "--plugin=protoc-gen-es=node_modules/.bin/protoc-gen-es",
    `--es_out=${gen}`,
    "--es_opt=target=ts",
    `-I${proto}`,
    ...files,
  ], { stdio: "inherit" });
}

function named(stem, ending, bytes) {
  const name = `${stem}-${createHash("sha256").update(bytes).digest("hex").slice(0, 12)}.${ending}`;
  writeFileSync(join(dist, name), bytes);
  return { name, packed: gzipSync(bytes, { level: 9 }).length };
}

async function bundle(entry, format = "esm") {
  const result = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format,
    target: ["es2021"],
    charset: "utf8",
    legalComments: "none",
    logLevel: "warning",
    alias: { "#gen": join(here, "build/gen/stepwell/v1") },
    inject: ["src/no_icu.ts"],
    define: { "Intl.NumberFormat": "NumberTexts", "Intl.DateTimeFormat": "ZoneTexts" },
  });
  return Buffer.from(result.outputFiles[0].contents);
}

generate();
execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "."], { stdio: "inherit" });
rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });
const script = named("app", "js", await bundle("src/main.ts"));
const first = named("first", "js", await bundle("src/first.ts", "iife"));
const style = named("app", "css", await bundle("src/style.css"));
const icon = named("icon", "svg", readFileSync("src/icon.svg"));
// What others' licences ask to be shown with their code.
const licenses = readFileSync("src/licenses.txt");
writeFileSync(join(dist, "licenses.txt"), licenses);
const page = readFileSync("src/index.html", "utf8")
  .replace("{{style}}", style.name)
  .replace("{{script}}", script.name)
  .replace("{{first}}", first.name)
  .replace("{{icon}}", icon.name);
writeFileSync(join(dist, "index.html"), page);
const total = script.packed + first.packed + style.packed + icon.packed + gzipSync(page).length + gzipSync(licenses, { level: 9 }).length;
console.log(`built: ${total} bytes gzipped (script ${script.packed}, style ${style.packed})`);
if (total > bytesMax) {
  console.error(`the page may have ${bytesMax} bytes gzipped`);
  process.exit(1);
}
