// Which of a list are picked, up to a bound.

export interface Picks {
  readonly picked: ReadonlySet<string>;
  /** There was no room for one more. */
  readonly refused: boolean;
}

export function withPick(picked: ReadonlySet<string>, id: string, on: boolean, picksMax: number): Picks {
  const refused = on && !picked.has(id) && picked.size >= picksMax;
  const next = new Set(picked);
  if (!on) next.delete(id);
  else if (!refused) next.add(id);
  return { picked: next, refused };
}
