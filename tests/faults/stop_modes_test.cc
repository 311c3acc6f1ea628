// Somebody stops the PostgreSQL of a master under load, in each of the three ways that it knows: smart
// waits for sessions to end, fast ends them, immediate leaves all as a crash does. Nothing may be lost or
// doubled, and commits go on: a smart stop must not wait for idle connections of ours while nobody gets in.
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

struct Mode {
  const char* name;
  int signal;
};
constexpr Mode kModes[] = {{"smart", SIGTERM}, {"fast", SIGINT}, {"immediate", SIGQUIT}};

TEST(StopModesTest, CommitsGoOnAfterEachAndNothingIsLost) {
  Scene scene("stop modes");
  MasterProcess master({.scratch = scene.path("")});
  MasterClient client(master.grpc_address());
  const auto committed = [&] {
    const auto status = client.Status();
    return status ? status->chunks_committed() : 0;
  };
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  scene.StartAgent(master.grpc_address());
  scene.StartTrainer(0, {{"--world-size", "1"}});
  scene.StartRawWriter(10, master.grpc_address());
  for (const Mode& mode : kModes) {
    SCOPED_TRACE(mode.name);
    const std::uint64_t before = committed();
    ASSERT_TRUE(scene.Await(absl::StrCat("commits before ", mode.name), absl::Seconds(60), [&] {
      return committed() >= before + 20;
    })) << master.LogTail();
    const pid_t postmaster = master.PostmasterPid();
    ASSERT_GT(postmaster, 0) << master.LogTail();
    ASSERT_EQ(kill(postmaster, mode.signal), 0);
    EXPECT_TRUE(scene.Await(absl::StrCat("another server after ", mode.name), absl::Seconds(60),
                            [&] {
                              const pid_t now = master.PostmasterPid();
                              return now != 0 && now != postmaster;
                            }))
        << master.LogTail();
    const std::uint64_t after = committed();
    EXPECT_TRUE(scene.Await(absl::StrCat("commits after ", mode.name), absl::Seconds(60), [&] {
      return committed() >= after + 20;
    })) << master.LogTail();
  }
  scene.StopProducers(absl::Seconds(60));
  const Verdict verdict = scene.ExpectExact(master, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
