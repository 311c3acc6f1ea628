// How a chart's lines and bands reach its canvas. Without a GPU the browser paints them on the main thread, when a frame is
// committed: what is painted here is chosen by what that costs, on a chart of 20 lines or of 500 noisy buckets.
import uPlot from "uplot";
import type { AlignedLine, Value } from "./core/align";
import { bandColumns, pitchMax } from "./core/band_columns";
import { bandRuns } from "./core/band_runs";
import { loneRows, type OddBand } from "./core/odd_values";

/** More than a palette of lines are thin: they hide less of each other. */
const thickLinesMax = 8;

/** Of each of so many lines, in CSS pixels, and its path. A line of one pixel of the screen takes a browser a tenth of the time of a
 *  wider one; two of them, half a pixel apart, look like one of a pixel and a half. */
export function lineStyle(lines: number): Pick<uPlot.Series, "width" | "paths"> {
  const pixels = uPlot.pxRatio ?? devicePixelRatio;
  if (pixels > 1) return { width: lines > thickLinesMax ? 1 : 1.5 };
  const paths = uPlot.paths.linear?.();
  if (lines > thickLinesMax || !paths) return { width: 1 };
  return { width: 1, paths: (plot, series, from, to) => doubled(paths(plot, series, from, to)) };
}

function doubled(paths: uPlot.Series.Paths | null): uPlot.Series.Paths | null {
  if (!(paths?.stroke instanceof Path2D)) return paths;
  const stroke = new Path2D(paths.stroke);
  stroke.addPath(paths.stroke, new DOMMatrix([1, 0, 0, 1, 0, 0.5]));
  return { ...paths, stroke };
}

/** From the smallest to the largest of each bucket, in `color`. One shape for a line, where bands of uPlot's would clip two
 *  edges for each; columns of pixels where there is a bucket for each. `places` = as uPlot has them. */
export function paintBand(plot: uPlot, places: ArrayLike<number>, line: AlignedLine, color: string): void {
  const { ctx, bbox, scales: { x, y } } = plot;
  if (typeof x?.min !== "number" || typeof x.max !== "number" || typeof y?.min !== "number" || typeof y.max !== "number") return;
  const [left, top, perX, perY] = [x.min, y.max, bbox.width / (x.max - x.min), bbox.height / (y.max - y.min)];
  const across = (row: number): number => bbox.left + ((places[row] ?? 0) - left) * perX;
  const down = (value: Value): number => bbox.top + (top - (value ?? 0)) * perY;
  ctx.fillStyle = color;
  for (const rows of bandRuns(line.mins, line.maxs)) {
    const middles = rows.map(across);
    const tops = rows.map((row) => down(line.maxs[row]));
    const bottoms = rows.map((row) => down(line.mins[row]));
    const span = (middles[middles.length - 1] ?? 0) - (middles[0] ?? 0);
    if (span <= pitchMax * (rows.length - 1)) {
      for (const column of bandColumns(middles, tops, bottoms)) ctx.fillRect(column.left, column.top, column.width, column.height);
      continue;
    }
    const shape = new Path2D();
    middles.forEach((at, i) => (i === 0 ? shape.moveTo(at, tops[i] ?? 0) : shape.lineTo(at, tops[i] ?? 0)));
    for (let i = middles.length - 1; i >= 0; --i) shape.lineTo(middles[i] ?? 0, bottoms[i] ?? 0);
    shape.closePath();
    ctx.fill(shape);
  }
}

/** Of the plot, in CSS pixels, as all here. */
const oddWidthLeast = 3;
const oddStrip = 4;
const oddRow = 13;
const lonePixels = 4;

/** Where samples are NaN or infinite, over the whole height: what they are is written where there is room. `bands` as uPlot has places. */
export function paintOdd(plot: uPlot, bands: readonly OddBand[], color: string): void {
  const { ctx, bbox } = plot;
  const pixels = uPlot.pxRatio ?? devicePixelRatio;
  ctx.save();
  ctx.font = `600 ${11 * pixels}px system-ui, sans-serif`;
  ctx.textBaseline = "top";
  ctx.textAlign = "left";
  for (const { start, end, text, row } of bands) {
    const left = Math.max(bbox.left, plot.valToPos(start, "x", true));
    const width = Math.max(oddWidthLeast * pixels, Math.min(bbox.left + bbox.width, plot.valToPos(end, "x", true)) - left);
    ctx.fillStyle = `${color}1f`;
    ctx.fillRect(left, bbox.top, width, bbox.height);
    ctx.fillStyle = color;
    ctx.fillRect(left, bbox.top + bbox.height - oddStrip * pixels, width, oddStrip * pixels);
    if (ctx.measureText(text).width + 8 * pixels <= width) ctx.fillText(text, left + 4 * pixels, bbox.top + (3 + row * oddRow) * pixels);
  }
  ctx.restore();
}

/** Numbers that no line reaches, for both their neighbours are none. */
export function paintLone(plot: uPlot, places: ArrayLike<number>, line: AlignedLine, color: string): void {
  const size = lonePixels * (uPlot.pxRatio ?? devicePixelRatio);
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = color;
  for (const row of loneRows(line)) ctx.fillRect(plot.valToPos(places[row] ?? 0, "x", true) - size / 2, plot.valToPos(line.means[row] ?? 0, "y", true) - size / 2, size, size);
  ctx.restore();
}
