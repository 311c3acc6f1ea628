// A trial and its agent in different containers: other process numbers, other mounts; what they share
// is the spool's root and shared memory. The lock tells who lives, never a number.
//
// Invariant: every sample that a rank or a worker recorded is stored exactly once; the end of a worker
// is seen while its parent lives, and a rank's death by SIGKILL is told to the master; a trial that is
// served starts no agent of its own, and one whose agent dies with another's container does.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/faults/checker/checker.h"
#include "tests/faults/master_client.h"
#include "tests/faults/stored_samples.h"
#include "tests/support/child_process.h"
#include "tests/support/master_process.h"
#include "tests/support/scratch_directory.h"

namespace stepwell::faults {
namespace {

namespace fs = std::filesystem;
using testing::BuiltProgram;
using testing::ChildProcess;
using testing::Eventually;

constexpr int kWorkerCount = 4;
constexpr int kWorkerSamples = 50;  // at 50 a second
constexpr int kLivingSteps = 300;
constexpr int kDyingStep = 100;

// Where a process runs: beside the test, or as apart.sh says.
enum class Place { kHere, kPid, kMounts, kShortLived };

struct Row {
  const char* name;
  Place agent;
  Place trial;
};

std::string Text(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ContainersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root for namespaces";
    fs::create_directory(shared());
    fs::permissions(shared(), fs::perms(0777) | fs::perms::sticky_bit);
    fs::create_directory(scratch_ / "out");
    ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
  }

  // The temporary directory of all, in which their spool's root lies.
  std::string shared() const { return scratch_ / "tmp"; }
  std::string root() const { return absl::StrCat(shared(), "/stepwell-", geteuid()); }
  std::string LedgerPath(int rank) const { return scratch_ / absl::StrCat("out/ledger-", rank); }

  void Start(ChildProcess& process, Place place, const std::vector<std::string>& program,
             const std::string& log) {
    std::vector<std::string> words;
    if (place != Place::kHere) words = {"/bin/bash", APART, "pid"};
    if (place == Place::kShortLived) words[2] = "short-lived";
    if (place == Place::kMounts) {
      words[2] = "mounts";
      words.insert(words.end(), {scratch_.path(), shared(), scratch_ / "out"});
    }
    if (place != Place::kHere) words.push_back("--");
    words.insert(words.end(), program.begin(), program.end());
    process.Start(words,
                  {{"STEPWELL_SERVER", master_.grpc_address()},
                   {"STEPWELL_AGENT", BuiltProgram("stepwell")},
                   {"STEPWELL_AGENT_IDLE_EXIT", "1"},
                   {"STEPWELL_SYSTEM_ROOT", "/no/such/root"},
                   {"TMPDIR", shared()}},
                  scratch_ / log);
  }
  void StartAgent(Place place) {
    Start(agent_, place,
          {BuiltProgram("stepwell"), "agent", "--server", master_.grpc_address(), "--spool-dir",
           root(), "--no-auto-sampling"},
          "agent.log");
  }
  void StartRank(ChildProcess& trial, Place place, int rank, const std::vector<std::string>& more) {
    std::vector<std::string> words = {BuiltProgram("fault_trainer"),
                                      "--trial",
                                      "apart",
                                      "--rank",
                                      absl::StrCat(rank),
                                      "--workers",
                                      absl::StrCat(kWorkerCount),
                                      "--worker-samples",
                                      absl::StrCat(kWorkerSamples),
                                      "--log",
                                      LedgerPath(rank)};
    words.insert(words.end(), more.begin(), more.end());
    Start(trial, place, words, "trial.log");
  }

  bool IsServed() const {
    const int fd = open((root() + "/f1/agent.lock").c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    struct flock asked {};
    asked.l_type = F_WRLCK;
    asked.l_whence = SEEK_SET;
    asked.l_len = 1;
    const bool is_held = fcntl(fd, F_GETLK, &asked) == 0 && asked.l_type != F_UNLCK;
    close(fd);
    return is_held;
  }
  // The directories of workers that the rank's writer has; -1 = the rank has no writer yet.
  int WorkerFolders(int rank) const {
    std::error_code gone;
    for (const auto& writer : fs::directory_iterator(root() + "/f1", gone)) {
      const std::string json = Text(writer.path() / "writer.json");
      if (!absl::StrContains(json, absl::StrCat("\"rank\": ", rank, ","))) continue;
      int count = 0;
      for (const auto& entry : fs::directory_iterator(writer.path(), gone)) {
        const std::string name = entry.path().filename();
        count += entry.is_directory(gone) && name[0] == 'w' ? 1 : 0;
      }
      return count;
    }
    return -1;
  }
  bool IsFailed() {
    const auto trial = client_.Trial("apart");
    return trial && trial->trial().state() == v1::TRIAL_STATE_FAILED;
  }
  // All that ranks 0 and 1 and their workers recorded is stored once.
  void ExpectExact() {
    ASSERT_TRUE(Eventually([&] { return client_.Flush().empty(); }, absl::Seconds(60)));
    Ledger ledger;
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(ReadLedger(LedgerPath(rank), ledger), "");
      for (int worker = 0; worker < kWorkerCount; ++worker) {
        EXPECT_EQ(ReadLedger(absl::StrCat(LedgerPath(rank), "-w", worker), ledger), "");
      }
    }
    EXPECT_EQ(ledger.dropped_count, 0u);
    std::set<std::string> series;
    for (const LoggedSample& sample : ledger.samples) series.insert(sample.series);
    EXPECT_TRUE(series.contains("faults/worker_3"));
    StoredTrial stored;
    ASSERT_EQ(
        ReadStoredTrial(master_.database_url(), "apart", {series.begin(), series.end()}, stored),
        "");
    const Verdict verdict = Check(ledger, stored.samples, stored.gaps, Demand::kRecorded);
    std::cout << "recorded " << ledger.samples.size() << ", " << verdict.ToText() << "\n";
    EXPECT_TRUE(verdict.ok()) << verdict.ToText() << Logs();
    EXPECT_EQ(verdict.declared_count, 0u);
  }

