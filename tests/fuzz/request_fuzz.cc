// The fuzzer of what the HTTP port is sent: build/fuzz/bin/request_fuzz tests/fuzz/request
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/hostile_request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepwell::testing::ReadHostileRequest({reinterpret_cast<const char*>(data), size});
  return 0;
}
