// A round of the long run (tests/soak.sh): training processes record through an agent and a bad network
// to one master, and for as long as it is told (STEPWELL_SOAK_SECONDS, else a minute) one fault after
// the other happens to one of them, each chosen by chance. Then all is well again, all must arrive but what
// recorders themselves dropped, and the checker compares. A fault counts where it hit something: a signal
// to a postmaster that is not there is none. A line for each kind, and the last one sums the round up, for who adds rounds
// together. Trials beside the one that is checked are made to be merged and deleted.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "tests/faults/child_pids.h"
#include "tests/faults/master_client.h"
#include "tests/faults/network/chaos_proxy.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

constexpr int kTrainerCount = 2;
// So many faults without a commit in between at most.
constexpr int kFaultsPerProgress = 5;

class SoakTest : public ::testing::Test {
 protected:
  struct Fault {
    const char* name;
    // Whether it hit something.
    std::function<bool()> happen;
  };

  std::uint64_t committed() {
    const auto status = client_.Status();
    return status ? status->chunks_committed() : 0;
  }
  void Pause(int low_ms, int high_ms) {
    const absl::Time end = absl::Now() + absl::Milliseconds(scene_.Random(low_ms, high_ms));
    Eventually([&] { return absl::Now() >= end; }, absl::Seconds(60));
  }
  void StartMaster() { ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail(); }
  bool KillMaster() {
    const bool was_there = master_.running();
    master_.Kill();
    StartMaster();
    return was_there;
  }
  // True: it died at one of them, of which so many passes are let through at most. It may die before it is seen ready.
  bool KillMasterAt(
      const std::vector<std::string>& points, int skip_max,
      const std::function<void()>& urge = [] {}) {
    const auto deaths = [&] {
      int count = 0;
      for (const std::string& point : points) {
        count += master_.CountInLog(absl::StrCat("failpoint ", point, " exit"));
      }
      return count;
    };
    const int before = deaths();
    const std::string skipped = absl::StrCat("=exit@", scene_.Random(0, skip_max));
    master_.Kill();
    master_.Start({absl::StrCat(absl::StrJoin(points, skipped + ";"), skipped)});
    const auto is_dead = [&] {
      if (master_.running()) urge();
      return !master_.running();
    };
    if (!Eventually(is_dead, absl::Seconds(20))) master_.Kill();
    StartMaster();
    return deaths() > before;
  }
  std::string AnyOf(const std::vector<std::string>& points) {
    return points[static_cast<std::size_t>(scene_.Random(0, static_cast<int>(points.size()) - 1))];
  }
  // What comes in bulk goes straight into leaves, by points of its own.
  bool KillMasterInAFold() {
    static const std::vector<std::vector<std::string>> kPoints = {
        {"before_fold", "bulk_before_commit"},
        {"fold_before_commit", "bulk_before_commit"},
        {"fold_after_commit", "bulk_after_commit"},
        {"after_fold_before_heads", "bulk_after_commit"}};
    return KillMasterAt(kPoints[static_cast<std::size_t>(scene_.Random(0, 3))], 2,
                        [&] { (void)client_.Flush(); });
  }
  // Of a writer that opens, closes and is merged while the point is armed.
  bool KillMasterInAMerge() {
    ChildProcess& writer = BeginATrial();
    const auto close_and_fold = [&] {
      if (writer.running()) writer.Signal(SIGTERM);
      (void)client_.Flush();
    };
    const bool died =
        KillMasterAt({AnyOf({"merge_before_delete", "merge_before_commit", "merge_after_commit"})},
                     0, close_and_fold);
    AwaitTheEndOf(writer);
    return died;
  }
  // The deletion of a trial is a sweep of its rows. Afterwards nothing of it is left.
  bool KillMasterInASweep() {
    if (beside_.empty()) AwaitTheEndOf(BeginATrial());
    const std::string doomed = beside_.back();
    beside_.pop_back();
    const bool died = KillMasterAt({AnyOf({"delete_before_commit", "delete_after_commit",
                                           "sweep_before_commit", "sweep_after_commit"})},
                                   0, [&] { (void)client_.Delete(doomed); });
    EXPECT_TRUE(Eventually([&] { return client_.Delete(doomed).empty(); }, absl::Seconds(60)))
        << client_.Delete(doomed) << master_.LogTail();
    return died;
  }
  // Beside the one that is checked, of one writer.
  ChildProcess& BeginATrial() {
    beside_.push_back(absl::StrCat("beside-", beside_count_++));
    ChildProcess& writer = scene_.StartRawWriter(
        0, master_.grpc_address(),
        {{"--trial", beside_.back()}, {"--log", scene_.path(beside_.back())}, {"--chunks", "3"}});
    Pause(400, 600);  // until it has sealed them, and ends in order when it is told to
    return writer;
  }
  void AwaitTheEndOf(ChildProcess& writer) {
    if (writer.running()) writer.Signal(SIGTERM);
    EXPECT_EQ(writer.Wait(absl::Seconds(90)), "exit 0") << scene_.Logs() << master_.LogTail();
  }
  bool StopMasterFor(int low_ms, int high_ms) {
    const bool was_there = master_.running();
    master_.Pause();
    Pause(low_ms, high_ms);
    master_.Continue();
    return was_there;
  }
  bool EndMaster() {
    const bool was_there = master_.running();
    EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
    StartMaster();
    return was_there;
  }
  bool SignalPostgres(int signal) {
    const pid_t postmaster = master_.PostmasterPid();
    return postmaster > 0 && kill(postmaster, signal) == 0;
  }
  bool HangPostmaster(int low_ms, int high_ms) {
    const pid_t postmaster = master_.PostmasterPid();
    const bool was_there = postmaster > 0 && kill(postmaster, SIGSTOP) == 0;
    Pause(low_ms, high_ms);
    if (was_there) kill(postmaster, SIGCONT);
    return was_there;
  }
  // Any child of the postmaster, which ends all connections for it, recovers and goes on.
  bool KillBackend() {
    const pid_t postmaster = master_.PostmasterPid();
    const std::vector<pid_t> children =
        postmaster > 0 ? ChildPids(postmaster) : std::vector<pid_t>();
    if (children.empty()) return false;
    const int victim = scene_.Random(0, static_cast<int>(children.size()) - 1);
    return kill(children[static_cast<std::size_t>(victim)], SIGKILL) == 0;
  }
  bool KillAgent() {
    const bool was_there = scene_.agent().running();
    scene_.agent().Kill();
    RestartAgent();
    return was_there;
  }
  bool KillAgentBeforeAFrame() {
    scene_.agent().Kill();
    scene_.StartAgent(proxy_.address(), {},
                      absl::StrCat("spool_append=exit@", scene_.Random(1, 20)));
    const std::string ending = scene_.agent().Wait(absl::Seconds(10));
    scene_.agent().Kill();
    RestartAgent();
    return ending == "killed by signal 9";
  }
  bool StopAgentFor(int low_ms, int high_ms) {
    const bool was_there = scene_.agent().running();
    scene_.agent().Signal(SIGSTOP);
    Pause(low_ms, high_ms);
    scene_.agent().Signal(SIGCONT);
    return was_there;
  }
  bool ResetAll() {
    const bool was_there = proxy_.counts().open > 0;
    proxy_.ResetAll();
    return was_there;
  }
  // True: a connection was in it.
  bool Weather(const std::string& words, int low_ms, int high_ms) {
    const ChaosProxy::Counts before = proxy_.counts();
    proxy_.Set(words);
    Pause(low_ms, high_ms);
    proxy_.Set("");
    return before.open > 0 || proxy_.counts().accepted > before.accepted;
  }
  // True: it ended one.
  bool WeatherThatResets(const std::string& words, int low_ms, int high_ms) {
    const std::uint64_t before = proxy_.counts().reset;
    (void)Weather(words, low_ms, high_ms);
    return proxy_.counts().reset > before;
  }
  void RestartAgent() { scene_.StartAgent(proxy_.address()); }

