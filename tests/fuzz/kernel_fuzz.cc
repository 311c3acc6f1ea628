// The fuzzer of tests/fuzz/hostile_kernel.h: build/fuzz/bin/kernel_fuzz tests/fuzz/kernel
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/hostile_kernel.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepwell::testing::ReadHostileKernel({reinterpret_cast<const char*>(data), size});
  return 0;
}
