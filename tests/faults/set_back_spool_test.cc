// The spool's newest segments lose their ends under a rank that lives on, while no agent serves it: the
// power went and what was not synced is gone, or a directory was set back.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::uintmax_t> SegmentSizes(const std::string& spool_dir) {
  std::map<std::string, std::uintmax_t> sizes;
  std::error_code gone;
  for (fs::recursive_directory_iterator entry(spool_dir, gone), end; !gone && entry != end;
       entry.increment(gone)) {
    if (entry->path().extension() == ".seg") sizes[entry->path()] = entry->file_size(gone);
  }
  return sizes;
}

class SetBackSpoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
    scene_.StartAgent(master_.grpc_address());
    for (const int rank : {0, 1}) {
      scene_.StartTrainer(rank, {{"--world-size", "2"}, {"--scopes", "0"}});
    }
    AwaitCommits(20);
  }
  void AwaitCommits(std::uint64_t count) {
    const auto committed = [&] {
      const auto status = client_.Status();
      return status ? status->chunks_committed() : 0;
    };
    const std::uint64_t first = committed();
    ASSERT_TRUE(scene_.Await(absl::StrCat(count, " chunks"), absl::Seconds(60), [&] {
      return committed() >= first + count;
    })) << scene_.Logs();
  }
  void AwaitGrowth(std::uintmax_t bytes) {
    const auto before = SegmentSizes(scene_.spool_dir());
    ASSERT_TRUE(scene_.Await(absl::StrCat(bytes, " bytes in each spool"), absl::Seconds(60), [&] {
      auto now = SegmentSizes(scene_.spool_dir());
      return std::all_of(before.begin(), before.end(), [&](const auto& segment) {
        return now[segment.first] >= segment.second + bytes;
      });
    })) << scene_.Logs();
  }
  static void SetBack(const std::map<std::string, std::uintmax_t>& sizes) {
    for (const auto& [path, bytes] : sizes) fs::resize_file(path, bytes);
  }
  bool HasGap(const std::string& text) const {
    const auto& gaps = scene_.stored().gap_texts;
    return std::any_of(gaps.begin(), gaps.end(),
                       [&](const std::string& gap) { return absl::StrContains(gap, text); });
  }

  Scene scene_{::testing::UnitTest::GetInstance()->current_test_info()->name()};
  MasterProcess master_{{.scratch = scene_.path("")}};
  MasterClient client_{master_.grpc_address()};
};

TEST_F(SetBackSpoolTest, AgentRule03_WhereTheMasterKnowsMoreASuccessorGoesOn) {
  const auto sizes = SegmentSizes(scene_.spool_dir());
  AwaitCommits(20);
  scene_.agent().Kill();
  SetBack(sizes);
  scene_.Say("the spool has lost what the master has");
  scene_.StartAgent(master_.grpc_address());
  AwaitCommits(20);
  scene_.StopProducers(absl::Seconds(60));
  const Verdict verdict =
      scene_.ExpectExact(master_, Demand::kRecorded, {.causes = {Cause::kSpoolLost}});
  EXPECT_TRUE(HasGap("cause 8 "));  // GAP_CAUSE_SPOOL_LOST
  // What was in frames and not acked when the agent was killed.
  EXPECT_LT(verdict.declared_count, verdict.held_count / 4);
  EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
}

TEST_F(SetBackSpoolTest, AgentRule02_WhatNobodyHasAnyMoreIsDeclared) {
  const auto recorded = [&] { return scene_.ReadLedgers().samples.size(); };
  master_.Pause();
  scene_.Say("the master hangs");
  const std::size_t recorded_at_hang = recorded();
  AwaitGrowth(2000);  // and is past whatever it had been sent
  const auto sizes = SegmentSizes(scene_.spool_dir());
  AwaitGrowth(4000);
  scene_.agent().Kill();
  const std::size_t recorded_meanwhile = recorded() - recorded_at_hang;
  SetBack(sizes);
  scene_.Say("the spool has lost what nobody else has");
  master_.Continue();
  scene_.StartAgent(master_.grpc_address());
  AwaitCommits(20);
  scene_.StopProducers(absl::Seconds(60));
  const Verdict verdict = scene_.ExpectExact(
      master_, Demand::kRecorded, {.causes = {Cause::kSpoolLost}, .count_max = recorded_meanwhile});
  EXPECT_GT(verdict.declared_count, 50U);
  EXPECT_TRUE(HasGap("events of frames that the spool has no more"));
  EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
