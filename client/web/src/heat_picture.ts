// A heat map for a picture: its cells as large as on the screen, beside them the names of rows as far as
// there is room, below them the ticks of the axis and what the colours mean.
import type { HeatScale } from "./core/heat_scale";
import type { HeatTick } from "./core/heat_ticks";
import { farColors } from "./core/palette";
import { printable, shortened } from "./core/printable";
import { wrapped } from "./core/wrapping";
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
  readonly ticks: readonly HeatTick[];
  /** What the first and the last colour of `scale` stand for. */
  readonly means: HeatScale;
  readonly scale: HTMLCanvasElement;
}

const font = "12px system-ui, sans-serif";
const lineHeight = 16;
const gap = 8;
const nameLengthMax = 40;
const swatchSize = 10;
const [scaleWidthMin, scaleWidthMax] = [48, 192];

/** What stands below the axis: a line with the scale, and what has no room beside it. */
interface Below {
  readonly scaleWidth: number;
  /** Behind the scale. */
  readonly beside: string;
  readonly lines: readonly BelowLine[];
}

interface BelowLine {
  readonly text: string;
  /** Of what the line tells of: before it. */
  readonly swatch?: string;
}

function below({ means: { low, high, beyond, far }, striped }: HeatSight, width: number, measure: (text: string) => number): Below {
  const room = width - measure(low) - 2 * gap;
  const scaleWidth = Math.min(scaleWidthMax, Math.max(scaleWidthMin, Math.floor(room - measure(high))));
  const both = beyond === "" ? high : `${high}, ${beyond}`;
  const fits = measure(both) <= room - scaleWidth;
  const plain = [fits ? "" : beyond, striped === "" ? "" : `striped: ${striped}`].flatMap((text) => wrapped(text, width, measure));
  return { scaleWidth, beside: fits ? both : high, lines: [...far.map(({ side, text }) => ({ text, swatch: farColors[side] })), ...plain.map((text) => ({ text }))] };
}

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
  const measure = (text: string): number => context.measureText(text).width;
  const left = Math.ceil(named.reduce((widest, { name }) => Math.max(widest, measure(name)), 0)) + gap;
  const { scaleWidth, beside, lines } = below(sight, width, measure);
  canvas.width = Math.round((left + width) * pixels);
  canvas.height = Math.round((height + (2 + lines.length) * lineHeight + 2 * gap) * pixels);
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
  context.textAlign = "center";
  for (const tick of sight.ticks) {
    context.fillRect(left + tick.left * width, height, 1, gap / 2);
    context.fillText(tick.text, left + tick.left * width, axis + gap / 4);
  }
  context.textAlign = "left";
  const scaleTop = axis + lineHeight + gap / 2;
  context.fillText(sight.means.low, left, scaleTop);
  const from = left + measure(sight.means.low) + gap;
  context.drawImage(sight.scale, from, scaleTop - lineHeight / 2 + 1, scaleWidth, lineHeight - 4);
  context.fillText(beside, from + scaleWidth + gap, scaleTop);
  lines.forEach(({ text, swatch }, at) => {
    const top = scaleTop + (at + 1) * lineHeight;
    if (swatch !== undefined) {
      context.fillStyle = swatch;
      context.fillRect(left, top - swatchSize / 2, swatchSize, swatchSize);
      context.fillStyle = css("--text");
    }
    context.fillText(text, left + (swatch === undefined ? 0 : swatchSize + gap), top);
  });
  return drawn;
}
