#include "server/trace_merging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace stepwell {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// Bytes of traces, by number; of one the database fails. Nothing but parts is asked of it.
class PartsInMemory final : public TraceStore {
 public:
  absl::StatusOr<std::string> ReadPart(const TraceRecord& trace, std::int64_t /*part*/) override {
    if (!failed.ok() && trace.trace_no == failing_no) return failed;
    return bytes.at(trace.trace_no);
  }
  absl::StatusOr<TraceRecord> Begin(std::int64_t, const TrialSelector&, const TrialFilter&,
                                    const StoredTraceHeader&) override {
    return absl::UnimplementedError("");
  }
  absl::Status Append(std::int64_t, TraceRecord&, std::string_view) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<TraceRecord> Delete(std::int64_t, const TrialSelector&, const ProjectFilter&,
                                     std::int32_t) override {
    return absl::UnimplementedError("");
  }
  absl::Status Discard(std::int64_t, const TraceRecord&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<TraceRecord> Find(const TrialSelector&, const ProjectFilter&,
                                   std::int32_t) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<TraceList> List(const TrialSelector&, const ProjectFilter&, std::int32_t,
                                 std::int32_t) override {
    return absl::UnimplementedError("");
  }

  std::map<std::int32_t, std::string> bytes;
  std::int32_t failing_no = 0;
  absl::Status failed;
};

class TraceMergingTest : public ::testing::Test {
 protected:
  void Keep(std::int32_t trace_no, const char* name, std::string bytes) {
    TraceRecord& trace = traces_.emplace_back();
    trace.trace_no = trace_no;
    trace.header.name = name;
    trace.header.byte_count = std::ssize(bytes);
    store_.bytes[trace_no] = std::move(bytes);
  }
  absl::StatusOr<PlacedTraces> Place(MergeSieve::Asked asked) {
    return PlaceTraces(store_, traces_, asked, MergeAlignment::kClock,
                       [] { return absl::OkStatus(); });
  }

  const std::string good_ = R"([{"ph":"X","name":"a","ts":10,"dur":5,"pid":1,"tid":1}])";
  PartsInMemory store_;
  std::vector<TraceRecord> traces_;
};

TEST_F(TraceMergingTest, OfAllWhatIsBadIsLeftOutAndOfThoseNamedItIsTheAnswer) {
  Keep(1, "rank0.json", good_);
  Keep(2, "nobodys.json", good_);
  Keep(3, "rank3.json.gz", std::string("\x1f\x8b\x08\x00 no gzip behind this", 24));
  Keep(5, "rank5.json", good_);
  const auto all = Place(MergeSieve::Asked::kAll);
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_THAT(all->placement.inputs(), SizeIs(2));
  EXPECT_EQ(all->placement.inputs(1).trace_no(), 5);
  EXPECT_THAT(all->by_label, SizeIs(2));
  ASSERT_THAT(all->placement.notes(), SizeIs(2));
  EXPECT_THAT(all->placement.notes(0), HasSubstr("trace 2 (nobodys.json): nothing tells its rank"));
  EXPECT_THAT(all->placement.notes(1), HasSubstr("trace 3 (rank3.json.gz): damaged gzip"));
  const auto these = Place(MergeSieve::Asked::kThese);
  EXPECT_TRUE(absl::IsInvalidArgument(these.status())) << these.status();
  EXPECT_THAT(std::string(these.status().message()), HasSubstr("trace 2 (nobodys.json)"));
}

TEST_F(TraceMergingTest, WhatTheDatabaseAnswersFailsAMergeOfAll) {
  Keep(1, "rank0.json", good_);
  Keep(2, "rank1.json", good_);
  store_.failing_no = 2;
  for (const absl::Status& failed : {absl::UnavailableError("no database"),
                                     absl::NotFoundError("it went"), absl::InternalError("SQL")}) {
    store_.failed = failed;
    EXPECT_EQ(Place(MergeSieve::Asked::kAll).status().code(), failed.code());
  }
}

TEST_F(TraceMergingTest, ANameThatSaysAnotherRankIsToldUnlessThatRankWasGiven) {
  Keep(1, "rank2.json", R"({"distributedInfo":{"rank":7},"traceEvents":[{"ph":"X","ts":1}]})");
  auto placed = Place(MergeSieve::Asked::kThese);
  ASSERT_TRUE(placed.ok()) << placed.status();
  ASSERT_THAT(placed->placement.notes(), SizeIs(1));
  EXPECT_THAT(placed->placement.notes(0),
              HasSubstr("trace 1 (rank2.json): its name says rank 2, the trace itself rank 7"));
  traces_[0].header.rank = 9;
  placed = Place(MergeSieve::Asked::kThese);
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_THAT(placed->placement.notes(), SizeIs(0));
  EXPECT_EQ(placed->placement.inputs(0).rank(), 9);
}

}  // namespace
}  // namespace stepwell
