// `stepwell serve`: the master as a process. Signals, exit status, and what a person reads.
#pragma once

namespace stepwell {

// argv[0] is "serve". Returns the exit status: 0 stopped as asked, 64 wrong use, 70 internal, 78
// something must be put right first.
int ServeMain(int argc, char** argv);

}  // namespace stepwell
