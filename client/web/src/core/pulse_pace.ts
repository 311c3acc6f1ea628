// How soon a live chart asks again after news: what its questions take is at most a tenth of the time, for
// the master's sake as for the page's. The first ten milliseconds of each are free: light ones cost nobody much.

const shareOfTime = 0.1;
/** What is drawn costs the browser three to four times as much again: layout, paint and commit of the frames that show
 *  it, without a GPU. */
const framesOfDrawing = 4;
/** But for what lies in one frame beside all else. */
const frameMs = 10;
const freeMs = 10;
const paceMsMin = 100;
/** A master that takes so long is asked once a minute all the same. */
const paceMsMax = 60_000;

/** From the begin of one question to that of the next, where the last one and its drawing took `tookMs`. */
export function paceMs(tookMs: number): number {
  return Math.min(paceMsMax, Math.max(paceMsMin, (tookMs - freeMs) / shareOfTime));
}

/** What a question took, for the pace: until its answer was there, and until that was drawn. */
export function tookMs(answeredMs: number, drawnMs: number): number {
  return answeredMs + drawnMs + framesOfDrawing * Math.max(0, drawnMs - frameMs);
}

/** How long to wait at `nowMs` where the last question began at `begunMs`; news that come too soon wait, they
 *  are not left out. */
export function untilNextMs(nowMs: number, begunMs: number, tookMs: number): number {
  return Math.max(0, begunMs + paceMs(tookMs) - nowMs);
}
