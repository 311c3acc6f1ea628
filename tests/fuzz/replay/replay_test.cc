// What each fuzzer began with and found, in every run, and mutations of it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/hostile_callers.h"
#include "tests/fuzz/hostile_chrome.h"
#include "tests/fuzz/hostile_chunk.h"
#include "tests/fuzz/hostile_json.h"
#include "tests/fuzz/hostile_kernel.h"
#include "tests/fuzz/hostile_notes.h"
#include "tests/fuzz/hostile_request.h"
#include "tests/fuzz/hostile_ring.h"
#include "tests/fuzz/hostile_spool.h"
#include "tests/fuzz/hostile_words.h"
#include "tests/fuzz/mutated.h"
#include "tests/support/places/places.h"

namespace stepwell {
namespace {

struct Row {
  const char* noun;
  // Ends the process where something does not hold.
  void (*read)(std::string_view bytes);
  std::size_t input_count_min;
  int mutation_count;
};

const Row kRows[] = {
    {"spool", testing::ReadHostileSpool, 8, 5000},
    {"ring", testing::ReadHostileRing, 8, 20000},
    {"chunk", testing::ReadHostileChunk, 8, 5000},
    {"json", testing::ReadHostileJson, 6, 10000},
    {"words", testing::ReadHostileWords, 20, 20000},
    {"kernel", testing::ReadHostileKernel, 6, 1000},
    {"chrome", testing::ReadHostileChrome, 20, 5000},
    {"callers", testing::ReadHostileCallers, 20, 5000},
    {"notes", testing::ReadHostileNotes, 12, 500},
    {"request", testing::ReadHostileRequest, 16, 2000},
};

std::uint64_t Seed() {
  const char* given = std::getenv("STEPWELL_TEST_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "STEPWELL_TEST_SEED=" << seed << std::endl;
  return seed;
}

class FuzzCorpusTest : public ::testing::TestWithParam<Row> {
 protected:
  const std::vector<std::string> inputs_ =
      testing::Corpus(SourcePlace(std::string("tests/fuzz/") + GetParam().noun));
};

TEST_P(FuzzCorpusTest, HoldsWhatTheFuzzerBeganWith) {
  ASSERT_GE(inputs_.size(), GetParam().input_count_min);
  for (const std::string& input : inputs_) GetParam().read(input);
}

TEST_P(FuzzCorpusTest, HoldsMutationsOfIt) {
  std::mt19937_64 random(Seed());
  for (int i = 0; i < GetParam().mutation_count; ++i) {
    GetParam().read(testing::Mutated(random, inputs_[random() % inputs_.size()]));
  }
}

INSTANTIATE_TEST_SUITE_P(Fuzzers, FuzzCorpusTest, ::testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.noun); });

}  // namespace
}  // namespace stepwell
