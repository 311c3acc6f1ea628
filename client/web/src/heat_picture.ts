// A heat map for a picture: its cells as large as on the screen, beside them the names of rows as far as
// there is room, below them the ends of the axis and what the colours mean.
import type { HeatScale } from "./core/heat_scale";
import { printable, shortened } from "./core/printable";
import { h } from "./dom";
import { css } from "./theme";
import type { Drawn } from "./picture";

export interface HeatSight {
  readonly title: string;
  /** As the heat map draws them. */
  readonly cells: HTMLCanvasElement;
  /** Over them. */
  readonly gaps: HTMLCanvasElement;
  /** What stripes over them are; "" = there are none. */
  readonly striped: string;
  /** From the top. */
  readonly rows: readonly string[];
  /** Of the first and the last column. */
  readonly ends: readonly [string, string];
  /** What the first and the last colour of `scale` stand for. */
  readonly means: HeatScale;
  readonly scale: HTMLCanvasElement;
}

const font = "12px system-ui, sans-serif";
const lineHeight = 16;
const gap = 8;
const nameLengthMax = 40;
const scaleWidth = 192;

export function heatDrawn(sight: HeatSight): Drawn {
  const { cells, rows } = sight;
  const pixels = window.devicePixelRatio || 1;
  const canvas = h("canvas");
  const context = canvas.getContext("2d");
  const drawn: Drawn = { title: sight.title, canvas, lines: [] };
  if (!context) return drawn;
  const width = cells.clientWidth || cells.width;
  const height = cells.clientHeight || cells.height;
  const each = Math.max(1, Math.ceil((lineHeight * rows.length) / height));
  const named = rows.map((name, row) => ({ name: shortened(printable(name), nameLengthMax), row })).filter(({ row }) => row % each === 0);
  context.font = font;
  const left = Math.ceil(named.reduce((widest, { name }) => Math.max(widest, context.measureText(name).width), 0)) + gap;
  canvas.width = Math.round((left + width) * pixels);
  canvas.height = Math.round((height + 2 * lineHeight + 2 * gap) * pixels);
  context.scale(pixels, pixels);
  context.imageSmoothingEnabled = false;
  context.drawImage(cells, left, 0, width, height);
  context.drawImage(sight.gaps, left, 0, width, height);
  context.strokeStyle = css("--line");
  context.strokeRect(left, 0, width, height);
  context.fillStyle = css("--text");
  context.font = font;
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const { name, row } of named) context.fillText(name, left - gap, Math.max(lineHeight / 2, ((row + 0.5) * height) / rows.length));
  const axis = height + gap / 2 + lineHeight / 2;
  context.fillText(sight.ends[1], left + width, axis);
  context.textAlign = "left";
  context.fillText(sight.ends[0], left, axis);
  const below = axis + lineHeight + gap / 2;
  const { low, high, beyond } = sight.means;
  context.fillText(low, left, below);
  const from = left + context.measureText(low).width + gap;
  context.drawImage(sight.scale, from, below - lineHeight / 2 + 1, scaleWidth, lineHeight - 4);
  const striped = sight.striped === "" ? "" : `striped: ${sight.striped}`;
  context.fillText([high, beyond, striped].filter((text) => text !== "").join(", "), from + scaleWidth + gap, below);
  return drawn;
}
