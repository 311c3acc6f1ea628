// The fuzzer of traces in Chrome's form and of gzip: build/fuzz/bin/chrome_fuzz tests/fuzz/chrome
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/hostile_chrome.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepwell::testing::ReadHostileChrome({reinterpret_cast<const char*>(data), size});
  return 0;
}
