// The fuzzer of HTTP's door: build/fuzz/bin/http_fuzz tests/fuzz/http
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/hostile_http.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepwell::testing::ReadHostileHttp({reinterpret_cast<const char*>(data), size});
  return 0;
}
