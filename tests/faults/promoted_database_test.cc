// The private PostgreSQL comes up on another timeline: a recovery that ends as a standby's promotion does. Under a master
// that lives on, and from an older copy. Nothing that was acked may be missing, and where nothing is missing no
// gap may say so.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/faults/database_text.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

namespace fs = std::filesystem;

class PromotedDatabaseTest : public ::testing::Test {
 protected:
  PromotedDatabaseTest() { EXPECT_TRUE(master_.StartAndWait()) << master_.LogTail(); }

  // The next start of the PostgreSQL in `directory` reads all WAL that is there, then takes a timeline of its own.
  static void RecoverAtNextStart(const std::string& directory) {
    std::ofstream(directory + "/postgresql.auto.conf", std::ios::app)
        << "restore_command = 'false'\n";
    const std::string signal = directory + "/recovery.signal";
    std::ofstream(signal).flush();
    // The server runs as somebody else.
    fs::permissions(signal, fs::perms::owner_all | fs::perms::group_all | fs::perms::others_all);
  }
  std::string pg() const { return master_.data_directory() + "/pg"; }
  std::string incarnation() const {
    return DatabaseText(master_.database_url(), "select incarnation from stepwell.database");
  }
  std::string timeline() const {
    return DatabaseText(master_.database_url(), "select timeline from stepwell.database");
  }
  std::int64_t stored() {
    const auto trial = client_.Trial("faults");
    return trial ? trial->trial().sample_count() : 0;
  }
  void AwaitMoreSamples() {
    const std::int64_t before = stored();
    ASSERT_TRUE(
        scene_.Await("20 samples more", absl::Seconds(60), [&] { return stored() >= before + 20; }))
        << scene_.Logs() << master_.LogTail();
  }
  void StopOne(ChildProcess& trainer) {
    trainer.Signal(SIGTERM);
    ASSERT_EQ(trainer.Wait(absl::Seconds(60)), "exit 0") << scene_.Logs();
  }
  bool AgentLogHas(const std::string& text) const {
    std::stringstream log;
    log << std::ifstream(scene_.path("agent.log")).rdbuf();
    return log.str().find(text) != std::string::npos;
  }
  // cp -a: owner, modes and times stay. REQUIRES: no server runs on `from`.
  static void CopyTree(const std::string& from, const std::string& to) {
    ChildProcess copy;
    copy.Start({"/bin/cp", "-a", from, to}, {}, "/dev/null");
    ASSERT_EQ(copy.Wait(absl::Seconds(60)), "exit 0");
  }

  Scene scene_{::testing::UnitTest::GetInstance()->current_test_info()->name()};
  MasterProcess master_{{.scratch = scene_.path("")}};
  MasterClient client_{master_.grpc_address()};
};

TEST_F(PromotedDatabaseTest, APromotionUnderALivingMasterLosesNothingAndTellsNoGap) {
  scene_.StartAgent(master_.grpc_address());
  ChildProcess& closed = scene_.StartTrainer(0, {{"--world-size", "2"}});
  scene_.StartTrainer(1, {{"--world-size", "2"}});
  ASSERT_NO_FATAL_FAILURE(AwaitMoreSamples());
  ASSERT_NO_FATAL_FAILURE(StopOne(closed));
  const std::string before = incarnation();
  ASSERT_EQ(timeline(), "1");

  RecoverAtNextStart(pg());
  kill(master_.PostmasterPid(), SIGINT);
  ASSERT_TRUE(scene_.Await("another timeline", absl::Seconds(60), [&] {
    return timeline() == "2";
  })) << master_.LogTail();
  ASSERT_NO_FATAL_FAILURE(AwaitMoreSamples());
  EXPECT_NE(incarnation(), before);
  EXPECT_EQ(master_.CountInLog("database_is_another"), 1) << master_.LogTail();
  EXPECT_TRUE(master_.running()) << "it lived on";
  ASSERT_TRUE(scene_.Await("the writer that had closed is told again", absl::Seconds(60), [&] {
    return AgentLogHas("closed_writer_told_again");
  })) << scene_.Logs();
  scene_.StopProducers(absl::Seconds(60));
  EXPECT_EQ(scene_.ExpectExact(master_, Demand::kRecorded).declared_count, 0U);
  EXPECT_TRUE(scene_.stored().gap_texts.empty()) << "nothing is missing";
  EXPECT_EQ(master_.CountInLog("acked_not_held"), 0) << master_.LogTail();
  EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
}

TEST_F(PromotedDatabaseTest, WhatARecoveryLacksOfALoneWriterThatHadClosedIsToldAgain) {
  scene_.StartAgent(master_.grpc_address());
  ChildProcess& only = scene_.StartTrainer(0);
  ASSERT_NO_FATAL_FAILURE(AwaitMoreSamples());
  ASSERT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
  CopyTree(master_.data_directory(), scene_.path("copy"));
  ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
  const std::int64_t at_copy = stored();
  ASSERT_NO_FATAL_FAILURE(AwaitMoreSamples());
  ASSERT_NO_FATAL_FAILURE(StopOne(only));
  const auto recorded = static_cast<std::int64_t>(scene_.ReadLedgers().samples.size());
  ASSERT_TRUE(scene_.Await("all is stored", absl::Seconds(60), [&] {
    return stored() >= recorded;
  })) << scene_.Logs();

  ASSERT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
  fs::remove_all(master_.data_directory());
  CopyTree(scene_.path("copy"), master_.data_directory());
  RecoverAtNextStart(pg());
  ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
  scene_.Say(absl::StrCat("recovered with ", at_copy, " of ", recorded, " samples"));
  ASSERT_LT(at_copy, recorded);
  // Nobody gave the copy another name, and no other writer opens.
  ASSERT_TRUE(
      scene_.Await("all is told again", absl::Seconds(60), [&] { return stored() >= recorded; }))
      << scene_.Logs() << master_.LogTail();
  EXPECT_EQ(timeline(), "2");
  EXPECT_EQ(scene_.ExpectExact(master_, Demand::kRecorded).declared_count, 0U);
  EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
