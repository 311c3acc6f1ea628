// Colours that people with any colour vision can tell apart: Okabe and Ito's, moved until each has a contrast of
// 3 : 1 or more on its theme's ground and any two are 18 or more apart (CIELAB) for eyes that lack one kind of cones,
// too (tests/palette_test.ts); after eight, lines are dashed as well.

export type Theme = "light" | "dark";

const light = ["#31509e", "#da7119", "#007a58", "#b04e93", "#795d00", "#0d98c7", "#131827", "#982b2e"];
const dark = ["#258cc1", "#f1a14b", "#37ca9d", "#e39cca", "#efe341", "#8eb8ff", "#e5e7eb", "#ee7a69"];
/** Of a stack: what is in no scope, and the scopes beyond the last layer, which lie on each other; greys, as far from all others. */
const rest: Readonly<Record<Theme, string>> = { light: "#909693", dark: "#69768c" };
const others: Readonly<Record<Theme, string>> = { light: "#4b4e5a", dark: "#7d645a" };
const dashes: readonly (readonly number[])[] = [[], [8, 4], [2, 3], [10, 3, 2, 3]];

export interface LineLook {
  readonly color: string;
  readonly dash: readonly number[];
}

/** So many lines look each like no other. */
export const looksMax = light.length * dashes.length;

export function lineLook(index: number, theme: Theme): LineLook {
  const colors = theme === "light" ? light : dark;
  return {
    color: colors[index % colors.length] ?? "#888888",
    dash: dashes[Math.floor(index / colors.length) % dashes.length] ?? [],
  };
}

/** What is in no scope is grey in any palette. */
export function restColor(theme: Theme): string {
  return rest[theme];
}

export function othersColor(theme: Theme): string {
  return others[theme];
}

// Cividis, made for people with and without colour vision deficiency: dark blue to yellow.
const cividis: readonly (readonly [number, number, number])[] = [
  [0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115], [138, 134, 120], [165, 156, 116],
  [195, 179, 105], [225, 204, 85], [254, 232, 56],
];

function heatParts(fraction: number): number[] {
  const at = Math.min(1, Math.max(0, fraction)) * (cividis.length - 1);
  const from = cividis[Math.floor(at)] ?? [0, 0, 0];
  const to = cividis[Math.ceil(at)] ?? from;
  const part = at - Math.floor(at);
  return [0, 1, 2].map((i) => Math.round((from[i] ?? 0) + ((to[i] ?? 0) - (from[i] ?? 0)) * part));
}

/** fraction 0 ... 1 → "rgb(r,g,b)". */
export function heatColor(fraction: number): string {
  return `rgb(${heatParts(fraction).join(",")})`;
}

/** `count` colours from the first to the last as pixels of a canvas: red, green, blue, opaque, byte after byte. */
export function heatColors(count: number): Uint32Array {
  const bytes = new Uint8Array(count * 4);
  for (let at = 0; at < count; ++at) bytes.set([...heatParts(at / (count - 1)), 255], at * 4);
  return new Uint32Array(bytes.buffer);
}

/** Of what lies far below and far above a heat map's scale: 35 and more (CIELAB) from each of its colours, from its stripes,
 *  from the ground of both themes and from each other, for all eyes (tests/palette_test.ts). */
export const farColors: Readonly<Record<-1 | 1, string>> = { [-1]: "#5ab4f0", 1: "#c300ff" };

/** Below and above, as `heatColors` has pixels. */
export function farPixels(): Uint32Array {
  const parts = (color: string): number[] => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  return new Uint32Array(new Uint8Array([...parts(farColors[-1]), 255, ...parts(farColors[1]), 255]).buffer);
}

/** Contrast of two "#rrggbb" as WCAG counts it, 1 ... 21. */
export function contrast(a: string, b: string): number {
  const luminance = (color: string): number => {
    const parts = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16) / 255);
    const [red = 0, green = 0, blue = 0] = parts.map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [low = 0, high = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}
