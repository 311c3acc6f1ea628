// A trial and its agent in different containers: other process numbers, other mounts; what they share
// is the spool's root and shared memory. The lock tells who lives, never a number.
//
// Invariant: every sample that a rank or a worker recorded is stored exactly once; the end of a worker
// is seen while its parent lives, and a rank's death by SIGKILL is told to the master; a trial that is
// served starts no agent of its own, and one whose agent dies with another's container does.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/faults/master_client.h"
#include "tests/faults/stored_samples.h"
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
using ::testing::Contains;
using ::testing::ContainsRegex;
using testing::Eventually;
using ::testing::IsEmpty;
using ::testing::Not;

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

class ContainersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root for namespaces";
    ChildProcess place;
    place.Start({"/bin/bash", SourcePlace("tests/faults/programs/apart.sh"), "pid", "--", "true"},
                {}, scratch_ / "place.log");
    if (place.Wait(absl::Seconds(30)) == "exit 77") GTEST_SKIP() << "no namespaces here";
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
    if (place != Place::kHere)
      words = {"/bin/bash", SourcePlace("tests/faults/programs/apart.sh"), "pid"};
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
  void StartAgent(Place place, const std::vector<std::string>& more = {"--no-auto-sampling"}) {
    std::vector<std::string> words = {BuiltProgram("stepwell"), "agent",       "--server",
                                      master_.grpc_address(),   "--spool-dir", root()};
    words.insert(words.end(), more.begin(), more.end());
    Start(agent_, place, words, "agent.log");
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
    const Ledger ledger =
        ReadLedgers([this](int rank) { return LedgerPath(rank); }, 2, kWorkerCount);
    EXPECT_TRUE(std::any_of(ledger.samples.begin(), ledger.samples.end(),
                            [](const auto& sample) { return sample.series == "faults/worker_3"; }));
    ExpectEachStoredOnce(master_, "apart", ledger);
    if (HasFailure()) std::cout << Logs();
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

// What the kernel says of a rank's process: of it, or of its absence.
class ProcessMetricsTest : public ContainersTest {
 protected:
  static constexpr char kUnseen[] =
      " cause 4 samples 0 .* process metrics of rank 0: not in this PID namespace";

  // Samples of a rank's process, of this machine, and what is told as absent.
  void Measure(Place agent, Place trial) {
    StartAgent(agent, {"--interval", "100ms"});
    const bool is_served =
        Eventually([&] { return IsServed() || !agent_.running(); }, absl::Seconds(30));
    ASSERT_TRUE(is_served && agent_.running()) << Logs();
    ChildProcess rank;
    StartRank(rank, trial, 0, {"--steps", "100"});
    EXPECT_EQ(rank.Wait(absl::Seconds(60)), "exit 0") << "not all is acked: " << Logs();
    // The machine's sampler closes a moment after the rank.
    EXPECT_TRUE(Eventually(
        [&] {
          const auto told = client_.Trial("apart");
          return told && told->trial().state() == v1::TRIAL_STATE_COMPLETED;
        },
        absl::Seconds(30)))
        << Logs();
    ASSERT_EQ(client_.Flush(), "");
    ASSERT_EQ(ReadStoredTrial(master_.database_url(), "apart",
                              {"cpu/cpu_process_threads", "memory/memory_process_resident",
                               "memory/memory_free"},
                              stored_),
              "");
  }
  std::vector<StoredSample> Of(const std::string& series) const {
    std::vector<StoredSample> samples;
    std::copy_if(stored_.samples.begin(), stored_.samples.end(), std::back_inserter(samples),
                 [&](const StoredSample& sample) { return sample.series == series; });
    return samples;
  }
  StoredTrial stored_;
};

TEST_F(ProcessMetricsTest,
       AgentRule16_OfAProcessInAnotherPidNamespaceTheAbsenceIsToldAndNothingElse) {
  Measure(Place::kPid, Place::kHere);
  if (IsSkipped() || HasFatalFailure()) return;
  EXPECT_THAT(Of("cpu/cpu_process_threads"), IsEmpty());
  EXPECT_THAT(Of("memory/memory_process_resident"), IsEmpty());
  EXPECT_FALSE(Of("memory/memory_free").empty()) << "the machine is the same";
  EXPECT_THAT(stored_.gap_texts, Contains(ContainsRegex(std::string("rank 0 ") + ".*" + kUnseen)));
}

// Its number there is another one.
TEST_F(ProcessMetricsTest, AgentRule16_AProcessInAPidNamespaceBelowTheAgentsIsSeen) {
  Measure(Place::kHere, Place::kPid);
  if (IsSkipped() || HasFatalFailure()) return;
  for (const char* series : {"cpu/cpu_process_threads", "memory/memory_process_resident"}) {
    const std::vector<StoredSample> samples = Of(series);
    ASSERT_FALSE(samples.empty()) << series << Logs();
    for (const StoredSample& sample : samples) EXPECT_EQ(sample.rank, 0);
  }
  EXPECT_THAT(stored_.gap_texts, Not(Contains(ContainsRegex(kUnseen))));
}

INSTANTIATE_TEST_SUITE_P(Containers, NamespacesTest,
                         ::testing::Values(Row{"TrialApart", Place::kHere, Place::kPid},
                                           Row{"AgentApart", Place::kPid, Place::kHere},
                                           Row{"EachApart", Place::kPid, Place::kPid},
                                           Row{"MountsApart", Place::kMounts, Place::kMounts}),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace stepwell::faults
