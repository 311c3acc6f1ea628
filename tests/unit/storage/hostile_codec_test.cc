// What the fuzzer of the codec found, once more in every run, and mutations of it.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/fuzz/hostile_codec.h"
#include "tests/fuzz/made_up_inputs.h"
#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

std::vector<std::string> Corpus() {
  std::vector<std::string> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(STEPWELL_FUZZ_CORPUS)) {
    std::ifstream file(entry.path(), std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

std::string Mutated(std::mt19937_64& random, std::string input) {
  for (std::uint64_t times = 1 + random() % 4; times > 0; --times) {
    const std::size_t at = input.empty() ? 0 : random() % input.size();
    switch (random() % 4) {
      case 0:
        input.resize(at);
        break;
      case 1:
        input.insert(at, 1 + random() % 9, static_cast<char>(random()));
        break;
      case 2:
        input.erase(at, 1 + random() % 9);
        break;
      default:
        if (!input.empty()) input[at] = static_cast<char>(random());
    }
  }
  return input;
}

// It ends the process where something does not hold.
TEST(HostileCodecTest, HoldsWhatTheFuzzerFound) {
  const std::vector<std::string> inputs = Corpus();
  ASSERT_GE(inputs.size(), 100U) << STEPWELL_FUZZ_CORPUS;
  for (const std::string& input : inputs) testing::ReadHostileCodec(input);
}

TEST(HostileCodecTest, HoldsMutationsOfIt) {
  std::mt19937_64 random(testing::TestSeed());
  const std::vector<std::string> inputs = Corpus();
  for (int i = 0; i < 8000; ++i) {
    testing::ReadHostileCodec(Mutated(random, inputs[random() % inputs.size()]));
  }
}

TEST(HostileCodecTest, HoldsRowsThatAreDamagedALittle) {
  std::mt19937_64 random(testing::TestSeed());
  for (int i = 0; i < 8000; ++i) testing::ReadHostileCodec(testing::MadeUpInput(random));
}

}  // namespace
}  // namespace stepwell
