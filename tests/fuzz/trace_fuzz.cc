// The fuzzer of traces in Perfetto's form: build/fuzz/bin/trace_fuzz tests/fuzz/trace
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/hostile_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepwell::testing::ReadHostileTrace({reinterpret_cast<const char*>(data), size});
  return 0;
}
