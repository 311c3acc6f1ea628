// "3, 5-7 and 12 more": ascending numbers as ranges, for a sentence.
import { countText } from "./units";

export function rangesText(numbers: readonly number[], count: number, rangesMax: number): string {
  const ranges: string[] = [];
  let shown = 0;
  while (shown < numbers.length && ranges.length < rangesMax) {
    let end = shown + 1;
    while (end < numbers.length && numbers[end] === (numbers[end - 1] ?? 0) + 1) ++end;
    ranges.push(end === shown + 1 ? `${numbers[shown]}` : `${numbers[shown]}-${numbers[end - 1]}`);
    shown = end;
  }
  const more = count - shown;
  return ranges.join(", ") + (more > 0 ? ` and ${countText(more)} more` : "");
}
