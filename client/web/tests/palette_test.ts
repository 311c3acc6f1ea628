// Colours of lines as people see them whose eyes lack one kind of cones.
import assert from "node:assert/strict";
import { test } from "node:test";
import { contrast, farColors, heatColor, lineLook, looksMax, othersColor, restColor, type Theme } from "../src/core/palette";

type Rgb = readonly [number, number, number];

// Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency" (IEEE
// TVCG 15/6, 2009), severity 1.0, over linear RGB.
const eyes: Readonly<Record<string, readonly Rgb[]>> = {
  usual: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protan: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deutan: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritan: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
/** Of CIELAB (Delta E, 1976), where 2.3 is just seen side by side: lines lie apart, and are thin. */
const distanceMin = 18;

const dot = (row: Rgb, color: Rgb): number => row[0] * color[0] + row[1] * color[1] + row[2] * color[2];

function linear(color: string): Rgb {
  const part = (at: number): number => {
    const value = parseInt(color.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return [part(1), part(3), part(5)];
}

function seenBy(eye: string, color: string): Rgb {
  const rows = eyes[eye] ?? [];
  return rows.map((row) => Math.min(1, Math.max(0, dot(row, linear(color))))) as unknown as Rgb;
}

/** CIELAB of linear RGB, white D65. */
function lab(color: Rgb): Rgb {
  const f = (t: number): number => (t > 216 / 24389 ? Math.cbrt(t) : (24389 / 27 * t + 16) / 116);
  const x = f(dot([0.4124564, 0.3575761, 0.1804375], color) / 0.95047);
  const y = f(dot([0.2126729, 0.7151522, 0.072175], color));
  const z = f(dot([0.0193339, 0.119192, 0.9503041], color) / 1.08883);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

/** Of lines, and the two greys that lie on each other at the top of a stack of layers. */
function colorsOf(theme: Theme): string[] {
  return [...Array.from({ length: 8 }, (_, at) => lineLook(at, theme).color), othersColor(theme), restColor(theme)];
}

function nearest(theme: Theme, eye: string): { distance: number; pair: string } {
  const looks = colorsOf(theme);
  let found = { distance: Infinity, pair: "" };
  looks.forEach((one, at) => looks.slice(at + 1).forEach((other) => {
    const [a, b] = [lab(seenBy(eye, one)), lab(seenBy(eye, other))];
    const distance = Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
    if (distance < found.distance) found = { distance, pair: `${one} ${other}` };
  }));
  return found;
}

for (const theme of ["light", "dark"] as const) {
  for (const eye of Object.keys(eyes)) {
    test(`lines and layers of the ${theme} theme differ for ${eye} eyes`, () => {
      const { distance, pair } = nearest(theme, eye);
      assert.ok(distance >= distanceMin, `${pair}: ${distance.toFixed(1)}`);
    });
  }
  test(`lines and layers of the ${theme} theme stand out from its panels`, () => {
    const ground = theme === "light" ? "#ffffff" : "#18202a";
    for (const color of colorsOf(theme)) assert.ok(contrast(color, ground) >= 3, color);
  });
}

test("as many lines as a chart has at most look each like no other", () => {
  for (const theme of ["light", "dark"] as const) {
    const looks = Array.from({ length: looksMax }, (_, at) => JSON.stringify(lineLook(at, theme)));
    assert.equal(new Set(looks).size, looksMax);
    assert.equal(JSON.stringify(lineLook(looksMax, theme)), looks[0]);
  }
});

/** As "#rrggbb". */
function heatHex(part: number): string {
  return `#${(heatColor(part).match(/\d+/g) ?? []).map((one) => Number(one).toString(16).padStart(2, "0")).join("")}`;
}

test("what is far beyond a heat map's scale looks as nothing else there, for all eyes", () => {
  const scale = Array.from({ length: 256 }, (_, at) => heatHex(at / 255));
  const [stripes, grounds] = ["#c4161c", ["#ffffff", "#18202a"]];
  for (const eye of Object.keys(eyes)) {
    for (const side of [-1, 1] as const) {
      for (const other of [...scale, stripes, ...grounds, farColors[side === 1 ? -1 : 1]]) {
        const [a, b] = [lab(seenBy(eye, farColors[side])), lab(seenBy(eye, other))];
        const distance = Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
        assert.ok(distance >= 35, `${eye}: ${farColors[side]} ${other}: ${distance.toFixed(1)}`);
      }
    }
  }
});

test("a heat map grows lighter with its values for all eyes", () => {
  for (const eye of Object.keys(eyes)) {
    const shades = Array.from({ length: 11 }, (_, at) => {
      return lab(seenBy(eye, heatHex(at / 10)))[0];
    });
    shades.slice(1).forEach((shade, at) => assert.ok(shade > (shades[at] ?? 0), `${eye}: ${shades.map((one) => one.toFixed(0)).join(" ")}`));
  }
});
