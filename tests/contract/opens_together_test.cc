// Opens of one trial, and a few definitions each, that wait for each other: they share transactions, and each has the
// answer that it would have alone.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/contract/pg_store_test.h"

namespace stepwell {
namespace {

using testing::Connect;
using testing::kEpoch;
using testing::PgStoreTest;

class OpensTogetherTest : public PgStoreTest {
 protected:
  static constexpr int kMany = 24;

  static OpenWriterRequest Request(const Uuid& writer = Uuid::Random()) {
    OpenWriterRequest request;
    request.trials = kAllProjects;
    request.trial.external_id = "t";
    request.writer = writer;
    request.attempt_key = "job";
    request.owner_epoch = kEpoch;
    return request;
  }
  // What each of `calls` does at one time, while somebody else holds the trial's row until all have begun.
  void RunAtOnce(const std::vector<std::function<void()>>& calls) {
    const auto holder = Connect(url_);
    ASSERT_TRUE(holder->Begin().ok());
    ASSERT_TRUE(holder->ExecScript("select from stepwell.trials for no key update").ok());
    std::atomic<std::size_t> begun = 0;
    std::vector<std::thread> threads;
    for (const auto& call : calls) {
      threads.emplace_back([&begun, &call] {
        ++begun;
        call();
      });
    }
    while (begun < calls.size()) std::this_thread::yield();
    AwaitLockWait();
    EXPECT_TRUE(holder->Rollback().ok());
    for (std::thread& thread : threads) thread.join();
  }
  using Answers = std::vector<absl::StatusOr<OpenedWriter>>;
  Answers OpenAtOnce(const std::vector<OpenWriterRequest>& requests) {
    Answers answers(requests.size(), absl::UnknownError("not asked"));
    std::vector<std::function<void()>> calls;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      calls.push_back([&, i] { answers[i] = ingest_->OpenWriter(requests[i]); });
    }
    RunAtOnce(calls);
    return answers;
  }
  // Who was not in its place when the first one went came with the next, or one of the next.
  void ExpectFewTransactions(const std::string& table) {
    EXPECT_LE(Number(absl::StrCat("select count(distinct xmin::text) from stepwell.", table)), 8);
  }
};

TEST_F(OpensTogetherTest, ThoseOfOneTrialShareTransactions) {
  OpenWriter("t");
  std::vector<OpenWriterRequest> requests;
  for (int i = 0; i < kMany; ++i) {
    OpenWriterRequest& request = requests.emplace_back(Request());
    request.rank = i;
    request.is_sampler = i == 3;
    request.world_size = kMany;
    request.agent_id = absl::StrCat("agent ", i);
    request.machine = absl::StrCat("machine ", i);
    request.labels = {{"place", absl::StrCat("p", i)}};
    request.recorder_version = "recorder";
    request.agent_version = absl::StrCat("version ", i);
    request.last_generation = static_cast<std::uint64_t>(i);
    if (i % 2 == 1) request.attempt_key = "another job";
  }
  const Answers answers = OpenAtOnce(requests);
  std::map<WriterNo, int> numbers;
  for (int i = 0; i < kMany; ++i) {
    SCOPED_TRACE(i);
    const auto& opened = answers[static_cast<std::size_t>(i)];
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(opened->attempt, i % 2 + 1);
    EXPECT_EQ(opened->generation, static_cast<std::uint64_t>(i) + 1);
    EXPECT_EQ(opened->committed_sequence, 0u);
    EXPECT_TRUE(numbers.emplace(opened->writer_no, i).second);
    EXPECT_EQ(
        Number(absl::StrCat(
            "select count(*) from stepwell.writers w join stepwell.writer_origins o "
            "using (trial_id, writer_no) where w.writer_no = ",
            Value(opened->writer_no), " and w.writer = '",
            requests[static_cast<std::size_t>(i)].writer.ToText(), "' and w.attempt = ", i % 2 + 1,
            " and w.generation = ", i + 1, " and w.rank is not distinct from ",
            i == 3 ? "null" : absl::StrCat(i), " and o.agent_id = 'agent ", i,
            "' and o.machine = 'machine ", i, "' and o.world_size = ", kMany,
            " and o.labels = '{\"place\": \"p", i,
            "\"}' and o.recorder_version = 'recorder' and o.agent_version = 'version ", i, "'")),
        1);
  }
  // Beside the first one's.
  EXPECT_EQ(numbers.begin()->first, WriterNo{2});
  EXPECT_EQ(numbers.rbegin()->first, WriterNo{kMany + 1});
  EXPECT_EQ(Number("select writer_count from stepwell.trials"), kMany + 1);
  EXPECT_EQ(Number("select attempt_count from stepwell.trials"), 2);
  ExpectFewTransactions("writers");
}

TEST_F(OpensTogetherTest, ThoseThatComeBackStandWhereTheyWere) {
  std::vector<OpenWriterRequest> requests;
  for (int i = 0; i < kMany; ++i) {
    requests.push_back(Request());
    const OpenedWriter writer = OpenWriter("t", kEpoch, requests.back().writer);
    WriterAdvance advance = Advance(writer, 1, static_cast<std::uint64_t>(i) + 1);
    advance.last_crc32c = static_cast<std::uint32_t>(i) * 7 + 1;
    if (i % 3 == 0) {
      Gap& gap = advance.gaps.emplace_back();
      gap.cause = GapCause::kRejected;
      gap.sample_count = i + 1;
      gap.first_sequence = gap.last_sequence = 1;
      gap.reason = absl::StrCat("REASON_", i);
    }
    ASSERT_TRUE(ingest_->Commit(Group({advance})).ok());
  }
  requests.push_back(Request());  // one that is new
  const Answers answers = OpenAtOnce(requests);
  for (int i = 0; i < kMany; ++i) {
    SCOPED_TRACE(i);
    const auto& opened = answers[static_cast<std::size_t>(i)];
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(opened->writer_no, WriterNo{i + 1});
    EXPECT_EQ(opened->generation, 2u);
    EXPECT_EQ(opened->committed_sequence, static_cast<std::uint64_t>(i) + 1);
    EXPECT_EQ(opened->last_crc32c, static_cast<std::uint32_t>(i) * 7 + 1);
    ASSERT_EQ(opened->rejections.size(), i % 3 == 0 ? 1u : 0u);
    if (i % 3 != 0) continue;
    EXPECT_EQ(opened->rejections[0].writer_no, opened->writer_no);
    EXPECT_EQ(opened->rejections[0].sample_count, i + 1);
    EXPECT_EQ(opened->rejections[0].reason, absl::StrCat("REASON_", i));
  }
  ASSERT_TRUE(answers.back().ok()) << answers.back().status();
  EXPECT_EQ(answers.back()->writer_no, WriterNo{kMany + 1});
  ExpectFewTransactions("writers");
  // The generations of before are over, and what was told is where it goes on.
  EXPECT_EQ(ingest_->Commit(Group({Advance(*answers[4], 6)}))->at(0).outcome,
            AdvanceOutcome::kCommitted);
}

TEST_F(OpensTogetherTest, OneThatIsOpenedTwiceHasTwoGenerations) {
  const Uuid writer = Uuid::Random();
  OpenWriter("t");
  std::vector<OpenWriterRequest> requests(kMany, Request(writer));
  std::map<std::uint64_t, int> generations;
  for (const auto& opened : OpenAtOnce(requests)) {
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(opened->writer_no, WriterNo{2});
    ++generations[opened->generation];
  }
  EXPECT_EQ(generations.size(), std::size_t{kMany});
}

TEST_F(OpensTogetherTest, WhatIsRefusedToOneIsDoneForTheOthers) {
  OpenWriter("t");
  std::vector<OpenWriterRequest> requests;
  for (int i = 0; i < kMany; ++i) requests.push_back(Request());
  requests[5].agent_id = std::string("no\0text", 7);  // PostgreSQL refuses it
  requests[6].attempt_key = "no text \xff";
  requests[9].writers_max = 1;
  requests[10].owner_epoch = kEpoch - 1;
  requests[11].trials = ProjectFilter(std::vector<std::string>{"another"});
  const std::map<std::size_t, absl::StatusCode> refused = {
      {5, absl::StatusCode::kInvalidArgument},
      {6, absl::StatusCode::kInvalidArgument},
      {9, absl::StatusCode::kResourceExhausted},
      {10, absl::StatusCode::kAborted},
      {11, absl::StatusCode::kPermissionDenied}};
  const Answers answers = OpenAtOnce(requests);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    SCOPED_TRACE(i);
    const auto expected = refused.find(i);
    EXPECT_EQ(answers[i].status().code(),
              expected == refused.end() ? absl::StatusCode::kOk : expected->second)
        << answers[i].status();
  }
  EXPECT_EQ(Number("select count(*) from stepwell.writers"),
            1 + kMany - static_cast<int>(refused.size()));
  EXPECT_EQ(Number("select writer_count from stepwell.trials"),
            1 + kMany - static_cast<int>(refused.size()));
}

