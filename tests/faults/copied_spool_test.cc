// A spool directory is copied while its trial runs, and both copies are served at once: two agents claim
// the same writer, with the same sequences and, from the copy on, with other frames.
// How it would fail: an agent that takes the events of copied rings sends what the other sends, too; one that
// numbers its frames like the other has its own passed over as repeats.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/faults/database_text.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

namespace fs = std::filesystem;

class CopiedSpoolTest : public ::testing::Test {
 protected:
  // `close_wait_ms`: how long a training waits at its end for acks.
  void Load(const std::string& close_wait_ms) {
    ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
    scene_.StartAgent(master_.grpc_address());
    for (const int rank : {0, 1}) {
      trainers_.push_back(
          &scene_.StartTrainer(rank, {{"--world-size", "2"}, {"--close-wait-ms", close_wait_ms}}));
    }
    AwaitCommits(20);
  }
  void AwaitCommits(std::uint64_t count) {
    const auto committed = [&] {
      const auto status = client_.Status();
      return status ? status->chunks_committed() : 0;
    };
    const std::uint64_t first = committed();
    ASSERT_TRUE(scene_.Await(absl::StrCat(count, " chunks"), absl::Seconds(90),
                             [&] { return committed() >= first + count; }))
        << scene_.Logs() << master_.LogTail();
  }
  // As a backup or an rsync does it, file by file, beside those who write.
  void Copy() {
    ChildProcess copy;
    copy.Start({"/bin/cp", "-a", scene_.spool_dir(), scene_.path("copy")}, {}, "/dev/null");
    // A segment that goes meanwhile is no reason to stop.
    (void)copy.Wait(absl::Seconds(60));
    ASSERT_TRUE(fs::exists(scene_.path("copy")));
  }
  void StartSecondAgent() {
    second_.Start({testing::BuiltProgram("stepwell"), "agent", "--server", master_.grpc_address(),
                   "--spool-dir", scene_.path("copy"), "--no-auto-sampling"},
                  {}, scene_.path("second-agent.log"));
  }
  std::string SecondLog() const {
    std::ifstream file(scene_.path("second-agent.log"));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static int CountIn(const std::string& text, const std::string& word) {
    int count = 0;
    for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++count;
    return count;
  }
  // What the rings held is in frames: the spool has not grown for two seconds.
  void AwaitDrained() {
    std::uintmax_t bytes = 0;
    absl::Duration since = scene_.Elapsed();
    ASSERT_TRUE(scene_.Await("the rings are empty", absl::Seconds(60), [&] {
      std::uintmax_t now = 0;
      for (const auto& entry : fs::recursive_directory_iterator(scene_.spool_dir())) {
        if (entry.path().extension() == ".seg") now += entry.file_size();
      }
      if (now != bytes) since = scene_.Elapsed();
      bytes = now;
      return scene_.Elapsed() - since >= absl::Seconds(2);
    }));
  }
  std::size_t StoredCount() {
    const std::string text =
        DatabaseText(master_.database_url(), "select sum(sample_count) from stepwell.usage");
    std::size_t count = 0;
    return absl::SimpleAtoi(text, &count) ? count : 0;
  }
  void ExpectExact() {
    scene_.StopProducers(absl::Seconds(120));
    const Verdict verdict = scene_.ExpectExact(master_, Demand::kRecorded);
    EXPECT_EQ(verdict.declared_count, 0U);
    EXPECT_TRUE(second_.running());
    second_.Kill();
    EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
  }

  Scene scene_{::testing::UnitTest::GetInstance()->current_test_info()->name()};
  MasterProcess master_{{.scratch = scene_.path("")}};
  MasterClient client_{master_.grpc_address()};
  ChildProcess second_;
  std::vector<ChildProcess*> trainers_;
};

TEST_F(CopiedSpoolTest, AgentRule03_BothServedAtOnceLoseAndDoubleNothing) {
  ASSERT_NO_FATAL_FAILURE(Load("60000"));
  Copy();
  StartSecondAgent();
  scene_.Say("a second agent serves the copy");
  for (int i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(AwaitCommits(40));
  ExpectExact();
  EXPECT_THAT(SecondLog(), ::testing::HasSubstr("it is a copy of " + scene_.spool_dir()));
}

// Of a training that is over, on a network that was away: two agents send the same frames at once.
TEST_F(CopiedSpoolTest, AgentRule03_FramesThatTwoAgentsHoldAreStoredOnce) {
  ASSERT_NO_FATAL_FAILURE(Load("100"));
  master_.Kill();
  scene_.Say("the master is killed");
  const std::size_t recorded = scene_.ReadLedgers().samples.size();
  ASSERT_TRUE(scene_.Await("2000 samples more", absl::Seconds(60),
                           [&] { return scene_.ReadLedgers().samples.size() >= recorded + 2000; }));
  for (ChildProcess* trainer : trainers_) trainer->Signal(SIGTERM);
  for (ChildProcess* trainer : trainers_) {
    ASSERT_EQ(trainer->Wait(absl::Seconds(60)), "exit 3") << "it was acked by nobody";
  }
  AwaitDrained();
  Copy();
  StartSecondAgent();
  ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
  const std::size_t all = scene_.ReadLedgers().samples.size();
  EXPECT_TRUE(scene_.Await("all of it is stored", absl::Seconds(150), [&] {
    return client_.Flush().empty() && StoredCount() >= all;
  })) << scene_.Logs();
  ExpectExact();
}

// Of a training that is over, whose agent died before it: its rings hold what the original's agent sends.
TEST_F(CopiedSpoolTest, AgentRule03_WhatBothFindInRingsIsStoredOnceAndToldByTheOther) {
  ASSERT_NO_FATAL_FAILURE(Load("100"));
  scene_.agent().Kill();
  scene_.Say("the agent is killed");
  const std::size_t recorded = scene_.ReadLedgers().samples.size();
  ASSERT_TRUE(scene_.Await("2000 samples more", absl::Seconds(60),
                           [&] { return scene_.ReadLedgers().samples.size() >= recorded + 2000; }));
  for (ChildProcess* trainer : trainers_) trainer->Signal(SIGTERM);
  for (ChildProcess* trainer : trainers_) {
    ASSERT_EQ(trainer->Wait(absl::Seconds(60)), "exit 3") << "it was acked by nobody";
  }
  Copy();
  scene_.StartAgent(master_.grpc_address());
  const std::size_t all = scene_.ReadLedgers().samples.size();
  ASSERT_TRUE(scene_.Await("all of it is stored", absl::Seconds(150), [&] {
    return client_.Flush().empty() && StoredCount() >= all;
  })) << scene_.Logs();
  StartSecondAgent();
  ASSERT_TRUE(scene_.Await("the copies are done with", absl::Seconds(60), [&] {
    return CountIn(SecondLog(), "writer_done") >= 2;
  })) << SecondLog();
  EXPECT_EQ(CountIn(SecondLog(), "writer_retired"), 2);
  // Gaps tell of what the other agent's were stored for: nothing is missing.
  (void)scene_.ExpectExact(master_, Demand::kRecorded);
  const auto& gaps = scene_.stored().gap_texts;
  EXPECT_THAT(gaps, ::testing::Contains(::testing::HasSubstr("cause 8 ")));  // SPOOL_LOST
  EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