  std::string Logs() const {
    return absl::StrCat(Text(scratch_ / "agent.log"), Text(root() + "/f1/agent.log"),
                        Text(scratch_ / "trial.log"));
  }

  const testing::ScratchDirectory scratch_;
  testing::MasterProcess master_{{.scratch = scratch_.path()}};
  MasterClient client_{master_.grpc_address()};
  ChildProcess agent_;
};

class NamespacesTest : public ContainersTest, public ::testing::WithParamInterface<Row> {};

TEST_P(NamespacesTest, AgentRule04_TheLockTellsWhoLives) {
  StartAgent(GetParam().agent);
  const bool is_served =
      Eventually([&] { return IsServed() || !agent_.running(); }, absl::Seconds(30));
  if (agent_.Wait(absl::ZeroDuration()) == "exit 77") GTEST_SKIP() << "no namespaces here";
  ASSERT_TRUE(is_served && agent_.running()) << Logs();

  ChildProcess living;
  ChildProcess dying;
  StartRank(living, GetParam().trial, 0, {"--steps", absl::StrCat(kLivingSteps)});
  StartRank(dying, GetParam().trial, 1, {"--die-at", absl::StrCat(kDyingStep)});
  EXPECT_TRUE(Eventually([&] { return WorkerFolders(0) == kWorkerCount; }, absl::Seconds(30)))
      << Logs();
  EXPECT_TRUE(Eventually([&] { return WorkerFolders(0) == 0; }, absl::Seconds(30)))
      << WorkerFolders(0) << " workers are taken for living\n"
      << Logs();
  EXPECT_TRUE(living.running()) << "the ends of its workers were seen only with its own";

  const char* killed = GetParam().trial == Place::kHere ? "killed by signal 9" : "exit 137";
  EXPECT_EQ(dying.Wait(absl::Seconds(60)), killed) << Logs();
  EXPECT_EQ(living.Wait(absl::Seconds(60)), "exit 0") << "not all is acked: " << Logs();
  EXPECT_TRUE(Eventually([&] { return IsFailed(); }, absl::Seconds(30))) << Logs();
  EXPECT_FALSE(fs::exists(root() + "/f1/agent.log")) << "a trial started an agent beside this one";

  ExpectExact();
}

TEST_F(ContainersTest, AgentRule08_AnAgentThatDiesWithItsContainerIsReplacedByAnotherTrial) {
  ChildProcess first;
  ChildProcess second;
  StartRank(first, Place::kShortLived, 0, {"--steps", absl::StrCat(kLivingSteps / 2)});
  const bool is_served =
      Eventually([&] { return IsServed() || !first.running(); }, absl::Seconds(30));
  if (first.Wait(absl::ZeroDuration()) == "exit 77") GTEST_SKIP() << "no namespaces here";
  ASSERT_TRUE(is_served) << Logs();
  StartRank(second, Place::kPid, 1, {"--steps", absl::StrCat(kLivingSteps * 2)});
  EXPECT_EQ(first.Wait(absl::Seconds(60)), "exit 0") << "not all is acked: " << Logs();
  const absl::Time ended = absl::Now();
  EXPECT_TRUE(Eventually([&] { return IsServed(); }, absl::Seconds(30))) << Logs();
  const absl::Duration took = absl::Now() - ended;
  EXPECT_LE(took, absl::Seconds(2));
  std::cout << "served again after " << took << "\n";
  ASSERT_TRUE(second.running()) << "it ended before its agent did";
  EXPECT_EQ(second.Wait(absl::Seconds(60)), "exit 0") << "not all is acked: " << Logs();
  ExpectExact();
}

INSTANTIATE_TEST_SUITE_P(Containers, NamespacesTest,
                         ::testing::Values(Row{"TrialApart", Place::kHere, Place::kPid},
                                           Row{"AgentApart", Place::kPid, Place::kHere},
                                           Row{"EachApart", Place::kPid, Place::kPid},
                                           Row{"MountsApart", Place::kMounts, Place::kMounts}),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace stepwell::faults
