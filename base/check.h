// STEPWELL_CHECK: our own mistakes abort, in every build. Bad input never comes here; it returns a
// status.
#pragma once

#include <cstdio>
#include <cstdlib>

#define STEPWELL_CHECK(condition)                                                        \
  do {                                                                                   \
    if (!(condition)) [[unlikely]] {                                                     \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)
