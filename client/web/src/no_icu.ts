// In place of what uPlot makes of Intl as it is loaded (build.mjs puts these there): the first of a page's Intl takes a browser
// 20 to 60 ms, before anything is asked. The page writes numbers and times by itself (core/units, core/time_text).

/** Texts of numbers where a chart names none; each of ours does. */
export class NumberTexts {
  format(value: number): string {
    return String(value);
  }
}

/** The zone of the reader's machine, which matters where charts are of another than UTC. Ours are not. */
export class ZoneTexts {
  resolvedOptions(): { readonly timeZone: string } {
    return { timeZone: "" };
  }
}
