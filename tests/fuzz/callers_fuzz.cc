// The fuzzer of certificates and addresses of callers: build/fuzz/bin/callers_fuzz tests/fuzz/callers
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/hostile_callers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepwell::testing::ReadHostileCallers({reinterpret_cast<const char*>(data), size});
  return 0;
}
