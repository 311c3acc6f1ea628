// Caps as people write and read them, as the command line does (client/cli/cap_units.h): "30d", "1h30m",
// "50GiB", "1M". What is shown can be given again and means the same; "none" = 0 = no bound.

const ages: readonly (readonly [unit: string, seconds: number])[] = [
  ["y", 31_536_000], ["w", 604_800], ["d", 86_400], ["h", 3600], ["m", 60], ["s", 1],
];
const byteUnits: Readonly<Record<string, number>> = {
  "": 1, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, PiB: 2 ** 50, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, PB: 1e15,
};
const countUnits: Readonly<Record<string, number>> = { "": 1, k: 1e3, M: 1e6, G: 1e9 };

export type CapKind = "age" | "bytes" | "samples";

export const capHints: Readonly<Record<CapKind, string>> = {
  age: "none, or numbers with y, w, d, h, m, s: 30d, 1h30m",
  bytes: "none, or a number with B, KiB … PiB, kB … PB: 50GiB",
  samples: "none, or a number with k, M, G: 1M",
};

function parseAge(text: string): number | null {
  if (!/^(\d{1,9}[ywdhms])+$/.test(text)) return null;
  let sum = 0;
  for (const [, number, unit] of text.matchAll(/(\d+)([ywdhms])/g)) {
    sum += Number(number) * (ages.find(([name]) => name === unit)?.[1] ?? 0);
  }
  return sum;
}

function parseScaled(text: string, units: Readonly<Record<string, number>>): number | null {
  const found = /^(\d{1,16})(?:\.(\d{1,6}))?\s*([A-Za-z]*)$/.exec(text);
  const factor = units[found?.[3] ?? "?"];
  if (!found || factor === undefined) return null;
  // In whole numbers: 8.2 * 1e9 is not 8,200,000,000.
  const decimals = found[2] ?? "";
  const scaled = BigInt(`${found[1]}${decimals}`) * BigInt(factor);
  const divisor = 10n ** BigInt(decimals.length);
  if (scaled % divisor !== 0n) return null;
  const value = Number(scaled / divisor);
  return Number.isSafeInteger(value) ? value : null;
}

/** null = cannot be read; see capHints. */
export function parseCap(kind: CapKind, written: string): number | null {
  const text = written.trim();
  if (text === "none") return 0;
  if (kind === "age") return parseAge(text);
  return parseScaled(text, kind === "bytes" ? byteUnits : countUnits);
}

export function capText(kind: CapKind, value: number): string {
  if (value === 0) return "none";
  if (kind === "age") {
    let left = value;
    let text = "";
    for (const [unit, seconds] of ages) {
      const count = Math.floor(left / seconds);
      if (count > 0) text += `${count}${unit}`;
      left -= count * seconds;
    }
    return text;
  }
  const units = Object.entries(kind === "bytes" ? byteUnits : countUnits)
    .filter(([name]) => name !== "B" && !/^(kB|MB|GB|TB|PB)$/.test(name)).sort((a, b) => b[1] - a[1]);
  const [name = "", factor = 1] = units.find(([, size]) => value >= size && value % size === 0) ?? [];
  return `${value / factor}${kind === "bytes" && name === "" ? "B" : name}`;
}