TEST_F(OpensTogetherTest, DefinitionsShareTransactionsAndEachIsToldItsOwn) {
  const TrialId trial_id = OpenWriter("t").trial_id;
  AddSeries(trial_id, 1);
  std::vector<std::vector<SeriesDefinition>> asked(kMany);
  for (int i = 0; i < kMany; ++i) {
    // One of its own, one of all, one that is known.
    for (const std::string& name :
         {absl::StrCat("of ", i), std::string("of all"), std::string("s0")}) {
      SeriesDefinition& definition = asked[static_cast<std::size_t>(i)].emplace_back();
      definition.key.metric_group = "gpu";
      definition.key.name = name;
    }
  }
  asked[5][2].unit = "another";  // than it is known with
  std::vector<absl::StatusOr<std::vector<SeriesNo>>> answers(kMany,
                                                             absl::UnknownError("not asked"));
  std::vector<std::int64_t> created(kMany);
  std::vector<std::function<void()>> calls;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    calls.push_back([&, i] {
      answers[i] = ingest_->FindOrCreateSeries(trial_id, asked[i], 10'000, &created[i]);
    });
  }
  RunAtOnce(calls);
  std::map<SeriesNo, int> own;
  std::int64_t created_count = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    SCOPED_TRACE(i);
    if (i == 5) {
      EXPECT_EQ(answers[i].status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_EQ(created[i], 0);
      continue;
    }
    ASSERT_TRUE(answers[i].ok()) << answers[i].status();
    ASSERT_EQ(answers[i]->size(), 3u);
    EXPECT_TRUE(own.emplace(answers[i]->at(0), 0).second);
    EXPECT_EQ(answers[i]->at(1), answers[0]->at(1));
    EXPECT_EQ(answers[i]->at(2), SeriesNo{1});
    created_count += created[i];
    EXPECT_EQ(
        Number(absl::StrCat("select series_no from stepwell.series where name = 'of ", i, "'")),
        Value(answers[i]->at(0)));
  }
  EXPECT_EQ(created_count, kMany) << "those of its own of all but one, and the one of all";
  EXPECT_EQ(Number("select count(*) from stepwell.series"), kMany + 1);
  EXPECT_EQ(Number("select series_count from stepwell.trials"), kMany + 1);
  // Those with the refused one are halved until it stands alone.
  EXPECT_LE(Number("select count(distinct xmin::text) from stepwell.series"), 14);
}

TEST_F(OpensTogetherTest, AFullTrialRefusesOnlyWhatHasNoRoom) {
  const TrialId trial_id = OpenWriter("t").trial_id;
  std::vector<std::vector<SeriesNo>> answers(kMany);
  std::vector<std::function<void()>> calls;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    calls.push_back([&, i] {
      SeriesDefinition definition;
      definition.key.metric_group = "gpu";
      definition.key.name = absl::StrCat("s", i);
      const auto numbers = ingest_->FindOrCreateSeries(trial_id, {definition}, 10);
      ASSERT_TRUE(numbers.ok()) << numbers.status();
      answers[i] = *numbers;
    });
  }
  RunAtOnce(calls);
  int numbered = 0;
  for (const auto& numbers : answers) numbered += numbers.at(0) == SeriesNo{} ? 0 : 1;
  EXPECT_EQ(numbered, 10);
}

}  // namespace
}  // namespace stepwell
