#include "server/page_token.h"

#include <gtest/gtest.h>

#include "server/sample_cursor.h"

namespace stepwell {
namespace {

TEST(PageTokenTest, BringsItsPlaceBack) {
  const std::uint32_t query = QueryFingerprint({"series", "7", ""});
  const std::string token = MakePageToken(query, {INT64_MIN, 0, INT64_MAX});
  const auto place = ReadPageToken("page_token", token, query, 3);
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(*place, (std::vector<std::int64_t>{INT64_MIN, 0, INT64_MAX}));
}

TEST(PageTokenTest, RefusesWhatIsNotItsOwn) {
  const std::uint32_t query = QueryFingerprint({"series", "7"});
  const std::string token = MakePageToken(query, {42});
  std::string changed = token;
  changed[3] = changed[3] == 'A' ? 'B' : 'A';
  struct Row {
    std::string name, token;
    std::uint32_t query;
    std::size_t number_count;
    std::string says;
  };
  const Row rows[] = {
      {"another query", token, QueryFingerprint({"series", "8"}), 1, "belongs to another query"},
      {"another kind", token, query, 2, "belongs to another query"},
      {"changed", changed, query, 1, "no token of ours"},
      {"cut", token.substr(0, token.size() - 2), query, 1, "no token of ours"},
      {"text", "hello world!", query, 1, "no token of ours"},
      {"short", "AAAA", query, 1, "no token of ours"},
      {"huge", std::string(100'000, 'A'), query, 1, "no token of ours"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const auto place = ReadPageToken("page_token", row.token, row.query, row.number_count);
    ASSERT_EQ(place.status().code(), absl::StatusCode::kInvalidArgument);
    const std::string message(place.status().message());
    EXPECT_NE(message.find("page_token: "), std::string::npos) << message;
    EXPECT_NE(message.find(row.says), std::string::npos) << message;
    EXPECT_NE(message.find("allowed:"), std::string::npos) << message;
  }
}

TEST(PageTokenTest, FieldsDoNotRunIntoEachOther) {
  EXPECT_NE(QueryFingerprint({"ab", "c"}), QueryFingerprint({"a", "bc"}));
}

TEST(SampleCursorTest, CountsSamplesOfOneTime) {
  SampleCursor cursor;
  cursor.Pass(SeriesNo{1}, 100);
  cursor.Pass(SeriesNo{1}, 100);
  EXPECT_EQ(cursor.taken_count, 2);
  cursor.Pass(SeriesNo{1}, 101);
  EXPECT_EQ(cursor.taken_count, 1);
  cursor.Pass(SeriesNo{2}, 101);
  const auto read = SampleCursor::FromText(cursor.ToText(9), 9);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->series_no, SeriesNo{2});
  EXPECT_EQ(read->time_us, 101);
  EXPECT_EQ(read->taken_count, 1);
  EXPECT_FALSE(SampleCursor::FromText(cursor.ToText(9), 8).ok());
  EXPECT_EQ(SampleCursor::FromText("", 9)->series_no, SeriesNo{0});
}

}  // namespace
}  // namespace stepwell
