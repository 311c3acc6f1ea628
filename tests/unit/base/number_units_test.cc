#include "base/number_units.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

TEST(NumberUnitsTest, BytesAreReadAsPeopleWriteThem) {
  const struct {
    const char* text;
    std::int64_t bytes;
  } rows[] = {{"0", 0},
              {"4096", 4096},
              {"64MiB", INT64_C(64) << 20},
              {"1.5GiB", INT64_C(3) << 29},
              {"1kB", 1000},
              {"9223372036854775807", INT64_MAX}};
  for (const auto& row : rows) EXPECT_EQ(ParseByteCount(row.text), row.bytes) << row.text;
  for (const char* text :
       {"", "GiB", "1gib", "1 GiB", "1GiB1B", "-1", "1.5B", "1..5kB", "9223372036854775808"}) {
    EXPECT_EQ(ParseByteCount(text), std::nullopt) << text;
  }
}

TEST(NumberUnitsTest, BytesAreSaidInTheirLargestWholeUnit) {
  EXPECT_EQ(ByteCountText(0), "0");
  EXPECT_EQ(ByteCountText(1 << 16), "64KiB");
  EXPECT_EQ(ByteCountText(INT64_C(4) << 30), "4GiB");
  EXPECT_EQ(ByteCountText(1'500'000'000), "1500MB");
  EXPECT_EQ(ByteCountText(7), "7B");
}

}  // namespace
}  // namespace stepwell
