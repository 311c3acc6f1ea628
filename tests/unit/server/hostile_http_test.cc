// What the fuzzer of HTTP's door began with, in every run, and mutations of it.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/hostile_http.h"
#include "tests/fuzz/mutated.h"
#include "tests/support/places/places.h"
#include "tests/unit/server/test_seed.h"

namespace stepwell {
namespace {

// They end the process where something does not hold.
TEST(HostileHttpTest, HoldsWhatTheFuzzerBeganWith) {
  const std::vector<std::string> inputs = testing::Corpus(SourcePlace("tests/fuzz/http"));
  ASSERT_GE(inputs.size(), 6U);
  for (const std::string& input : inputs) testing::ReadHostileHttp(input);
}

TEST(HostileHttpTest, HoldsMutationsOfIt) {
  std::mt19937_64 random(TestSeed());
  const std::vector<std::string> inputs = testing::Corpus(SourcePlace("tests/fuzz/http"));
  for (int i = 0; i < 2000; ++i) {
    testing::ReadHostileHttp(testing::Mutated(random, inputs[random() % inputs.size()]));
  }
}

}  // namespace
}  // namespace stepwell
