// The fuzzer of tests/fuzz/hostile_words.h: build/fuzz/bin/words_fuzz tests/fuzz/words
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/hostile_words.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepwell::testing::ReadHostileWords({reinterpret_cast<const char*>(data), size});
  return 0;
}
