// Lists of series by their bytes: what readers hold of them together is bounded, whatever labels a trial's series have, and
// who finds no room is told so.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/memory_room.h"
#include "server/rate_refusal.h"
#include "tests/contract/query/query_reads_fixture.h"

namespace stepwell {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kKiB = 1 << 10;

class SeriesListsTest : public QueryReadsTest {
 protected:
  // `count` of 2 KB each.
  void AddMany(int count) {
    std::vector<SeriesDefinition> definitions(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      definitions[static_cast<std::size_t>(i)].key = {
          i % 2 == 0 ? "even" : "odd",
          absl::StrCat("s", i),
          {{"long", std::string(1000, 'x')}, {"longer", std::string(1000, 'y')}}};
    }
    const auto numbers = ingest_->FindOrCreateSeries(trial_id_, definitions, 10'000);
    ASSERT_TRUE(numbers.ok()) << numbers.status();
  }
  v1::ListSeriesRequest List(std::int32_t page_size = 0) const {
    v1::ListSeriesRequest request;
    *request.mutable_trial() = Ref();
    request.set_page_size(page_size);
    return request;
  }
  v1::ReadSamplesRequest Samples(const std::string& group = "") const {
    v1::ReadSamplesRequest request;
    *request.mutable_trial() = Ref();
    request.mutable_selector()->set_metric_group(group);
    return request;
  }
  absl::Status Read(const QueryReads& reads, const v1::ReadSamplesRequest& request) {
    return reads.ReadSamples(request, Call(), [](const auto&) { return true; });
  }
  QueryReads With(MemoryRoom& room, PgReader& reader) {
    return QueryReads(QuerySources{.store = reader,
                                   .heads = heads_,
                                   .clock = RealClock::Get(),
                                   .liveness = liveness_,
                                   .owner_epoch = [] { return kEpoch; },
                                   .series_room = &room});
  }
};

TEST_F(SeriesListsTest, WhatFindsNoRoomIsToldToComeAgainAndGetsItLater) {
  OpenWriter("job");
  AddMany(60);
  MemoryRoom room(400 * kKiB);
  const QueryReads reads = With(room, reader_);
  {
    const MemoryRoom::Place others = room.Count(390 * kKiB);
    for (const absl::Status& refused :
         {Read(reads, Samples()), reads.ListSeries(List(), Call()).status()}) {
      EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
      EXPECT_THAT(std::string(refused.message()), HasSubstr("lists of series of other reads"));
      EXPECT_EQ(RetryDelayOf(refused), absl::Seconds(1));
    }
    EXPECT_EQ(room.bytes(), 390 * kKiB) << "nothing is left of what was refused";
  }
  EXPECT_TRUE(Read(reads, Samples()).ok());
  EXPECT_TRUE(reads.ListSeries(List(), Call()).ok());
  EXPECT_EQ(room.bytes(), 0);
}

// What is read of a trial for the first time is read whole, to be remembered, whatever is chosen of it.
TEST_F(SeriesListsTest, AListThatIsReadToBeRememberedTakesItsPlaceMeanwhile) {
  OpenWriter("job");
  AddMany(60);  // 126 KB
  MemoryRoom room(400 * kKiB);
  const QueryReads reads = With(room, reader_);
  const v1::ReadSamplesRequest none = Samples("none");
  {
    const MemoryRoom::Place others = room.Count(350 * kKiB);
    const absl::Status refused = Read(reads, none);
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
    EXPECT_EQ(RetryDelayOf(refused), absl::Seconds(1));
    EXPECT_EQ(room.bytes(), 350 * kKiB) << "nothing is left of what was refused";
  }
  EXPECT_TRUE(Read(reads, none).ok());
  EXPECT_EQ(room.bytes(), 0) << "it is remembered, and nobody's place any more";
  const MemoryRoom::Place others = room.Count(399 * kKiB);
  EXPECT_TRUE(Read(reads, none).ok()) << "and takes none when it is looked at again";
}

TEST_F(SeriesListsTest, WhereThereIsNoRoomForAllTheFewThatAreChosenAreReadAlone) {
  OpenWriter("job");
  AddMany(1500);  // 3 MB
  MemoryRoom room(2048 * kKiB);
  const QueryReads reads = With(room, reader_);
  const MemoryRoom::Place others = room.Count(1024 * kKiB);
  v1::ReadSamplesRequest one = Samples();
  one.mutable_selector()->set_name("s1499");
  EXPECT_TRUE(Read(reads, one).ok());
  EXPECT_EQ(room.bytes(), 1024 * kKiB);
  EXPECT_EQ(Read(reads, Samples()).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(SeriesListsTest, NewestValuesTakeAPlaceForTheListThatTheyReadWithTheBook) {
  const auto owner = ingest_->AcquireOwnership({.master_id = "ours", .address = "here"});
  ASSERT_TRUE(owner.ok() && owner->epoch == kEpoch) << owner.status();
  Feed feed = OpenWriter("job");
  AddMany(60);
  TickTable table;
  table.tick_group = 1;
  table.times_us = {kStartUs};
  table.batches = {-1};
  table.columns.push_back({.series_no = SeriesNo{1}, .values = {1}, .presence = {}});
  Commit(feed, {std::move(table)}, kStartUs);
  MemoryRoom room(400 * kKiB);
  v1::LatestValuesRequest request;
  request.mutable_trial()->set_trial_id(Value(trial_id_));
  // From rows, which are asked once; then by the book, by one who does not remember it.
  ASSERT_TRUE(With(room, reader_).LatestValues(request, Call()).ok());
  PgReader fresh({.url = url_});
  const QueryReads reads = With(room, fresh);
  {
    const MemoryRoom::Place others = room.Count(350 * kKiB);
    const absl::Status refused = reads.LatestValues(request, Call()).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
    EXPECT_EQ(room.bytes(), 350 * kKiB);
  }
  const auto answer = reads.LatestValues(request, Call());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(room.bytes(), 0);
}

// As of other reads.
TEST_F(SeriesListsTest, NewestValuesOfTheFewThatAreChosenAreToldWhereThereIsNoRoomForAll) {
  const auto owner = ingest_->AcquireOwnership({.master_id = "ours", .address = "here"});
  ASSERT_TRUE(owner.ok() && owner->epoch == kEpoch) << owner.status();
  Feed feed = OpenWriter("job");
  AddMany(1500);  // 3 MB
  TickTable table;
  table.tick_group = 1;
  table.times_us = {kStartUs};
  table.batches = {-1};
  table.columns.push_back({.series_no = SeriesNo{1500}, .values = {1}, .presence = {}});
  Commit(feed, {std::move(table)}, kStartUs);
  MemoryRoom room(2048 * kKiB);
  v1::LatestValuesRequest request;
  request.mutable_trial()->set_trial_id(Value(trial_id_));
  request.mutable_selector()->set_name("s1499");
  const MemoryRoom::Place others = room.Count(1024 * kKiB);
  // From rows first, which are asked once.
  for (int i = 0; i < 2; ++i) {
    const auto answer = With(room, reader_).LatestValues(request, Call());
    ASSERT_TRUE(answer.ok()) << i << ": " << answer.status();
    EXPECT_EQ(answer->values_size(), 1);
  }
  EXPECT_EQ(room.bytes(), 1024 * kKiB);
}

TEST_F(SeriesListsTest, WhatIsLargerThanAnyListMayBeIsRefusedWithTheRemedy) {
  OpenWriter("job");
  AddMany(60);
  // Beside what is remembered, and where that is too large to be remembered.
  for (const std::size_t remembered_bytes : {std::size_t{30} << 20, std::size_t{64} << 10}) {
    SCOPED_TRACE(remembered_bytes);
    PgReader reader({.url = url_, .memory = {.series_bytes_max = remembered_bytes}});
    MemoryRoom room(32 * kKiB);
    const QueryReads reads = With(room, reader);
    const absl::Status refused = Read(reads, Samples());
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("narrow the selector"));
    EXPECT_EQ(RetryDelayOf(refused), std::nullopt);
    EXPECT_EQ(room.bytes(), 0);
  }
}

TEST_F(SeriesListsTest, PagesEndWhereTheyAreLargeAndGoOnThere) {
  OpenWriter("job");
  constexpr int kCount = 2500;  // 5 MB
  AddMany(kCount);
  std::vector<std::int32_t> numbers;
  int page_count = 0;
  for (v1::ListSeriesRequest request = List(10'000);;) {
    ++page_count;
    const auto page = reads_.ListSeries(request, Call());
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_LT(page->ByteSizeLong(), 4U << 20) << "what gRPC takes by default";
    for (const auto& series : page->series()) numbers.push_back(series.series_no());
    if (page->next_page_token().empty()) break;
    request.set_page_token(page->next_page_token());
  }
  EXPECT_GE(page_count, 2);
  ASSERT_EQ(numbers.size(), static_cast<std::size_t>(kCount));
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(numbers[static_cast<std::size_t>(i)], i + 1);
}

// Charts, samples and newest values of a trial whose list is too large to be remembered are those of one that is.
TEST_F(SeriesListsTest, AListThatIsNotRememberedChoosesTheSame) {
  Feed feed = OpenWriter("job");
  AddMany(60);
  TickTable table;
  table.tick_group = 1;
  table.times_us = {kStartUs};
  table.batches = {-1};
  for (int i = 1; i <= 60; ++i) {
    table.columns.push_back({.series_no = SeriesNo{i}, .values = {1}, .presence = {}});
  }
  Commit(feed, {std::move(table)}, kStartUs);
  PgReader small({.url = url_, .memory = {.series_bytes_max = std::size_t{64} << 10}});
  MemoryRoom room(1024 * kKiB);
  for (PgReader* reader : {&reader_, &small}) {
    const QueryReads reads = With(room, *reader);
    for (int again = 0; again < 2; ++again) {
      v1::QueryBucketsRequest request;
      *request.mutable_trial() = Ref();
      request.mutable_time_range()->set_start_time_us(kStartUs - 1);
      request.mutable_time_range()->set_end_time_us(kStartUs + 1);
      request.set_max_buckets(10);
      request.add_selectors()->set_metric_group("odd");
      const auto answer = reads.QueryBuckets(request, Call());
      ASSERT_TRUE(answer.ok()) << answer.status();
      EXPECT_EQ(answer->series_size(), 30);
    }
  }
  EXPECT_EQ(room.bytes(), 0);
}

}  // namespace
}  // namespace stepwell
