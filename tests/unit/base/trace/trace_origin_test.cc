#include "base/trace/trace_origin.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

TraceOrigin OriginOf(const std::vector<std::string>& events, const char* base = "0") {
  TraceScan scan;
  for (const std::string& event : events) scan.TakeEvent(event);
  scan.TakeMember("baseTimeNanoseconds", base);
  return scan.Finish();
}

TEST(TraceOrigin, ItsWindowHoldsAllEventsWhateverTheirOrder) {
  const struct {
    const char* what;
    std::vector<std::string> events;
    Interval holds;
  } rows[] = {
      {"one moment", {R"({"ph":"i","ts":5000,"pid":1})"}, {5'000'000, 5'000'000}},
      {"lengths", {R"({"ph":"X","ts":5000,"dur":70.25,"pid":1})"}, {5'000'000, 5'070'250}},
      {"an earlier one behind",
       {R"({"ph":"X","ts":5000,"dur":1})", R"({"ph":"X", "ts" : "4000.5", "dur":1})"},
       {4'000'500, 5'001'000}},
      {"a longer one in between",
       {R"({"ph":"X","ts":1,"dur":1})", R"({"ph":"X","ts":2,"dur":"9000"})",
        R"({"ph":"X","ts":3})"},
       {1'000, 9'002'000}},
      {"names that look like members",
       {R"({"ph":"X","name":"ts","ts":10,"dur":1})", R"({"ph":"X","name":"dur","ts":20,"dur":1})"},
       {10'000, 21'000}},
      {"metadata has no time",
       {R"({"ph":"X","ts":10})", R"({"ph":"M","name":"process_name","ts":999999})"},
       {10'000, 10'000}},
      {"before any start", {R"({"ph":"X","ts":-3.5})", R"({"ph":"X","ts":2})"}, {-3'500, 2'000}},
      {"an argument that comes first",
       {R"({"ph":"X","ts":10})", R"({"args":{"ts":7,"dur":9000},"dur":5,"ph":"X","ts":12})"},
       {10'000, 17'000}},
      {"exponents",
       {R"({"ph":"X","ts":1500})", R"({"ph":"X","ts":1.6e+03,"dur":2e3})"},
       {1'500'000, 3'600'000}},
      {"negative lengths", {R"({"ph":"X","ts":100,"dur":-90})"}, {100'000, 100'000}},
      {"a clock of its own, as some writers have for what is of no moment",
       {R"({"ph":"X","ts":1732200000000000})", R"({"ph":"X","ts":0})", R"({"ph":"X","ts":1e30})"},
       {1'732'200'000'000'000'000, 1'732'200'000'000'000'000}},
  };
  for (const auto& row : rows) {
    const TraceOrigin origin = OriginOf(row.events);
    ASSERT_TRUE(origin.first_time_ns.has_value()) << row.what;
    EXPECT_LE(origin.window.begin, row.holds.begin) << row.what;
    EXPECT_GE(origin.window.end, row.holds.end) << row.what;
    // Rounded outwards to a microsecond, or two.
    EXPECT_GE(origin.window.begin, row.holds.begin - 2'000) << row.what;
    EXPECT_LE(origin.window.end, row.holds.end + 3'000) << row.what;
  }
}

TEST(TraceOrigin, TheBaseIsPartOfTheWindow) {
  const TraceOrigin origin = OriginOf({R"({"ph":"X","ts":5,"dur":2})"}, "1732200000000000000");
  EXPECT_EQ(origin.first_time_ns, 1'732'200'000'000'005'000);
  EXPECT_LE(origin.window.begin, 1'732'200'000'000'005'000);
  EXPECT_GE(origin.window.end, 1'732'200'000'000'007'000);
}

TEST(TraceOrigin, AbsurdTimesOverflowNothing) {
  for (const char* ts :
       {"9223372036854775", "-9223372036854775", "9223372036854775807", "-9223372036854775808"}) {
    for (const char* base : {"0", "9223372036854775807", "-9223372036854775808"}) {
      const TraceOrigin origin =
          OriginOf({absl::StrCat(R"({"ph":"X","ts":)", ts, R"(,"dur":9223372036854775807})"),
                    R"({"ph":"X","ts":1,"dur":9223372036854775807})"},
                   base);
      if (!origin.first_time_ns.has_value()) continue;
      EXPECT_LE(origin.window.begin, *origin.first_time_ns);
      EXPECT_GE(origin.window.end, *origin.first_time_ns);
    }
  }
}

TEST(TraceOrigin, ItsMachineIsWhereItsAgentSaysAndCut) {
  const auto said = [](const std::string& machine) {
    return absl::StrCat(R"({"ph":"M","name":"machine","args":{"name":)", machine, "}}");
  };
  EXPECT_EQ(OriginOf({said("\"node-a\"")}).machine, "node-a");
  EXPECT_EQ(OriginOf({said("7")}).machine, "");
  EXPECT_LT(OriginOf({said("\"" + std::string(100'000, 'x') + "\"")}).machine.size(), 2000u);
  const TraceOrigin origin = OriginOf({said(R"("node-a","boot_id":"6ba7b810","writer":"x")")});
  EXPECT_EQ(origin.machine, "node-a");
  EXPECT_EQ(origin.boot_id, "6ba7b810");
  EXPECT_EQ(OriginOf({said(R"("node-a","boot_id":7)")}).boot_id, "");
  EXPECT_LT(
      OriginOf({said(R"("a","boot_id":")" + std::string(100'000, 'x') + "\"")}).boot_id.size(),
      2000u);
}

}  // namespace
}  // namespace stepwell
