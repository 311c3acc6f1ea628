// ThreadBarrier: one side of an agreement between a thread that is rare and threads that are hot.
// The hot ones store a flag and then load a word, without a fence; the rare one stores the word,
// calls OrderAllThreads, and then reads the flags: each hot thread has by then either shown its flag
// or will see the word.
#pragma once

namespace stepwell::recorder {

// Once per process image, before the first OrderAllThreads. May be called again.
void PrepareThreadBarrier();
// A full memory barrier on every thread of this process. Takes microseconds; 10 ms on kernels that
// cannot (before 4.14, or where a sandbox forbids it): no store waits that long in its core.
void OrderAllThreads();

}  // namespace stepwell::recorder