  std::vector<Fault> Faults() {
    return {
        {"master killed", [&] { return KillMaster(); }},
        {"master killed before an ack",
         [&] { return KillMasterAt({"after_commit_before_ack"}, 10); }},
        {"master killed behind the guard",
         [&] { return KillMasterAt({"commit_after_guard"}, 10); }},
        {"master killed in a fold", [&] { return KillMasterInAFold(); }},
        {"master killed in a merge", [&] { return KillMasterInAMerge(); }},
        {"master killed in a sweep", [&] { return KillMasterInASweep(); }},
        {"master stopped", [&] { return StopMasterFor(100, 3000); }},
        {"master ended", [&] { return EndMaster(); }},
        {"postgres killed", [&] { return SignalPostgres(SIGKILL); }},
        {"a child of postgres killed", [&] { return KillBackend(); }},
        {"postgres stopped fast", [&] { return SignalPostgres(SIGINT); }},
        {"postgres stopped at once", [&] { return SignalPostgres(SIGQUIT); }},
        {"postmaster hung", [&] { return HangPostmaster(100, 2000); }},
        {"agent killed", [&] { return KillAgent(); }},
        {"agent killed before a frame", [&] { return KillAgentBeforeAFrame(); }},
        {"agent stopped", [&] { return StopAgentFor(50, 500); }},
        {"connections reset", [&] { return ResetAll(); }},
        {"connections reset again and again",
         [&] { return WeatherThatResets("reset=20000", 500, 2000); }},
        {"the network swallows what comes", [&] { return Weather("hold=up", 100, 2000); }},
        {"the network swallows what goes", [&] { return Weather("hold=down", 100, 2000); }},
        {"the network is slow", [&] { return Weather("delay=200ms jitter=100ms", 500, 2000); }},
        {"the network flaps", [&] { return WeatherThatResets("flap=300ms:200ms", 500, 2000); }},
    };
  }

