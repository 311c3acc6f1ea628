// The agent's rules at once, where each of them hurts: the root is read-only, there is no home, shared
// memory has 64 MiB, processes have numbers of their own, 8 ranks have 4 forked workers each, and
// their agent, which nobody but they start, is killed each second.
//
// Invariant: every sample that a rank or a worker recorded is stored exactly once; each rank ends with
// the exit code and the output, to the byte, that it has where nothing is recorded, be it that it closes
// its recorder or knows nothing of it; and its pipe ends with it while the agent lives on.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/faults/seed.h"
#include "tests/faults/worker_ledgers.h"
#include "tests/support/child_process.h"
#include "tests/support/master_process.h"
#include "tests/support/places/places.h"
#include "tests/support/scratch_directory.h"

namespace stepwell::faults {
namespace {

namespace fs = std::filesystem;
using testing::BuiltProgram;
using testing::ChildProcess;
using testing::Eventually;

constexpr int kRankCount = 8;
constexpr int kWorkerCount = 4;
constexpr int kStepCount = 500;  // ten seconds
constexpr int kSkipped = 77;

// Kills the agents that run from `program`, which other tests' agents do not.
int KillAgents(const fs::path& program) {
  int killed = 0;
  for (const fs::directory_entry& process : fs::directory_iterator("/proc")) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(process.path().filename().string(), &pid)) continue;
    std::error_code gone;
    // As its own namespace names it.
    if (fs::read_symlink(process.path() / "exe", gone).filename() != program.filename()) continue;
    if (!fs::equivalent(process.path() / "exe", program, gone)) continue;
    if (kill(pid, SIGKILL) == 0) ++killed;
  }
  return killed;
}

class HardPlaceTest : public ::testing::Test {
 protected:
  HardPlaceTest() {
    fs::create_directory(scratch_ / "bin");
    fs::create_directory(scratch_ / "out");
    for (const char* program : {"stepwell", "fault_trainer"}) {
      fs::copy_file(BuiltProgram(program), fs::path(scratch_ / "bin") / program);
    }
    chmod((scratch_ / "bin").c_str(), 0755);
    chmod((scratch_ / "out").c_str(), 0777);
  }

  std::string Out(const std::string& name, int rank) const {
    return scratch_ / absl::StrCat("out/", name, "-", rank);
  }

  // What the rank said and how it ended is what the plain run said, and how that ended.
  void ExpectUntouched(int rank) const {
    SCOPED_TRACE(absl::StrCat("rank ", rank));
    EXPECT_EQ(Text(Out("code", rank)), absl::StrCat(40 + rank, "\n"));
    EXPECT_EQ(Text(Out("code", rank)), Text(Out("plain-code", rank)));
    EXPECT_EQ(Text(Out("text", rank)), Text(Out("plain-text", rank)));
    EXPECT_TRUE(absl::StrContains(Text(Out("text", rank)), "step 450 loss")) << "it says nothing";
    EXPECT_TRUE(absl::StrContains(Text(Out("text", rank)), "a warning at step 400"));
    const absl::Duration held = absl::Nanoseconds(std::stoll(Text(Out("piped", rank))) -
                                                  std::stoll(Text(Out("ended", rank))));
    EXPECT_LT(held, absl::Seconds(2)) << "somebody held its pipe";
  }

  bool AnyEnded() const {
    for (int rank = 0; rank < kRankCount; ++rank) {
      if (fs::exists(Out("ended", rank))) return true;
    }
    return false;
  }

  const testing::ScratchDirectory scratch_;
};

TEST_F(HardPlaceTest, EverySampleArrivesAndTheTrialIsUntouched) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root for namespaces and mounts";
  const std::uint64_t seed = Seed() & 0xffffffff;
  testing::MasterProcess master({.scratch = scratch_.path()});
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();

  // As a chroot's root is none.
  ChildProcess mount_point;
  mount_point.Start({"/usr/bin/mountpoint", "-q", "/"}, {}, scratch_ / "mountpoint.log");
  if (mount_point.Wait(absl::Seconds(30)) != "exit 0") {
    GTEST_SKIP() << "the root is no mount of its own";
  }
  const std::string script = Text(SourcePlace("tests/faults/programs/hard_place.sh"));
  ChildProcess place;
  const absl::Time begin = absl::Now();
  place.Start({"/usr/bin/unshare", "--mount", "--pid", "--ipc", "--fork", "--mount-proc",
               "--kill-child", "/bin/bash", "-c", script, "hard_place", scratch_.path(),
               master.grpc_address(), absl::StrCat(kStepCount), absl::StrCat(seed)},
              {}, scratch_ / "place.log");
  int kills = 0;  // moments at which there was one
  absl::Time next_kill = begin + absl::Seconds(1);
  const bool ended = Eventually(
      [&] {
        // From the first end on agents live: one that held a rank's pipe would keep it open.
        if (absl::Now() >= next_kill && !AnyEnded()) {
          kills += KillAgents(scratch_ / "bin/stepwell") > 0 ? 1 : 0;
          next_kill += absl::Seconds(1);
        }
        return !place.running();
      },
      absl::Seconds(120));
  const absl::Duration took = absl::Now() - begin;
  const std::string ending = place.Wait(absl::ZeroDuration());
  if (ending == absl::StrCat("exit ", kSkipped)) GTEST_SKIP() << "the root is no mount of its own";
  ASSERT_TRUE(ended) << Text(scratch_ / "place.log");
  EXPECT_EQ(ending, "exit 0") << Text(scratch_ / "place.log");
  std::cout << "ended after " << took << ", agents killed " << kills << " times\n";
  EXPECT_GE(kills, 5) << "the agents were hardly ever killed: this proves little";
  for (int rank = 0; rank < kRankCount; ++rank) ExpectUntouched(rank);
  EXPECT_NE(Text(scratch_ / "out/agents"), "") << "an agent that held a pipe would be gone";

  const Ledger ledger =
      ReadLedgers([&](int rank) { return Out("ledger", rank); }, kRankCount, kWorkerCount);
  std::map<std::pair<int, std::string>, int> counts;
  for (const LoggedSample& sample : ledger.samples) ++counts[{sample.rank, sample.series}];
  for (int rank = 0; rank < kRankCount; ++rank) {
    EXPECT_EQ((counts[{rank, "timing/step"}]), kStepCount) << "rank " << rank;
    for (int worker = 0; worker < kWorkerCount; ++worker) {
      EXPECT_GE((counts[{rank, absl::StrCat("faults/worker_", worker)}]), kStepCount / 2)
          << "worker " << worker << " of rank " << rank;
    }
  }
  ExpectEachStoredOnce(master, "hard", ledger);
}

}  // namespace
}  // namespace stepwell::faults
