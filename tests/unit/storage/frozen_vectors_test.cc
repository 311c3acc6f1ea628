// What an earlier release has stored is read as it was meant. Round trips would not see it: they begin with
// an encoder of today.
#include "tests/support/frozen_vectors.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <set>
#include <vector>

#include "storage/vector_codec.h"
#include "storage/wide.h"

namespace stepwell {
namespace {

TEST(FrozenVectorsTest, AreReadAsTheyWereWritten) {
  std::set<Form> forms;
  for (const testing::FrozenVector& frozen : testing::FrozenVectors()) {
    SCOPED_TRACE(frozen.name);
    forms.insert(frozen.encoded.form);
    for (const Lanes lanes : {Lanes::kOne, WidestLanes()}) {
      std::vector<double> values(frozen.words.size());
      std::vector<std::int64_t> integers(frozen.integers.size());
      if (!values.empty()) {
        const absl::Status decoded = DecodeValuesInto(frozen.encoded, values, lanes);
        ASSERT_TRUE(decoded.ok()) << decoded;
      } else {
        const absl::Status decoded = DecodeIntegersInto(frozen.encoded, integers, lanes);
        ASSERT_TRUE(decoded.ok()) << decoded;
      }
      for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(std::bit_cast<std::uint64_t>(values[i]), frozen.words[i]) << i;
      }
      EXPECT_EQ(integers, frozen.integers);
    }
  }
  EXPECT_EQ(forms, (std::set<Form>{Form{0}, Form{1}, Form{2}, Form{3}, Form{4}, Form{5}, Form{6}}));
}

}  // namespace
}  // namespace stepwell
