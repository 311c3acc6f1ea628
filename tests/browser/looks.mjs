// Run within the page: what a person with weak eyes or without a pointer would stumble over.

/** Texts whose contrast with what is behind them is below WCAG's AA. Each function stands alone: it is sent. */
export function lowContrast() {
  const parse = (color) => {
    const parts = (color.match(/[\d.]+(?:e-?\d+)?/g) ?? []).map(Number);
    const [red, green, blue, alpha = 1] = color.startsWith("color(srgb") ? [parts[0] * 255, parts[1] * 255, parts[2] * 255, parts[3] ?? 1] : parts;
    return { red, green, blue, alpha };
  };
  const luminance = ({ red, green, blue }) => {
    const [r, g, b] = [red, green, blue].map((part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.alpha > 0.99) return color;
    }
    return { red: 255, green: 255, blue: 255, alpha: 1 };
  };
  const found = new Set();
  const judge = (element, style, alpha, text) => {
    const [color, behind] = [parse(style.color), ground(element)];
    const seen = Object.fromEntries(["red", "green", "blue"].map((part) => [part, color[part] * alpha + behind[part] * (1 - alpha)]));
    const [low, high] = [luminance(seen), luminance(behind)].sort((a, b) => a - b);
    const ratio = (high + 0.05) / (low + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) found.add(`${ratio.toFixed(2)}: ${text.trim().slice(0, 40)}`);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || !element.checkVisibility() || element.closest(":disabled, .visually-hidden, noscript, option, [hidden]")) continue;
    judge(element, getComputedStyle(element), 1, node.textContent);
  }
  // What stands in a field before somebody types is no text node.
  for (const input of document.querySelectorAll("input:placeholder-shown:enabled")) {
    if (!input.checkVisibility() || input.placeholder.trim() === "") continue;
    const style = getComputedStyle(input, "::placeholder");
    judge(input, style, parse(style.color).alpha * Number(style.opacity), `the placeholder ${input.placeholder}`);
  }
  return [...found];
}

/** Controls that a screen reader could not name. */
export function unnamedControls() {
  return [...document.querySelectorAll("button, a[href], input, select, summary, [tabindex='0']")]
    .filter((control) => control.checkVisibility())
    .filter((control) => !(control.getAttribute("aria-label") || control.textContent.trim() || control.labels?.[0]?.textContent.trim() || control.title))
    .map((control) => control.outerHTML.slice(0, 100));
}

/** What is drawn on a chart's canvas along one line across it, in stretches of more than 4 pixels, where no line of a
 *  metric is: each as [from, to] of the plot's width, and how many of its pixels are as dense as a hatch. `up` is the
 *  place of that line, from 0 at the axis to 1. */
export function drawnAcross({ chart, up }) {
  const canvas = document.querySelector(`${chart} canvas`);
  const scale = canvas.width / canvas.clientWidth;
  const [plot, whole] = [document.querySelector(`${chart} .u-over`).getBoundingClientRect(), canvas.getBoundingClientRect()];
  const width = Math.round(plot.width * scale);
  const left = Math.round((plot.left - whole.left) * scale);
  const { data } = canvas.getContext("2d").getImageData(left, Math.round((plot.top - whole.top + plot.height * (1 - up)) * scale), width, 1);
  const found = [];
  for (let from = 0; from < width; ++from) {
    let to = from;
    while (to < width && data[to * 4 + 3] > 0) ++to;
    if (to - from > 4) found.push({ from: from / width, to: to / width, dense: [...data.subarray(from * 4, to * 4)].filter((value, at) => at % 4 === 3 && value > 130).length });
    from = to;
  }
  return found;
}

/** How dense each of `ups` is drawn at `across` of a plot, both from 0 to 1: 0 where nothing is. */
export function drawnUpwards({ chart, across, ups }) {
  const canvas = document.querySelector(`${chart} canvas`);
  const scale = canvas.width / canvas.clientWidth;
  const [plot, whole] = [document.querySelector(`${chart} .u-over`).getBoundingClientRect(), canvas.getBoundingClientRect()];
  return ups.map((up) => canvas.getContext("2d").getImageData(
    Math.round((plot.left - whole.left + plot.width * across) * scale), Math.round((plot.top - whole.top + plot.height * (1 - up)) * scale), 1, 1).data[3]);
}
