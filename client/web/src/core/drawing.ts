// Drawing many charts without one long task: a few at a time, and between them what else waits (a key, a
// frame, an answer).

/** So long at once; half of what counts as a long task, for the last one may be large. */
const sliceMs = 25;

/** `draw` of each, in order; false = `gone()` said in between that nobody wants the rest. What `draw` leaves to
 *  microtasks counts, too. */
export async function drawInSlices<T>(
  items: readonly T[], draw: (item: T) => void, gone: () => boolean,
  clock: { now(): number; rest(): Promise<void> } = { now: () => performance.now(), rest },
): Promise<boolean> {
  let begun = clock.now();
  for (const item of items) {
    if (clock.now() - begun >= sliceMs) {
      await clock.rest();
      begun = clock.now();
    }
    if (gone()) return false;
    draw(item);
    await null;
  }
  return true;
}

/** Until what waits has had its turn. A timer would wait for four milliseconds. */
function rest(): Promise<void> {
  return new Promise((done) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      channel.port1.close();
      done();
    };
    channel.port2.postMessage(null);
  });
}
