#include "storage/series_labels.h"

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"

namespace stepwell {
namespace {

TEST(SeriesLabelsTest, WritesJson) {
  EXPECT_EQ(LabelsJson({}), "{}");
  EXPECT_EQ(LabelsJson({{"a", "1"}, {"b", ""}}), R"({"a":"1","b":""})");
  EXPECT_EQ(LabelsJson({{"q\"", "\\\n\x01\xc3\xa9"}}),
            "{\"q\\\"\":\"\\\\\\u000a\\u0001\xc3\xa9\"}");
}

TEST(SeriesLabelsTest, HashesNamesAndValuesApart) {
  EXPECT_EQ(LabelsHash({}).size(), 16u);
  // SHA-256 of "a", NUL, "1", NUL.
  EXPECT_EQ(absl::BytesToHexString(LabelsHash({{"a", "1"}})), "8bf19097aa1a235b67bc19aeb9077018");
  EXPECT_NE(LabelsHash({{"a", "b"}}), LabelsHash({{"ab", ""}}));
  EXPECT_NE(LabelsHash({{"a", "b"}, {"c", "d"}}), LabelsHash({{"a", "b"}}));
}

}  // namespace
}  // namespace stepwell
