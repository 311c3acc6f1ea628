// Writers whose clocks say 1970 and 2261 share commit groups with one whose clock is right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/faults/database_text.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

TEST(AbsurdClockTest, OneGroupHoldsAllAndTheOthersAreUnharmed) {
  Scene scene("absurd clock");
  MasterProcess master({.scratch = scene.path("")});
  MasterClient client(master.grpc_address());
  // Each commit lasts a while, so that the next one finds chunks of all.
  ASSERT_TRUE(master.StartAndWait({"commit_before_begin=sleep:150"})) << master.LogTail();
  const std::int64_t now = absl::ToUnixSeconds(absl::Now());
  scene.StartRawWriter(10, master.grpc_address(), {{"--clock-shift-s", absl::StrCat(60 - now)}});
  scene.StartRawWriter(11, master.grpc_address(),
                       {{"--clock-shift-s", absl::StrCat(9'200'000'000 - now)}});
  scene.StartRawWriter(12, master.grpc_address());
  scene.StartAgent(master.grpc_address());
  scene.StartTrainer(0);
  ASSERT_TRUE(scene.Await("200 chunks", absl::Seconds(90), [&] {
    const auto status = client.Status();
    return status && status->chunks_committed() >= 200;
  })) << scene.Logs();
  scene.StopProducers(absl::Seconds(60));
  const auto status = client.Status();
  ASSERT_TRUE(status);
  scene.Say(
      absl::StrCat(status->chunks_committed(), " chunks in ", status->commit_groups(), " groups"));
  // Three in four chunks came with others, whoever they were.
  EXPECT_LT(status->commit_groups() * 2, status->chunks_committed());
  EXPECT_EQ(status->chunks_rejected(), 0U);
  const Verdict verdict = scene.ExpectExact(master, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
  // Times and sealed times agree: nothing tells such a clock from one that is right.
  EXPECT_THAT(scene.stored().gap_texts, ::testing::IsEmpty());
  // Leaves are of the days on which the master received.
  EXPECT_EQ(
      DatabaseText(master.database_url(),
                   "select count(*) from pg_class where relname ~ '^metrics_k[0-9]+_[0-9]{8}$' and "
                   "abs(to_date(right(relname, 8), 'YYYYMMDD') - current_date) > 2"),
      "0");
  EXPECT_NE(
      DatabaseText(master.database_url(),
                   "select count(*) from pg_class where relname ~ '^metrics_k[0-9]+_[0-9]{8}$'"),
      "0");
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
