// Somebody stops the PostgreSQL of a master under load, in each of the three ways that it knows: smart
// waits for sessions to end, fast ends them, immediate leaves all as a crash does. Nothing may be lost or
// doubled, and commits go on: a smart stop must not wait for idle connections of ours while nobody gets in.
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/faults/master_client.h"
#include "tests/faults/others_postgres.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

struct Mode {
  const char* name;
  int signal;
};
constexpr Mode kModes[] = {{"smart", SIGTERM}, {"fast", SIGINT}, {"immediate", SIGQUIT}};

class StopModesTest : public ::testing::Test {
 protected:
  static std::uint64_t CommittedBy(MasterClient& client) {
    const auto status = client.Status();
    return status ? status->chunks_committed() : 0;
  }
  void AwaitCommits(const std::string& when, MasterClient& client, const MasterProcess& master) {
    const std::uint64_t before = CommittedBy(client);
    ASSERT_TRUE(scene_.Await(absl::StrCat("commits ", when), absl::Seconds(60), [&] {
      return CommittedBy(client) >= before + 20;
    })) << master.LogTail();
  }
  void StartProducers(const MasterProcess& master) {
    scene_.StartAgent(master.grpc_address());
    scene_.StartTrainer(0, {{"--world-size", "1"}});
    scene_.StartRawWriter(10, master.grpc_address());
  }
  void ExpectAllOnce(MasterProcess& master) {
    scene_.StopProducers(absl::Seconds(60));
    const Verdict verdict = scene_.ExpectExact(master, Demand::kRecorded);
    EXPECT_EQ(verdict.declared_count, 0U);
    EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
  }

  Scene scene_{"stop modes"};
};

TEST_F(StopModesTest, CommitsGoOnAfterEachAndNothingIsLost) {
  MasterProcess master({.scratch = scene_.path("")});
  MasterClient client(master.grpc_address());
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  StartProducers(master);
  for (const Mode& mode : kModes) {
    SCOPED_TRACE(mode.name);
    AwaitCommits(absl::StrCat("before ", mode.name), client, master);
    const pid_t postmaster = master.PostmasterPid();
    ASSERT_GT(postmaster, 0) << master.LogTail();
    ASSERT_EQ(kill(postmaster, mode.signal), 0);
    EXPECT_TRUE(scene_.Await(absl::StrCat("another server after ", mode.name), absl::Seconds(60),
                             [&] {
                               const pid_t now = master.PostmasterPid();
                               return now != 0 && now != postmaster;
                             }))
        << master.LogTail();
    AwaitCommits(absl::StrCat("after ", mode.name), client, master);
  }
  ExpectAllOnce(master);
}

// Of --database-url: nobody but who stopped it starts it again. The second smart stop comes while connections
// that the master opened after the first one rest.
TEST_F(StopModesTest, OneOfOthersEndsAndCommitsGoOnOnceItIsBack) {
  MasterProcess maker({.scratch = scene_.path(""), .name = "maker"});
  ASSERT_TRUE(maker.StartAndWait()) << maker.LogTail();
  const std::string url = maker.database_url();
  ASSERT_EQ(maker.Stop(), "exit 0") << maker.LogTail();
  OthersPostgres postgres(maker.data_directory());
  ASSERT_EQ(postgres.Start(), "");
  MasterProcess master({.scratch = scene_.path(""), .database_url = url});
  MasterClient client(master.grpc_address());
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  StartProducers(master);
  constexpr Mode kSmartAgain = {"smart again", SIGTERM};
  for (const Mode& mode : {kModes[0], kSmartAgain, kModes[1], kModes[2]}) {
    SCOPED_TRACE(mode.name);
    AwaitCommits(absl::StrCat("before ", mode.name), client, master);
    EXPECT_TRUE(client.Trial("faults")) << "a connection of readers rests from here on";
    postgres.Signal(mode.signal);
    ASSERT_TRUE(scene_.Await(absl::StrCat("the end after ", mode.name), absl::Seconds(60), [&] {
      return postgres.HasEnded();
    })) << master.LogTail();
    ASSERT_EQ(postgres.Start(), "");
    AwaitCommits(absl::StrCat("after ", mode.name), client, master);
  }
  EXPECT_GT(master.CountInLog("database_lets_nobody_in"), 0) << master.LogTail();
  ExpectAllOnce(master);
}

}  // namespace
}  // namespace stepwell::faults
