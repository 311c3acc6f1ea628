#include "base/trace/merge_sieve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kGood[] = R"([{"ph":"X","name":"a","ts":10,"dur":5,"pid":1,"tid":1}])";
const std::string kDamaged("\x1f\x8b\x08\x00 this is no gzip", 20);

TraceSource SourceOf(std::string bytes, absl::Status sent = absl::OkStatus()) {
  return [bytes = std::move(bytes), sent](const TakeBytes& take) {
    const absl::Status taken = take(bytes);
    return taken.ok() ? sent : taken;
  };
}

MergeInput Labelled(int no, std::optional<std::int32_t> rank) {
  MergeInput input;
  input.label = absl::StrCat("trace ", no, " (t", no, ".json)");
  input.rank = rank;
  return input;
}

TEST(MergeSieve, OfAllWhatCannotBeUnpackedOrPlacedIsLeftOutAndTold) {
  const struct {
    std::string bytes;
    std::optional<std::int32_t> rank;
    const char* says;
  } rows[] = {
      {kDamaged, 2, "damaged gzip"},
      {"hello", 2, "this is no Chrome trace"},
      {"[]", 2, "it has no event with a time"},
      {kGood, std::nullopt, "nothing tells its rank"},
      {R"([{"ph":"X","ts":8000000000000000}])", 2, "its times are absurd"},
      {R"({"traceEvents":[{"ph":"X","ts":1}],"clock_sync_timestamp_us":-9e15})", 2,
       "its clock_sync_timestamp_us is absurd"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.says);
    MergeSieve all(MergeSieve::Asked::kAll, MergeAlignment::kClock);
    MergeInput good = Labelled(1, 0);
    const auto taken = all.Scan(SourceOf(kGood), good);
    ASSERT_TRUE(taken.ok()) << taken.status();
    EXPECT_TRUE(taken->has_value());
    MergeInput bad = Labelled(2, row.rank);
    const auto left_out = all.Scan(SourceOf(row.bytes), bad);
    ASSERT_TRUE(left_out.ok()) << left_out.status();
    EXPECT_FALSE(left_out->has_value());
    const auto plan = std::move(all).Plan({good});
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_THAT(plan->notes, SizeIs(1));
    EXPECT_EQ(plan->notes[0].rfind("trace 2 (t2.json): ", 0), 0u) << plan->notes[0];
    EXPECT_THAT(plan->notes[0], HasSubstr(row.says));
    EXPECT_THAT(plan->notes[0], HasSubstr("; left out"));

    // Who names it wants it.
    MergeSieve these(MergeSieve::Asked::kThese, MergeAlignment::kClock);
    const auto refused = these.Scan(SourceOf(row.bytes), bad);
    EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr(row.says));
  }
}

TEST(MergeSieve, WhoSendsFailsTheMergeAndOtherBytesAreTheTraces) {
  MergeSieve sieve(MergeSieve::Asked::kAll, MergeAlignment::kClock);
  MergeInput input = Labelled(1, 0);
  for (const absl::Status& sent :
       {absl::UnavailableError("no database"), absl::NotFoundError("it went"),
        absl::InvalidArgumentError("no such trial"), absl::CancelledError("gone")}) {
    const auto failed = sieve.Scan(SourceOf(kGood, sent), input);
    EXPECT_EQ(failed.status().code(), sent.code()) << failed.status();
  }
  const auto other = sieve.Scan(SourceOf(kGood, absl::DataLossError("not the bytes")), input);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_FALSE(other->has_value());
}

TEST(MergeSieve, IfNothingIsLeftTheFirstFailureIsTheAnswer) {
  MergeSieve sieve(MergeSieve::Asked::kAll, MergeAlignment::kClock);
  MergeInput first = Labelled(1, 0), second = Labelled(2, 0);
  EXPECT_TRUE(sieve.Scan(SourceOf("[]"), first).ok());
  EXPECT_TRUE(sieve.Scan(SourceOf(kDamaged), second).ok());
  const auto plan = std::move(sieve).Plan({});
  EXPECT_TRUE(absl::IsInvalidArgument(plan.status()));
  EXPECT_THAT(std::string(plan.status().message()),
              HasSubstr("trace 1 (t1.json): it has no event"));
}

TEST(MergeSieve, OfThousandsTheFirstAreToldAndHowManyMore) {
  MergeSieve sieve(MergeSieve::Asked::kAll, MergeAlignment::kClock);
  MergeInput good = Labelled(0, 0);
  ASSERT_TRUE(sieve.Scan(SourceOf(kGood), good).ok());
  for (int i = 1; i <= 4000; ++i) {
    MergeInput bad = Labelled(i, 0);
    ASSERT_TRUE(sieve.Scan(SourceOf("[]"), bad).ok());
  }
  const auto plan = std::move(sieve).Plan({good});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_THAT(plan->notes, SizeIs(BoundedNotes::kNotesMax + 1));
  EXPECT_THAT(plan->notes[19], HasSubstr("trace 20 (t20.json)"));
  EXPECT_EQ(plan->notes[20], "3980 more traces are left out likewise");
}

}  // namespace
}  // namespace stepwell
