// What the fuzzer of traces began with, in every run, and mutations of it.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/hostile_trace.h"
#include "tests/fuzz/mutated.h"
#include "tests/support/places/places.h"
#include "tests/unit/base/trace/test_seed.h"

namespace stepwell {
namespace {

// They end the process where something does not hold.
TEST(HostileTraceTest, HoldsWhatTheFuzzerBeganWith) {
  const std::vector<std::string> inputs = testing::Corpus(SourcePlace("tests/fuzz/trace"));
  ASSERT_GE(inputs.size(), 3U);
  std::size_t event_count = 0;
  for (const std::string& input : inputs) {
    testing::ReadHostileTrace(input);
    event_count += testing::ReadInPieces(input, input.size()).events.size();
  }
  EXPECT_GE(event_count, 6U) << "they reach what they were made for";
}

TEST(HostileTraceTest, HoldsMutationsOfIt) {
  std::mt19937_64 random(TestSeed());
  const std::vector<std::string> inputs = testing::Corpus(SourcePlace("tests/fuzz/trace"));
  for (int i = 0; i < 5000; ++i) {
    testing::ReadHostileTrace(testing::Mutated(random, inputs[random() % inputs.size()]));
  }
}

}  // namespace
}  // namespace stepwell
