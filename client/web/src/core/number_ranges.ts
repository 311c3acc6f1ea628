// Sets of whole numbers in an address: "1-4.7". What cannot be read is left out.

const endMax = 2 ** 31;

/** Ascending, each once; at most `countMax` of them. */
export function parseNumbers(text: string, countMax: number): number[] {
  const found = new Set<number>();
  for (const part of text.split(".")) {
    const ends = /^(\d{1,10})(?:-(\d{1,10}))?$/.exec(part);
    if (!ends) continue;
    const last = Number(ends[2] ?? ends[1]);
    for (let one = Number(ends[1]); one <= last && one < endMax && found.size < countMax; ++one) found.add(one);
  }
  return [...found].sort((a, b) => a - b);
}

export function formatNumbers(numbers: Iterable<number>): string {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let first = 0; first < sorted.length;) {
    let last = first;
    while (sorted[last + 1] === (sorted[last] ?? 0) + 1) ++last;
    parts.push(first === last ? String(sorted[first]) : `${sorted[first]}-${sorted[last]}`);
    first = last + 1;
  }
  return parts.join(".");
}
