// Charts as one PNG: each with its title, as it is on the screen, and the names and colours of its lines.
import { downloadBlob, h } from "./dom";
import { css } from "./theme";

export interface Drawn {
  readonly title: string;
  /** In pixels of the screen. */
  readonly canvas: HTMLCanvasElement;
  readonly lines: readonly { readonly name: string; readonly color: string }[];
}

const margin = 16;
const rowHeight = 20;
const swatchWidth = 14;
const linesNamedMax = 32;
const nameLengthMax = 80;
const usualWidth = 1280;
/** What browsers still make a canvas of. */
const pixelsHighMax = 16_000;

interface Word {
  readonly text: string;
  readonly left: number;
  readonly top: number;
  readonly color: string;
  readonly font: string;
  /** Of a line: before its name. */
  readonly swatch?: string;
}

const plainFont = "13px system-ui, sans-serif";
const headFont = "600 16px system-ui, sans-serif";

/** The names of the lines, in rows from `left` on; how high they are. */
function placeNames(drawn: Drawn, left: number, width: number, top: number, measure: (text: string) => number, words: Word[]): number {
  let at = left;
  let row = 0;
  const named = drawn.lines.filter(({ name }) => name !== "").slice(0, linesNamedMax)
    .map(({ name, color }) => ({ color, text: name.length > nameLengthMax ? `${name.slice(0, nameLengthMax)}…` : name }));
  if (drawn.lines.length > linesNamedMax) named.push({ text: `and ${drawn.lines.length - linesNamedMax} more`, color: "transparent" });
  for (const { text, color } of named) {
    const wide = swatchWidth + 6 + measure(text) + 16;
    if (at > left && at + wide > left + width) {
      at = left;
      row += 1;
    }
    words.push({ text, left: at + swatchWidth + 6, top: top + row * rowHeight, color: css("--text"), font: plainFont, swatch: color });
    at += wide;
  }
  return named.length === 0 ? 0 : (row + 1) * rowHeight;
}

/** Side by side as far as there is room, then below, under `head`. Those that do not fit are left out, and said to be. */
export function picture(head: string, charts: readonly Drawn[]): HTMLCanvasElement {
  const scale = window.devicePixelRatio || 1;
  const canvas = h("canvas");
  const context = canvas.getContext("2d");
  if (!context) return canvas;
  const measure = (text: string, font = plainFont): number => {
    context.font = font;
    return context.measureText(text).width;
  };
  const columnWidth = Math.max(...charts.map((chart) => chart.canvas.width / scale), 1);
  const columns = Math.min(charts.length, Math.max(1, Math.floor(usualWidth / (columnWidth + margin))));
  const width = Math.max(columns * (columnWidth + margin), measure(head, headFont) + margin) + margin;
  const words: Word[] = [{ text: head, left: margin, top: margin, color: css("--text"), font: headFont }];
  const images: { canvas: HTMLCanvasElement; left: number; top: number }[] = [];
  let top = margin + 2 * rowHeight;
  for (let at = 0; at < charts.length; at += columns) {
    const before = [words.length, images.length] as const;
    let end = top;
    charts.slice(at, at + columns).forEach((chart, column) => {
      const left = margin + column * (columnWidth + margin);
      const below = top + 1.5 * rowHeight + chart.canvas.height / scale;
      words.push({ text: chart.title, left, top, color: css("--text"), font: headFont });
      images.push({ canvas: chart.canvas, left, top: top + 1.5 * rowHeight });
      end = Math.max(end, below + placeNames(chart, left, columnWidth, below, measure, words) + margin);
    });
    if ((end + rowHeight) * scale > pixelsHighMax) {
      [words.length, images.length] = before;
      words.push({ text: `${charts.length - at} more charts did not fit`, left: margin, top, color: css("--muted"), font: plainFont });
      top += rowHeight + margin;
      break;
    }
    top = end;
  }
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(top * scale);
  context.fillStyle = css("--panel");
  context.fillRect(0, 0, canvas.width, canvas.height);
  for (const image of images) context.drawImage(image.canvas, image.left * scale, image.top * scale);
  context.scale(scale, scale);
  context.textBaseline = "top";
  for (const word of words) {
    if (word.swatch !== undefined) {
      context.fillStyle = word.swatch;
      context.fillRect(word.left - swatchWidth - 6, word.top + 4, swatchWidth, 6);
    }
    context.fillStyle = word.color;
    context.font = word.font;
    context.fillText(word.text, word.left, word.top);
  }
  return canvas;
}

/** A browser that cannot make a picture of that size gives none, and no reason: said beside the button that wanted it. */
function tellUnsaved(): void {
  document.querySelector('main button[data-focus="png"]')?.parentElement?.after(
    h("p", { class: "note", role: "alert", "data-unsaved": "" }, "The browser could not make this picture: it may be too large, or memory short. Show fewer charts, or a smaller window, and save again."));
}

export function savePng(name: string, head: string, charts: readonly (Drawn | null)[]): void {
  document.querySelector("[data-unsaved]")?.remove(); // Of the time before.
  picture(head, charts.filter((chart) => chart !== null)).toBlob((blob) => (blob ? downloadBlob(name, blob) : tellUnsaved()), "image/png");
}
