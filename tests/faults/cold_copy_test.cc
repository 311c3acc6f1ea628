// A cold copy of the data directory is put back under a running agent. What was acked after the
// copy is told again as far as the agent still holds it; the rest is a declared gap.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/faults/database_text.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

namespace fs = std::filesystem;

// Lowest and highest segment of each spool below `spool_dir`.
struct SegmentRange {
  std::string lowest;
  std::string highest;
};
std::map<std::string, SegmentRange> Segments(const std::string& spool_dir) {
  std::map<std::string, SegmentRange> ranges;
  std::error_code gone;
  for (fs::recursive_directory_iterator entry(spool_dir, gone), end; entry != end;
       entry.increment(gone)) {
    if (gone || entry->path().extension() != ".seg") continue;
    const std::string name = entry->path().filename();
    auto [range, is_new] = ranges.insert({entry->path().parent_path(), {name, name}});
    range->second.lowest = std::min(range->second.lowest, name);
    range->second.highest = std::max(range->second.highest, name);
  }
  return ranges;
}

// cp -a: owner, modes and times stay. REQUIRES: no server runs on `from`.
void CopyTree(const std::string& from, const std::string& to) {
  testing::ChildProcess copy;
  copy.Start({"/bin/cp", "-a", from, to}, {}, "/dev/null");
  ASSERT_EQ(copy.Wait(absl::Seconds(60)), "exit 0");
}

TEST(ColdCopyTest, AgentRule03_TheAckedTailIsReplayedAndTheRestDeclared) {
  Scene scene("cold copy");
  MasterProcess master({.scratch = scene.path("")});
  MasterClient client(master.grpc_address());
  const auto committed = [&] {
    const auto status = client.Status();
    return status ? status->chunks_committed() : 0;
  };
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  // The smallest spool that there is: it holds seconds of what was acked, not minutes.
  scene.StartAgent(master.grpc_address(), {"--spool-bytes-max", "1048576"});
  for (int rank = 0; rank < 2; ++rank)
    scene.StartTrainer(rank, {{"--world-size", "2"}, {"--rate", "600"}});
  ASSERT_TRUE(scene.Await("30 chunks", absl::Seconds(30), [&] { return committed() >= 30; }))
      << scene.Logs();

  ASSERT_EQ(master.Stop(), "exit 0") << master.LogTail();
  CopyTree(master.data_directory(), scene.path("copy"));
  const std::uint64_t recorded_at_copy = scene.ReadLedgers().samples.size();
  const auto segments_at_copy = Segments(scene.spool_dir());
  ASSERT_EQ(segments_at_copy.size(), 2U);
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  scene.Say(absl::StrCat("copied with ", recorded_at_copy, " samples recorded, started again"));
  ASSERT_TRUE(scene.Await(
      "spools have let go of what was acked at the copy", absl::Seconds(90),
      [&] {
        auto now = Segments(scene.spool_dir());
        return std::all_of(segments_at_copy.begin(), segments_at_copy.end(), [&](const auto& then) {
          return now[then.first].lowest > then.second.highest;
        });
      }))
      << scene.Logs();

  ASSERT_EQ(master.Stop(), "exit 0") << master.LogTail();
  const std::uint64_t recorded_at_restore = scene.ReadLedgers().samples.size();
  fs::remove_all(master.data_directory());
  CopyTree(scene.path("copy"), master.data_directory());
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  scene.Say(absl::StrCat("the copy is back, ", recorded_at_restore, " samples were recorded"));
  ASSERT_TRUE(scene.Await("30 chunks more", absl::Seconds(30), [&] { return committed() >= 30; }))
      << scene.Logs() << master.LogTail();
  scene.StopProducers(absl::Seconds(60));

  // Of segments that it has let go the agent knows what was in all of one, not in a part.
  const Verdict verdict = scene.ExpectExact(master, Demand::kRecorded,
                                            {.causes = {Cause::kRestored}, .with_uncounted = true});
  const std::uint64_t between = recorded_at_restore - recorded_at_copy;
  EXPECT_GT(verdict.declared_count, 0U);
  EXPECT_LT(verdict.declared_count, between) << "nothing of the acked tail was replayed";
  scene.Say(absl::StrCat("of ", between, " samples recorded after the copy and before its return, ",
                         verdict.declared_count, " are declared lost, the others were told again"));
  const auto& gaps = scene.stored().gap_texts;
  EXPECT_TRUE(std::any_of(gaps.begin(), gaps.end(), [](const std::string& gap) {
    return absl::StrContains(gap, "cause 13 ");  // GAP_CAUSE_RESTORED
  }));
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

// The database knows a generation that agents have long left behind: it must give one above theirs, or an
// older stream of the same writer would not be fenced.
TEST(ColdCopyTest, AGenerationIsAboveThoseThatTheLostDatabaseGave) {
  Scene scene("generation");
  MasterProcess master({.scratch = scene.path("")});
  MasterClient client(master.grpc_address());
  const auto await_commits = [&] {
    const auto committed = [&] {
      const auto status = client.Status();
      return status ? status->chunks_committed() : 0;
    };
    const std::uint64_t first = committed();
    ASSERT_TRUE(
        scene.Await("20 chunks", absl::Seconds(60), [&] { return committed() >= first + 20; }))
        << scene.Logs() << master.LogTail();
  };
  const auto generation = [&] {
    int number = 0;
    (void)absl::SimpleAtoi(
        DatabaseText(master.database_url(), "select max(generation) from stepwell.writers"),
        &number);
    return number;
  };
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  scene.StartAgent(master.grpc_address());
  scene.StartTrainer(0);
  ASSERT_NO_FATAL_FAILURE(await_commits());
  ASSERT_EQ(master.Stop(), "exit 0") << master.LogTail();
  CopyTree(master.data_directory(), scene.path("copy"));
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  const int at_copy = generation();
  for (int i = 0; i < 4; ++i) {
    scene.agent().Kill();
    scene.StartAgent(master.grpc_address());
    ASSERT_NO_FATAL_FAILURE(await_commits());
  }
  const int lost = generation();
  EXPECT_GE(lost, at_copy + 4);

  ASSERT_EQ(master.Stop(), "exit 0") << master.LogTail();
  fs::remove_all(master.data_directory());
  CopyTree(scene.path("copy"), master.data_directory());
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  ASSERT_NO_FATAL_FAILURE(await_commits());
  EXPECT_GT(generation(), lost);
  scene.Say(
      absl::StrCat("generation ", at_copy, " at the copy, ", lost, " lost, then ", generation()));
  scene.StopProducers(absl::Seconds(60));
  // All of it was in the spool.
  EXPECT_EQ(scene.ExpectExact(master, Demand::kRecorded).declared_count, 0U);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