  Scene scene_{::testing::UnitTest::GetInstance()->current_test_info()->name()};
  MasterProcess master_{{.scratch = scene_.path("")}};
  MasterClient client_{master_.grpc_address()};
  ChaosProxy proxy_{master_.grpc_address(), scene_.random()()};
  int beside_count_ = 0;
  // Closed trials that are there still.
  std::vector<std::string> beside_;
};

TEST_F(SoakTest, LongRoundOfFaultsLosesAndDoublesNothing) {
  const char* seconds = std::getenv("STEPWELL_SOAK_SECONDS");
  const absl::Duration length = absl::Seconds(seconds == nullptr ? 60 : std::atoi(seconds));
  const char* rate = std::getenv("STEPWELL_SOAK_RATE");
  StartMaster();
  RestartAgent();
  for (int rank = 0; rank < kTrainerCount; ++rank) {
    scene_.StartTrainer(rank, {{"--world-size", absl::StrCat(kTrainerCount)},
                               {"--rate", rate == nullptr ? "100" : rate}});
  }
  const std::vector<Fault> faults = Faults();
  std::map<std::string, int> happened;
  int tried_count = 0;
  int hit_count = 0;
  while (scene_.Elapsed() < length && !HasFatalFailure()) {
    const Fault& fault =
        faults[static_cast<std::size_t>(scene_.Random(0, static_cast<int>(faults.size()) - 1))];
    if (fault.happen()) {
      ++happened[fault.name];
      ++hit_count;
    }
    Pause(20, 400);
    if (++tried_count % kFaultsPerProgress != 0) continue;
    const std::uint64_t before = committed();
    ASSERT_TRUE(Eventually(
        [&] {
          const std::uint64_t now = committed();
          return now > before + 1 || (now > 0 && now < before);
        },
        absl::Seconds(120)))
        << "nothing is committed after " << fault.name << "\n"
        << scene_.Logs() << master_.LogTail();
  }
  for (const Fault& fault : faults) {
    std::cout << "soak kind: " << happened[fault.name] << " " << fault.name << "\n";
  }
  scene_.Say(absl::StrCat("of ", tried_count, " faults ", hit_count, " hit something"));
  scene_.StopProducers(absl::Seconds(300));
  const Verdict verdict = scene_.ExpectExact(master_, Demand::kRecorded, scene_.DropsOfRecorders());
  EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
  std::cout << "soak: samples " << verdict.held_count + verdict.declared_count << " declared "
            << verdict.declared_count << " faults " << hit_count << " tried " << tried_count
            << " ok " << (verdict.ok() && !HasFailure() ? 1 : 0) << std::endl;
}

}  // namespace
}  // namespace stepwell::faults
