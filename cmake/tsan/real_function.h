// RealFunction: what stands behind a function that an executable of the preset tsan takes the place of.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace stepwell::tsan {

// The next definition of `symbol`: that of the shared library. Ends the program if there is none.
inline void* RealFunction(const char* symbol) {
  void* found = dlsym(RTLD_NEXT, symbol);
  if (found == nullptr) {
    std::fprintf(stderr, "cmake/tsan: no %s in the shared libraries\n", symbol);
    std::abort();
  }
  return found;
}

}  // namespace stepwell::tsan
