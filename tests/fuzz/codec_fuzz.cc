// The fuzzer of the codec: build/fuzz/bin/codec_fuzz tests/fuzz/codec. docs/codec.md tells what it found.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>

#include "tests/fuzz/hostile_codec.h"
#include "tests/fuzz/made_up_inputs.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepwell::testing::ReadHostileCodec({reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t size_max);

// One in 16 begins anew, with rows that an encoder wrote.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t size_max, unsigned int seed) {
  if (seed % 16 != 0) return LLVMFuzzerMutate(data, size, size_max);
  std::mt19937_64 random(seed);
  const std::string made = stepwell::testing::MadeUpInput(random);
  const std::size_t count = std::min(made.size(), size_max);
  std::memcpy(data, made.data(), count);
  return count;
}
