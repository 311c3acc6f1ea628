// Capture: steps of which a native profiler is wanted (stepwell capture --native). It looks where steps begin and end, which
// costs one load while nothing is wanted, and tells a function of the package's. Needs the GIL.
#pragma once

#include <Python.h>
#include <stdint.h>

#include "stepwell/recorder.h"

enum {
  kCaptureStepEnds = 0,    // the step that is open is about to end
  kCaptureStepBegan = 1,   // the next one is open
  kCaptureLoopIsLeft = 2,  // what comes lies in no step
};

// As the function said last that there is nothing to do; Private.
extern uint32_t capture_settled;

// The function is asked at the next moments, too, while it says so.
void Capture_Ask(int32_t upcoming, int moment);
// `upcoming`: the next batch.
static inline void Capture_Tend(int32_t upcoming, int moment) {
  const uint32_t request = __atomic_load_n(&stepwell_capture_request, __ATOMIC_RELAXED);
  if (request != capture_settled) Capture_Ask(upcoming, moment);
}

// capture_by(function): function(upcoming, moment) says whether it wants the next moment, too; None = nobody looks.
PyObject* Capture_By(PyObject* module, PyObject* function);
// capture_wanted() -> (request, first_batch, step_count); request 0 = none.
PyObject* Capture_Wanted(PyObject* module, PyObject* ignored);
// capture_answer(request, outcome, step_count)
PyObject* Capture_Answer(PyObject* module, PyObject* args);
// In a forked child: its parent's profiler is none of its own.
void Capture_AfterFork(void);
