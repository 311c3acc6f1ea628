// How many bytes of a download this page takes into its memory: a browser that has none left ends the tab.

export class ByteBound {
  /** More came than that: the rest was not taken. */
  isOver = false;

  constructor(readonly bytesMax: number, private readonly arriving: (byteCount: number) => boolean) {}

  /** Hears how many bytes are there. False: no more of them. */
  readonly take = (byteCount: number): boolean => {
    if (byteCount > this.bytesMax) this.isOver = true;
    return !this.isOver && this.arriving(byteCount);
  };
}
