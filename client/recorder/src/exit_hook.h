// ExitHook: what is called as the process exits.
//
// Invariant: asking for it takes a tenth of a second at most, as long as there is a thread to be had. A child that was forked while another thread of its
// parent was within libc's atexit (a function's static object that has a destructor is enough) finds the lock of that list held
// for ever, for glibc sets it free in no child. exit() hangs there, with us or without; _exit, by which forked workers end,
// does not, and neither does an open.
#pragma once

namespace stepwell::recorder {

// False: there is no memory for it. Thread-safe.
bool CallAtExit(void (*handler)());

}  // namespace stepwell::recorder
