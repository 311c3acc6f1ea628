#include "storage/dictionary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <set>
#include <vector>

#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

// Of few words or of many, each once or in runs.
TEST(DictionaryTest, HoldsEachWordOnceAndEachSamplesPlace) {
  std::mt19937_64 random(testing::TestSeed());
  int refused = 0;
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::int64_t> some(1 + random() % (round % 2 == 0 ? 9 : 100));
    for (std::int64_t& word : some) word = static_cast<std::int64_t>(random() << random() % 64);
    // Behind a long run it may have many words all the same.
    std::vector<std::int64_t> samples(round % 3 == 0 ? 300 : 0, some[0]);
    for (std::size_t run_count = 1 + random() % 200; run_count > 0; --run_count) {
      samples.insert(samples.end(), random() % 2 == 0 ? 1 : 1 + random() % 9,
                     some[random() % some.size()]);
    }
    const std::set<std::int64_t> words(samples.begin(), samples.end());
    EXPECT_FALSE(BuildDictionary(samples, words.size() - 1).has_value());
    const std::size_t limit = random() % (2 * some.size());
    const std::optional<Dictionary> dictionary = BuildDictionary(samples, limit);
    ASSERT_EQ(dictionary.has_value(), words.size() <= limit) << round;
    if (!dictionary) {
      ++refused;
      continue;
    }
    ASSERT_EQ(dictionary->words, std::vector<std::int64_t>(words.begin(), words.end()));
    ASSERT_EQ(dictionary->indexes.size(), samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i) {
      ASSERT_EQ(dictionary->words[dictionary->indexes[i]], samples[i]) << round;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace stepwell
