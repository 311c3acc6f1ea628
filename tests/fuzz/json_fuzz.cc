// The fuzzer of tests/fuzz/hostile_json.h: build/fuzz/bin/json_fuzz tests/fuzz/json
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/hostile_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepwell::testing::ReadHostileJson({reinterpret_cast<const char*>(data), size});
  return 0;
}
