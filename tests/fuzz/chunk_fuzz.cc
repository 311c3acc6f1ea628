// The fuzzer of tests/fuzz/hostile_chunk.h: build/fuzz/bin/chunk_fuzz tests/fuzz/chunk
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/hostile_chunk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepwell::testing::ReadHostileChunk({reinterpret_cast<const char*>(data), size});
  return 0;
}
