// The fuzzer of tests/fuzz/hostile_spool.h: build/fuzz/bin/spool_fuzz tests/fuzz/spool
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/hostile_spool.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepwell::testing::ReadHostileSpool({reinterpret_cast<const char*>(data), size});
  return 0;
}
