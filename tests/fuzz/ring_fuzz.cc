// The fuzzer of tests/fuzz/hostile_ring.h: build/fuzz/bin/ring_fuzz tests/fuzz/ring
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/hostile_ring.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepwell::testing::ReadHostileRing({reinterpret_cast<const char*>(data), size});
  return 0;
}
