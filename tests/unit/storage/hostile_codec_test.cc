// What the fuzzer of the codec found, once more in every run, and mutations of it.
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/fuzz/hostile_codec.h"
#include "tests/fuzz/made_up_inputs.h"
#include "tests/fuzz/mutated.h"
#include "tests/support/codec_vectors.h"
#include "tests/support/places/places.h"

namespace stepwell {
namespace {

std::vector<std::string> Corpus() { return testing::Corpus(SourcePlace("tests/fuzz/codec")); }

// It ends the process where something does not hold.
TEST(HostileCodecTest, HoldsWhatTheFuzzerFound) {
  const std::vector<std::string> inputs = Corpus();
  ASSERT_GE(inputs.size(), 100U);
  for (const std::string& input : inputs) testing::ReadHostileCodec(input);
}

TEST(HostileCodecTest, HoldsMutationsOfIt) {
  std::mt19937_64 random(testing::TestSeed());
  const std::vector<std::string> inputs = Corpus();
  for (int i = 0; i < 8000; ++i) {
    testing::ReadHostileCodec(testing::Mutated(random, inputs[random() % inputs.size()]));
  }
}

TEST(HostileCodecTest, HoldsRowsThatAreDamagedALittle) {
  std::mt19937_64 random(testing::TestSeed());
  for (int i = 0; i < 8000; ++i) testing::ReadHostileCodec(testing::MadeUpInput(random));
}

}  // namespace
}  // namespace stepwell
