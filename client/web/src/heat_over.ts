// What is painted over the cells of a heat map: the far ones, those that no colour stands for, and gaps.
import { oddRuns, type HeatGrid, type HeatPicture } from "./core/heat";
import { farRuns } from "./core/heat_far";
import type { HeatGaps } from "./core/heat_gaps";
import { farColors } from "./core/palette";
import { h } from "./dom";
import { css } from "./theme";

const hatchPixels = 8;
const oddColor = "#c4161c";
/** A line of one pixel is seen by nobody, and shows no stripes: what stands out is as high and as wide as can be seen. */
const seenPixels = 3;

/** How many lines above and below its own a far cell is painted over, where a line is so high (in CSS pixels). */
export function reachOf(lineHeight: number): number {
  return lineHeight >= seenPixels ? 0 : Math.ceil((seenPixels / lineHeight - 1) / 2);
}

/** Over `canvas`, which lies over all of the cells; `leftOf`: of a place of the axis, 0 ... 1. */
export function paintOver(canvas: HTMLCanvasElement, grid: HeatGrid, picture: HeatPicture, gaps: HeatGaps, leftOf: (place: number) => number): void {
  const context = canvas.getContext("2d");
  if (!context) return;
  const ratio = window.devicePixelRatio || 1;
  const seen = Math.round(seenPixels * ratio);
  const [high, wide] = [canvas.height / picture.lineCount, canvas.width / picture.pixelCount];
  /** Whole pixels: none of its neighbours shines through its edge. */
  const paint = (line: number, from: number, to: number): void => {
    const [left, right, top, bottom] = [Math.floor(from * wide), Math.ceil(to * wide), Math.floor(line * high), Math.ceil((line + 1) * high)];
    const [width, height] = [Math.max(seen, right - left), Math.max(seen, bottom - top)];
    context.fillRect(Math.min(left, canvas.width - width), Math.max(0, Math.min(canvas.height - height, top - Math.floor((height - (bottom - top)) / 2))), width, height);
  };
  // Where cells are large enough they have their colour already.
  for (const { line, from, to, side } of high < seen || wide < seen ? farRuns(grid, picture) : []) {
    if (side === 0) continue;
    context.fillStyle = farColors[side];
    paint(line, from, to);
  }
  context.fillStyle = context.createPattern(stripes(Math.round(hatchPixels * ratio)), "repeat") ?? oddColor;
  for (const { line, from, to } of oddRuns(grid, picture)) paint(line, from, to);
  context.fillStyle = context.createPattern(hatch(Math.round(hatchPixels * ratio)), "repeat") ?? css("--gap-line");
  const paintGaps = (bands: HeatGaps["everywhere"], top: number, height: number): void => {
    for (const band of bands) {
      const left = leftOf(band.start) * canvas.width;
      context.fillRect(left, top, Math.max(3, leftOf(band.end) * canvas.width - left), height);
    }
  };
  paintGaps(gaps.everywhere, 0, canvas.height);
  for (const [row, bands] of gaps.ofRow) paintGaps(bands, Math.floor(row / picture.rowsPerLine) * high, Math.max(seenPixels, high));
}

/** Beside each other, for no colour of the scale is either; the other way than gaps. Alike in both themes, as the scale is. */
function stripes(size: number): HTMLCanvasElement {
  const canvas = h("canvas", { width: size, height: size });
  const context = canvas.getContext("2d");
  if (!context) return canvas;
  context.fillStyle = oddColor;
  context.fillRect(0, 0, size, size);
  context.strokeStyle = "#ffffff";
  context.lineWidth = Math.max(1, size / 4);
  context.beginPath();
  for (const from of [-size, 0, size]) {
    context.moveTo(from - 1, -1);
    context.lineTo(from + size + 1, size + 1);
  }
  context.stroke();
  return canvas;
}

function hatch(size: number): HTMLCanvasElement {
  const canvas = h("canvas", { width: size, height: size });
  const context = canvas.getContext("2d");
  if (!context) return canvas;
  context.fillStyle = css("--gap");
  context.fillRect(0, 0, size, size);
  context.strokeStyle = css("--gap-line");
  context.lineWidth = Math.max(1, size / 8);
  context.beginPath();
  for (const from of [-size, 0, size]) {
    context.moveTo(from - 1, size + 1);
    context.lineTo(from + size + 1, -1);
  }
  context.stroke();
  return canvas;
}
