// Drawing many charts without one long task: a few at a time, and between them what else waits (a key, a
// frame, an answer).

/** "tasks": all as soon as can be, for somebody waits for it. "frames": so little of each frame that what moves goes on
 *  moving, for it comes by itself. */
export type Pace = "tasks" | "frames";

/** So long at once. Of tasks somewhat less than what counts as a long one, for each slice costs a frame, too. Of frames so
 *  little because what is drawn here is only noted: the browser paints it when the frame is committed, for three to four
 *  times as long without a GPU, and the main thread waits for that. */
const sliceMs: Record<Pace, number> = { tasks: 40, frames: 3 };
/** Of a page that nobody sees there are no frames. */
const frameMsMax = 100;

export interface DrawingClock {
  now(): number;
  /** Until what waits has had its turn, or the next frame begins. */
  rest(pace: Pace): Promise<void>;
}

export interface Drawing {
  /** False = `gone()` said in between that nobody wants the rest. */
  readonly isWhole: boolean;
  /** Without rests. */
  readonly busyMs: number;
}

/** `draw` of each, in order. What `draw` leaves to microtasks counts, too. */
export async function drawInSlices<T>(
  items: readonly T[], draw: (item: T) => void, gone: () => boolean, pace: Pace = "tasks",
  clock: DrawingClock = { now: () => performance.now(), rest },
): Promise<Drawing> {
  // An answer was read in this one.
  if (pace === "frames" && items.length > 0) await clock.rest(pace);
  let begun = clock.now();
  let busyMs = 0;
  for (const item of items) {
    if (clock.now() - begun >= sliceMs[pace]) {
      busyMs += clock.now() - begun;
      await clock.rest(pace);
      begun = clock.now();
    }
    if (gone()) return { isWhole: false, busyMs: busyMs + clock.now() - begun };
    draw(item);
    await null;
  }
  return { isWhole: true, busyMs: busyMs + clock.now() - begun };
}

function rest(pace: Pace): Promise<void> {
  return pace === "frames" ? nextFrame() : nextTask();
}

function nextFrame(): Promise<void> {
  return new Promise((done) => {
    const late = setTimeout(done, frameMsMax);
    requestAnimationFrame(() => {
      clearTimeout(late);
      done();
    });
  });
}

/** Of newer browsers: a task before the next frame, which would have half of the charts painted first; what a person does still comes
 *  before it. */
interface TaskScheduler {
  postTask(task: () => void, options: { priority: "user-blocking" }): Promise<void>;
}

/** A timer would wait for four milliseconds. */
function nextTask(): Promise<void> {
  const { scheduler } = globalThis as { scheduler?: Partial<TaskScheduler> };
  return new Promise((done) => {
    if (scheduler?.postTask) {
      void scheduler.postTask(done, { priority: "user-blocking" });
      return;
    }
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      channel.port1.close();
      done();
    };
    channel.port2.postMessage(null);
  });
}
