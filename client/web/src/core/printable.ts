// Names come from anybody. They are only ever set as text, and what could reorder or hide text beside
// them is shown as an escape.

// Controls, and what turns the direction of text around or has no width (joiners, which some scripts need, stay).
const unseen = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

export function printable(text: string): string {
  return text.replace(unseen, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** At most `most` characters, the middle left out: both ends tell long names apart. */
export function shortened(text: string, most: number): string {
  const shown = [...text];
  if (shown.length <= most) return text;
  const head = Math.ceil((most - 1) * 0.6);
  return `${shown.slice(0, head).join("")}…${shown.slice(shown.length - (most - 1 - head)).join("")}`;
}
