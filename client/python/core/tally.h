// Tally: what the steps of the run consisted of, for the lines at its end, which need no master.
// One thread is counted, the first whose step is open. A step counts once it has ended. Needs the
// GIL.
#pragma once

#include <stdint.h>

#include "stepwell/recorder.h"

// The recorder's number of the thread whose step is open, 0 = none. Read by Tally_Add.
extern uint32_t tally_thread;

// The slow part of Tally_Add.
void Tally_AddPath(const stepwell_scope* scope, uint32_t path, stepwell_scope_id name,
                   uint64_t took_ns);
// A scope ended: `scope` as it began, of `path`, which its end forgets.
static inline void Tally_Add(const stepwell_scope* scope, uint32_t path, stepwell_scope_id name,
                             uint64_t took_ns) {
  if (took_ns != 0 && scope->thread == tally_thread) Tally_AddPath(scope, path, name, took_ns);
}

// What was added since the last call lay in a step that took so long.
void Tally_EndStep(uint64_t step_ns);
// ... in none.
void Tally_DropStep(void);

// (steps, their nanoseconds, [(path, nanoseconds, count), ...]), and begins anew: paths are
// numbered by the writer. NULL with an exception set.
PyObject* Tally_Take(void);
// What was added is another run's, or another process's.
void Tally_Reset(void);
