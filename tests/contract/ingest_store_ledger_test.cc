// What every IngestStore keeps beside the samples: gaps, trials, attempts, series.
#include "storage/ingest_store.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/contract/ingest_store_contract.h"

namespace stepwell {
namespace {

TEST_P(IngestStoreContract, CoalescesGapsThatGoOn) {
  const OpenedWriter writer = Open(Request("t"));
  for (std::uint64_t i = 1; i <= 30; ++i) {
    WriterAdvance advance = Advance(writer, i, i);
    advance.payload.clear();
    advance.gaps.push_back(GapOf(GapCause::kSpoolFull, i, i));
    Gap dropped;
    dropped.cause = GapCause::kRingFull;
    dropped.metric_group = i % 2 == 0 ? "timing" : "gpu";
    dropped.sample_count = 10;
    dropped.first_time_us = static_cast<std::int64_t>(i) * 1'000'000;
    dropped.last_time_us = dropped.first_time_us + 500'000;
    advance.gaps.push_back(dropped);
    ExpectOutcome(advance, AdvanceOutcome::kCommitted, i);
  }
  const std::vector<Gap> gaps = under_test_->Gaps(writer.trial_id);
  ASSERT_EQ(gaps.size(), 3u);
  EXPECT_EQ(gaps[0].first_sequence, 1u);
  EXPECT_EQ(gaps[0].last_sequence, 30u);
  EXPECT_EQ(gaps[0].sample_count, 30);
  EXPECT_EQ(gaps[0].writer_no, writer.writer_no);
  EXPECT_EQ(gaps[1].metric_group, "gpu");
  EXPECT_EQ(gaps[1].sample_count, 150);
  EXPECT_EQ(gaps[1].first_time_us, 1'000'000);
  EXPECT_EQ(gaps[1].last_time_us, 29'500'000);
  EXPECT_EQ(gaps[2].sample_count, 150);
}

TEST_P(IngestStoreContract, KeepsGapsApartThatAreNotOne) {
  const OpenedWriter writer = Open(Request("t"));
  WriterAdvance advance = Advance(writer, 1, 20);
  advance.gaps = {GapOf(GapCause::kRejected, 1, 2), GapOf(GapCause::kRejected, 5, 6),
                  GapOf(GapCause::kSpoolFull, 7, 8)};
  ExpectOutcome(advance, AdvanceOutcome::kCommitted, 20);
  EXPECT_EQ(under_test_->Gaps(writer.trial_id).size(), 3u);
}

TEST_P(IngestStoreContract, BoundsTheGapRowsOfAWriter) {
  const OpenedWriter writer = Open(Request("t"));
  std::uint64_t sequence = 1;
  for (int commit = 0; commit < 3; ++commit) {
    WriterAdvance advance = Advance(writer, sequence, sequence + 999);
    for (int i = 0; i < 500; ++i, sequence += 2) {
      advance.gaps.push_back(GapOf(GapCause::kRejected, sequence, sequence));
    }
    ExpectOutcome(advance, AdvanceOutcome::kCommitted, sequence - 1);
  }
  const std::vector<Gap> gaps = under_test_->Gaps(writer.trial_id);
  ASSERT_EQ(gaps.size(), static_cast<std::size_t>(kGapRowsMax));
  std::int64_t sample_count = 0;
  for (const Gap& gap : gaps) sample_count += gap.sample_count;
  EXPECT_EQ(sample_count, 1500);
  EXPECT_EQ(gaps.back().last_sequence, sequence - 2);
}

TEST_P(IngestStoreContract, TellsRejectionsAtOpenAndStoresNoneOfARepeat) {
  const OpenWriterRequest request = Request("t");
  const OpenedWriter writer = Open(request);
  WriterAdvance advance = Advance(writer, 1, 3);
  advance.gaps = {GapOf(GapCause::kRejected, 2, 2)};
  advance.gaps[0].reason = "SERIES_LIMIT";
  ExpectOutcome(advance, AdvanceOutcome::kCommitted, 3);
  ExpectOutcome(advance, AdvanceOutcome::kRepeat, 3);
  const OpenedWriter again = Open(request);
  ASSERT_EQ(again.rejections.size(), 1u);
  EXPECT_EQ(again.rejections[0].first_sequence, 2u);
  EXPECT_EQ(again.rejections[0].sample_count, 1);
  EXPECT_EQ(again.rejections[0].reason, "SERIES_LIMIT");
}

TEST_P(IngestStoreContract, NumbersTrialsByIdAndByName) {
  OpenWriterRequest by_id = Request("");
  by_id.trial.trial_id = 7;
  EXPECT_EQ(Open(by_id).trial_id, TrialId{7});
  by_id.trial.trial_id = 999'999'999;
  EXPECT_EQ(Open(by_id).trial_id, TrialId{999'999'999});
  const OpenedWriter named = Open(Request("name"));
  EXPECT_GE(Value(named.trial_id), 1'000'000'000);
  EXPECT_EQ(Open(Request("name")).trial_id, named.trial_id);
  OpenWriterRequest elsewhere = Request("name");
  elsewhere.trial.project = "other";
  EXPECT_NE(Open(elsewhere).trial_id, named.trial_id);
  by_id.trial.trial_id = Value(named.trial_id);
  EXPECT_EQ(Open(by_id).trial_id, named.trial_id);
  by_id.trial.trial_id = 2'000'000'000;
  EXPECT_EQ(store().OpenWriter(by_id).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(IngestStoreContract, LetsOnlyThoseThroughToWhichTheCallerMayAdd) {
  const ProjectFilter nowhere = std::vector<std::string>();
  OpenWriterRequest request = Request("run-7");
  request.trial.project = "speech";
  const auto denied = [&](const TrialFilter& trials) {
    request.trials = trials;
    request.writer = Uuid::Random();
    request.attempt_key = absl::StrCat("of ", request.writer.ToText());
    return store().OpenWriter(request).status();
  };
  const std::vector<TrialFilter> others = {
      nowhere,
      ProjectFilter(std::vector<std::string>{"vision"}),
      TrialFilter(nowhere, {{"vision", "run-7"}, {"speech", "run-8"}}, {}),
      TrialFilter(nowhere, {}, {7}),
      OpenWriterRequest().trials,
  };
  std::string words;
  for (const TrialFilter& trials : others) {
    const absl::Status status = denied(trials);
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
    words = std::string(status.message());
  }
  request.trials = TrialFilter(nowhere, {{"speech", "run-7"}}, {});
  const OpenedWriter made = Open(request);
  EXPECT_EQ(made.writer_no, WriterNo{1});
  EXPECT_EQ(made.attempt, 1);
  for (const TrialFilter& trials : others) EXPECT_EQ(denied(trials).message(), words);
  for (const TrialFilter& trials :
       {TrialFilter(ProjectFilter(std::vector<std::string>{"speech"})),
        TrialFilter(nowhere, {}, {Value(made.trial_id)}), TrialFilter(kAllProjects)}) {
    request.trials = trials;
    EXPECT_EQ(Open(request).trial_id, made.trial_id);
  }
  // Its number is another word for its name.
  request.trial = {.trial_id = Value(made.trial_id)};
  EXPECT_EQ(denied(others[2]).code(), absl::StatusCode::kPermissionDenied);
  request.trials = TrialFilter(nowhere, {{"speech", "run-7"}}, {});
  EXPECT_EQ(Open(request).trial_id, made.trial_id);
}

TEST_P(IngestStoreContract, MakesATrialByItsNumberWhereTheCallerMayAddToTheDefaultProject) {
  const ProjectFilter nowhere = std::vector<std::string>();
  OpenWriterRequest request = Request("");
  request.trial.trial_id = 7;
  for (const TrialFilter& trials : {TrialFilter(ProjectFilter(std::vector<std::string>{"vision"})),
                                    TrialFilter(nowhere, {{"default", ""}}, {8})}) {
    request.trials = trials;
    EXPECT_EQ(store().OpenWriter(request).status().code(), absl::StatusCode::kPermissionDenied);
  }
  request.trials = TrialFilter(nowhere, {}, {7});
  EXPECT_EQ(Open(request).writer_no, WriterNo{1});
  request.trial.trial_id = 9;
  request.trials = ProjectFilter(std::vector<std::string>{"default"});
  EXPECT_EQ(Open(request).trial_id, TrialId{9});
}

TEST_P(IngestStoreContract, RefusesATrialThatIsNotNamed) {
  OpenWriterRequest request = Request("");
  EXPECT_EQ(store().OpenWriter(request).status().code(), absl::StatusCode::kInvalidArgument);
  request.trial.trial_id = -1;
  EXPECT_EQ(store().OpenWriter(request).status().code(), absl::StatusCode::kInvalidArgument);
  request.trial = {.trial_id = 7, .external_id = "both"};
  EXPECT_EQ(store().OpenWriter(request).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(IngestStoreContract, AgentRule12_NumbersAttemptsByFirstSightOfTheirKey) {
  OpenWriterRequest request = Request("t");
  EXPECT_EQ(Open(request).attempt, 1);
  request.writer = Uuid::Random();
  request.attempt_key = "restarted";
  EXPECT_EQ(Open(request).attempt, 2);
  request.writer = Uuid::Random();
  request.attempt_key = "job";
  EXPECT_EQ(Open(request).attempt, 1);
  request.attempt_key = "restarted";
  EXPECT_EQ(Open(request).attempt, 1);  // a writer keeps its attempt
  request.writer = Uuid::Random();
  request.attempt_key.clear();
  request.is_sampler = true;
  EXPECT_EQ(Open(request).attempt, 2);  // the newest
  request.writer = Uuid::Random();
  request.is_sampler = false;
  EXPECT_EQ(Open(request).attempt, 3);  // a rank without key is an attempt of its own
  EXPECT_EQ(Open(request).attempt, 3);
}

TEST_P(IngestStoreContract, AgentRule12_GivesTheSamplersFirstAttemptToTheFirstKey) {
  OpenWriterRequest request = Request("t");
  request.attempt_key.clear();
  request.is_sampler = true;
  EXPECT_EQ(Open(request).attempt, 1);
  EXPECT_EQ(Open(Request("t")).attempt, 1);
  OpenWriterRequest other = Request("t");
  other.attempt_key = "other";
  EXPECT_EQ(Open(other).attempt, 2);
}

SeriesDefinition Definition(const std::string& name, Labels labels = {}) {
  SeriesDefinition definition;
  definition.key = {.metric_group = "gpu", .name = name, .labels = std::move(labels)};
  definition.unit = "percent";
  return definition;
}

TEST_P(IngestStoreContract, NumbersSeries) {
  const TrialId trial_id = Open(Request("t")).trial_id;
  const std::vector<SeriesDefinition> definitions = {
      Definition("util", {{"device", "a"}}), Definition("util", {{"device", "\"\\\n\xc3\xa9"}}),
      Definition("util", {{"device", "a"}}), Definition("memory")};
  const auto numbers = store().FindOrCreateSeries(trial_id, definitions, 10);
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ(*numbers, (std::vector{SeriesNo{1}, SeriesNo{2}, SeriesNo{1}, SeriesNo{3}}));
  const auto again =
      store().FindOrCreateSeries(trial_id, {Definition("memory"), Definition("x")}, 10);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, (std::vector{SeriesNo{3}, SeriesNo{4}}));
  EXPECT_TRUE(store().FindOrCreateSeries(trial_id, {}, 10)->empty());
  EXPECT_EQ(store().FindOrCreateSeries(TrialId{5}, {Definition("x")}, 10).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_P(IngestStoreContract, RefusesSeriesBeyondTheLimitAndWithAnotherUnit) {
  const TrialId trial_id = Open(Request("t")).trial_id;
  ASSERT_TRUE(store().FindOrCreateSeries(trial_id, {Definition("a"), Definition("b")}, 2).ok());
  EXPECT_EQ(*store().FindOrCreateSeries(trial_id, {Definition("c"), Definition("a")}, 2),
            (std::vector{SeriesNo{}, SeriesNo{1}}));
  // As many as there is room for; the same one twice takes it once, or not twice.
  EXPECT_EQ(
      *store().FindOrCreateSeries(
          trial_id,
          {Definition("c"), Definition("c"), Definition("e"), Definition("f"), Definition("e")}, 3),
      (std::vector{SeriesNo{3}, SeriesNo{3}, SeriesNo{}, SeriesNo{}, SeriesNo{}}));
  EXPECT_TRUE(store().FindOrCreateSeries(trial_id, {Definition("b")}, 2).ok());
  SeriesDefinition other_unit = Definition("a");
  other_unit.unit = "bytes";
  EXPECT_EQ(store().FindOrCreateSeries(trial_id, {other_unit}, 2).status().code(),
            absl::StatusCode::kInvalidArgument);
  SeriesDefinition other_kind = Definition("a");
  other_kind.kind = SeriesKind::kCounter;
  EXPECT_EQ(store().FindOrCreateSeries(trial_id, {Definition("g"), other_kind}, 9).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(*store().FindOrCreateSeries(trial_id, {Definition("d")}, 9),
            std::vector{SeriesNo{4}});  // nothing is left of what was refused
}

// A store may take them apart; the caller does not see it.
TEST_P(IngestStoreContract, NumbersManySeriesAtOnceAsFarAsThereIsRoom) {
  const TrialId trial_id = Open(Request("t")).trial_id;
  std::vector<SeriesDefinition> definitions;
  for (int i = 0; i < 2500; ++i) definitions.push_back(Definition(absl::StrCat("s", i)));
  for (int again = 0; again < 2; ++again) {
    const auto numbers = store().FindOrCreateSeries(trial_id, definitions, 2200);
    ASSERT_TRUE(numbers.ok()) << numbers.status();
    ASSERT_EQ(numbers->size(), 2500U);
    for (int i = 0; i < 2500; ++i) {
      ASSERT_EQ((*numbers)[static_cast<std::size_t>(i)], SeriesNo{i < 2200 ? i + 1 : 0}) << i;
    }
  }
}

TEST_P(IngestStoreContract, SurvivesRacesOfOpenAndSeries) {
  constexpr int kThreads = 4;
  std::vector<std::vector<SeriesNo>> numbers(kThreads);
  std::vector<OpenedWriter> opened(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      OpenWriterRequest request = Request("raced");
      request.trial.project = "raced";
      opened[i] = Open(request);
      std::vector<SeriesDefinition> definitions;
      for (int series = 0; series < 50; ++series) {
        definitions.push_back(Definition(absl::StrCat("s", (series + i * 10) % 50)));
      }
      const auto found = store().FindOrCreateSeries(opened[i].trial_id, definitions, 50);
      ASSERT_TRUE(found.ok()) << found.status();
      numbers[i] = *found;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kThreads; ++i) {
    EXPECT_EQ(opened[i].trial_id, opened[0].trial_id);
    EXPECT_EQ(opened[i].attempt, 1);
    for (int series = 0; series < 50; ++series) {
      EXPECT_EQ(numbers[i][series], numbers[0][(series + i * 10) % 50]);
    }
  }
}

TEST_P(IngestStoreContract, SetsTheStateOfATrial) {
  const OpenedWriter writer = Open(Request("t"));
  EXPECT_TRUE(store().SetTrialState(writer.trial_id, TrialState::kCompleted, kEpoch).ok());
  EXPECT_EQ(store().SetTrialState(TrialId{3}, TrialState::kLost, kEpoch).code(),
            absl::StatusCode::kNotFound);
}

TEST_P(IngestStoreContract, RemembersWhatWasAskedOfATrialsRecording) {
  const OpenWriterRequest request = Request("t");
  const OpenedWriter writer = Open(request);
  EXPECT_EQ(writer.profiling, TrialProfiling()) << "nobody asked";
  const TrialProfiling sparse{
      .on = true, .interval_us = 5'000'000, .metric_groups = {"gpu", "a group, \"quoted\"; é"}};
  const auto first = store().SetProfiling(writer.trial_id, sparse, kEpoch);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->revision, 1);
  EXPECT_EQ(first->interval_us, sparse.interval_us);
  EXPECT_EQ(first->metric_groups, sparse.metric_groups);
  const auto second = store().SetProfiling(writer.trial_id, {.on = false}, kEpoch);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(*second, (TrialProfiling{.revision = 2, .on = false})) << "replaced as a whole";
  under_test_->Restart();
  EXPECT_EQ(Open(request).profiling, *second);
  EXPECT_EQ(Open(Request("t")).profiling, *second);
  EXPECT_EQ(Open(Request("other")).profiling, TrialProfiling());
}

TEST_P(IngestStoreContract, SetsProfilingOfKnownTrialsAndForTheOwnerAlone) {
  const auto owner = store().AcquireOwnership({.master_id = "a", .address = "here"});
  ASSERT_TRUE(owner.ok()) << owner.status();
  OpenWriterRequest request = Request("t");
  request.owner_epoch = owner->epoch;
  const OpenedWriter writer = Open(request);
  EXPECT_EQ(store().SetProfiling(TrialId{3}, {}, owner->epoch).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(store().SetProfiling(writer.trial_id, {}, owner->epoch + 1).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(Open(request).profiling.revision, 0);
}

TEST_P(IngestStoreContract, TellsOfAllWritersWhatATrialsEndDependsOn) {
  constexpr int kWriters = 300;
  std::vector<OpenedWriter> writers;
  for (int i = 0; i < kWriters; ++i) writers.push_back(Open(Request("t")));
  Open(Request("another"));
  const auto close = [&](int first, int last, WriterState state) {
    std::vector<WriterAdvance> closes;
    for (int i = first; i < last; ++i) {
      closes.push_back(Advance(writers[static_cast<std::size_t>(i)], 1, 0));
      closes.back().closing = state;
      closes.back().payload.clear();
    }
    ASSERT_TRUE(Commit(std::move(closes)).ok());
  };
  const auto told = [&] { return *store().ReadTrialWriters(writers[0].trial_id); };
  EXPECT_EQ(told().open.size(), static_cast<std::size_t>(kWriters));
  EXPECT_FALSE(told().any_died);
  close(2, kWriters, WriterState::kClosed);
  EXPECT_EQ(told().open, (std::vector<WriterNo>{writers[0].writer_no, writers[1].writer_no}));
  close(0, 1, WriterState::kDied);
  EXPECT_EQ(told().open, std::vector<WriterNo>{writers[1].writer_no});
  EXPECT_TRUE(told().any_died);
  close(1, 2, WriterState::kClosed);
  EXPECT_TRUE(told().open.empty());
  EXPECT_TRUE(told().any_died);
}

TEST_P(IngestStoreContract, ATrialHasNoMoreWritersThanItMay) {
  OpenWriterRequest first = Request("t");
  first.writers_max = 2;
  OpenWriterRequest second = Request("t");
  second.writers_max = 2;
  const OpenedWriter opened = Open(first);
  Open(second);
  OpenWriterRequest third = Request("t");
  third.writers_max = 2;
  third.attempt_key = "another start";
  const absl::Status refused = store().OpenWriter(third).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(absl::StrContains(
      refused.message(),
      absl::StrCat("trial ", Value(opened.trial_id), " has had 2 writers; allowed are 2: ")))
      << refused;
  EXPECT_EQ(Open(first).generation, opened.generation + 1) << "one of them comes back";
  third.trial.external_id = "another";
  EXPECT_EQ(Open(third).writer_no, WriterNo{1});
}

TEST_P(IngestStoreContract, HasOneIncarnation) {
  const auto first = store().ReadIncarnation();
  ASSERT_TRUE(first.ok()) << first.status();
  under_test_->Restart();
  EXPECT_EQ(*store().ReadIncarnation(), *first);
}

}  // namespace
}  // namespace stepwell
