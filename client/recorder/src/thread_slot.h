// The one thread-local word pair of this library. initial-exec, so that reaching it is two loads in
// a shared library too; 16 bytes fit the room that the loader keeps for late comers.
#pragma once

#include "client/recorder/src/runtime.h"

namespace stepwell::recorder {

extern thread_local constinit ThreadSlot thread_slot __attribute__((tls_model("initial-exec")));

}  // namespace stepwell::recorder
