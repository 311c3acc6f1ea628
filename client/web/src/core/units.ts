// Numbers as people read them, in the same words as the command line (client/cli/units.cc).

import { printable } from "./printable";

type Scale = readonly [factor: number, unit: string];

const bytes: readonly Scale[] = [
  [2 ** 50, "PiB"], [2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"],
];
const seconds: readonly Scale[] = [
  [86400, "d"], [3600, "h"], [60, "min"], [1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"],
];

/** Three significant digits without an exponent for 1 <= |value| < 10,000. */
function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 99.95) return value.toFixed(0);
  return size >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

function nonFinite(value: number): string {
  if (Number.isNaN(value)) return "not a number";
  return value > 0 ? "+infinity" : "−infinity";
}

function scaled(value: number, scales: readonly Scale[], suffix: string): string {
  if (value === 0) return `0 ${scales[scales.length - 1]?.[1] ?? ""}${suffix}`;
  for (const [index, [factor, unit]] of scales.entries()) {
    // 0.9995: what would be shown as 1,000 of the unit below.
    if (Math.abs(value) < factor * 0.9995 && index !== scales.length - 1) continue;
    return `${digits(value / factor)} ${unit}${suffix}`;
  }
  return "";
}

/** 1,234,567. */
export function countText(count: number | bigint): string {
  return count.toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

export function plural(count: number | bigint, noun: string): string {
  return `${countText(count)} ${noun}${Number(count) === 1 ? "" : "s"}`;
}

export function secondsText(value: number): string {
  if (!Number.isFinite(value)) return nonFinite(value);
  if (value === 0) return "0 s";
  // Below 600 of a second the smaller unit reads better: 91.3 s rather than 1.52 min.
  if (Math.abs(value) >= 1 && Math.abs(value) < 600) return `${digits(value)} s`;
  return scaled(value, seconds, "");
}

/** Of a number as it is written; 0 where it has an exponent. */
function decimalsOf(number: string): number {
  return /^-?\d+\.(\d+)$/.exec(number)?.[1]?.length ?? 0;
}

/** Four digits without zeros at their end, but for those that make `decimals`. */
function plainText(value: number, decimals: number): string {
  const full = value.toPrecision(4);
  const short = String(Number(full));
  const least = Math.min(decimals, decimalsOf(full));
  return decimalsOf(short) < least ? value.toFixed(least) : short;
}

/** `value` in the unit of its series: "82.9 %", "1.20 GiB/s". `decimals`: at least, of a number without a scale that is not whole and has
 *  them within four digits. */
export function valueText(value: number, unit: string, decimals = 0): string {
  if (!Number.isFinite(value)) return nonFinite(value);
  if (unit === "bytes") return scaled(value, bytes, "");
  if (unit === "bytes/s") return scaled(value, bytes, "/s");
  if (unit === "seconds") return secondsText(value);
  if (unit === "percent") return `${value.toFixed(1)} %`;
  const whole = Number.isInteger(value);
  let number: string;
  if ((whole || Math.abs(value) >= 1000) && Math.abs(value) < 1e15) {
    number = countText(BigInt(Math.round(value)));
  } else {
    number = plainText(value, decimals);
  }
  if (unit === "" || unit === "1") return number;
  // "1/s" is said as "82.9 /s".
  return `${number} ${printable(unit.startsWith("1/") ? unit.slice(1) : unit)}`;
}

/** From the smallest to the largest, the unit once where it is the same; "" where both read alike: "76.2 … 76.7 %". */
export function rangeText(min: number, max: number, unit: string, decimals = 0): string {
  const [low, high] = [valueText(min, unit, decimals), valueText(max, unit, decimals)];
  if (low === high) return "";
  const [number = "", ...name] = low.split(" ");
  const isSame = name.length > 0 && Number.isFinite(min) && high.endsWith(` ${name.join(" ")}`);
  return `${isSame ? number : low} … ${high}`;
}

/** A mean and its range as they stand together: "468.0 /s", not "468 /s", beside "427.1 … 505.8 /s". */
export function meanTexts(mean: number, min: number, max: number, unit: string): [mean: string, range: string] {
  const decimals = Math.max(...[mean, min, max].map((one) => decimalsOf(valueText(one, unit).split(" ")[0] ?? "")));
  return [valueText(mean, unit, decimals), rangeText(min, max, unit, decimals)];
}

/** Shares (0 ... 1) as percents of one decimal whose sum is that of the shares, by largest remainder. */
export function percentTexts(shares: readonly number[]): string[] {
  const total = Math.round(shares.reduce((sum, share) => sum + share, 0) * 1000);
  const tenths = shares.map((share) => Math.floor(share * 1000));
  const rest = (index: number): number => {
    const share = shares[index] ?? 0;
    return share * 1000 - Math.floor(share * 1000);
  };
  const order = shares.map((_, index) => index).sort((a, b) => rest(b) - rest(a));
  let given = tenths.reduce((sum, tenth) => sum + tenth, 0);
  for (const index of order) {
    if (given >= total) break;
    tenths[index] = (tenths[index] ?? 0) + 1;
    ++given;
  }
  return tenths.map((tenth) => `${(tenth / 10).toFixed(1)} %`);
}

/** Labels of an axis: one unit for all of its ticks, as many digits as tell them apart. */
export function tickTexts(ticks: readonly number[], unit: string): string[] {
  const largest = Math.max(...ticks.map(Math.abs), 0);
  const scales = unit === "bytes" || unit === "bytes/s" ? bytes : unit === "seconds" ? seconds : undefined;
  const scale = scales?.find(([factor]) => largest >= factor) ?? scales?.[scales.length - 1];
  const factor = scale?.[0] ?? 1;
  const name = unit === "percent" ? "%" : scale ? scale[1] + (unit === "bytes/s" ? "/s" : "") : "";
  const shown = ticks.map((tick) => tick / factor);
  const numbers = tickNumbers(shown);
  return numbers.map((number, at) => (shown[at] === 0 ? "0" : `${number}${name ? " " + name : ""}`));
}

const decimalsMax = 6;
/** No two doubles are the same with so many after the first. */
const exponentDigitsMax = 16;

function tickNumbers(values: readonly number[]): string[] {
  const largest = Math.max(...values.map(Math.abs), 0);
  const sorted = [...new Set(values)].sort((a, b) => a - b);
  const steps = sorted.slice(1).map((value, at) => value - (sorted[at] ?? 0));
  const step = steps.length > 0 ? Math.min(...steps) : largest;
  // Near enough to be on its tick, and so far from the next one.
  const tells = (texts: readonly string[]): boolean => texts.every((text, at) => Math.abs(Number(text) - (values[at] ?? 0)) <= step * 0.02);
  const first = (most: number, write: (value: number, digits: number) => string): string[] | undefined => {
    for (let digits = 0; digits <= most; ++digits) {
      const texts = values.map((value) => write(value, digits));
      if (tells(texts)) return texts;
    }
    return undefined;
  };
  const plain = largest < 1e6 ? first(decimalsMax, (value, digits) => value.toFixed(digits)) : undefined;
  return plain ?? first(exponentDigitsMax, (value, digits) => value.toExponential(digits)) ?? values.map(String);
}
