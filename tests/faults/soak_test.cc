// A round of the long run (tests/soak.sh): training processes record through an agent and a bad network
// to one master, and for as long as it is told (STEPWELL_SOAK_SECONDS, else a minute) one fault after
// the other happens to one of them, each chosen by chance. Then all is well again, all must arrive, and
// the checker compares. The last line sums the round up for who adds rounds together.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
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
    std::function<void()> happen;
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
  // With a failpoint it may die before it is seen ready.
  void KillMaster(const std::string& failpoints) {
    if (failpoints.empty()) {
      master_.Kill();
    } else {
      master_.Kill();
      master_.Start({failpoints});
      if (!Eventually([&] { return !master_.running(); }, absl::Seconds(20))) master_.Kill();
    }
    StartMaster();
  }
  void SignalPostgres(int signal) {
    const pid_t postmaster = master_.PostmasterPid();
    if (postmaster > 0) kill(postmaster, signal);
  }
  void Weather(const std::string& words, int low_ms, int high_ms) {
    proxy_.Set(words);
    Pause(low_ms, high_ms);
    proxy_.Set("");
  }
  void RestartAgent() { scene_.StartAgent(proxy_.address()); }

  std::vector<Fault> Faults() {
    return {
        {"master killed", [&] { KillMaster(""); }},
        {"master killed before an ack",
         [&] { KillMaster(absl::StrCat("after_commit_before_ack=exit@", scene_.Random(1, 10))); }},
        {"master killed behind the guard",
         [&] { KillMaster(absl::StrCat("commit_after_guard=exit@", scene_.Random(1, 10))); }},
        {"master stopped",
         [&] {
           master_.Pause();
           Pause(100, 3000);
           master_.Continue();
         }},
        {"master ended",
         [&] {
           EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
           StartMaster();
         }},
        {"postgres killed", [&] { SignalPostgres(SIGKILL); }},
        {"postgres stopped fast", [&] { SignalPostgres(SIGINT); }},
        {"postgres stopped at once", [&] { SignalPostgres(SIGQUIT); }},
        {"postmaster hung",
         [&] {
           const pid_t postmaster = master_.PostmasterPid();
           if (postmaster > 0) kill(postmaster, SIGSTOP);
           Pause(100, 2000);
           if (postmaster > 0) kill(postmaster, SIGCONT);
         }},
        {"agent killed",
         [&] {
           scene_.agent().Kill();
           RestartAgent();
         }},
        {"agent killed before a frame",
         [&] {
           scene_.agent().Kill();
           scene_.StartAgent(proxy_.address(), {},
                             absl::StrCat("spool_append=exit@", scene_.Random(1, 20)));
           (void)scene_.agent().Wait(absl::Seconds(10));
           scene_.agent().Kill();
           RestartAgent();
         }},
        {"agent stopped",
         [&] {
           scene_.agent().Signal(SIGSTOP);
           Pause(50, 500);
           scene_.agent().Signal(SIGCONT);
         }},
        {"connections reset", [&] { proxy_.ResetAll(); }},
        {"connections reset again and again", [&] { Weather("reset=20000", 500, 2000); }},
        {"the network swallows what comes", [&] { Weather("hold=up", 100, 2000); }},
        {"the network swallows what goes", [&] { Weather("hold=down", 100, 2000); }},
        {"the network is slow", [&] { Weather("delay=200ms jitter=100ms", 500, 2000); }},
        {"the network flaps", [&] { Weather("flap=300ms:200ms", 500, 2000); }},
    };
  }

  Scene scene_{::testing::UnitTest::GetInstance()->current_test_info()->name()};
  MasterProcess master_{{.scratch = scene_.path("")}};
  MasterClient client_{master_.grpc_address()};
  ChaosProxy proxy_{master_.grpc_address(), scene_.random()()};
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
  int count = 0;
  while (scene_.Elapsed() < length && !HasFatalFailure()) {
    const Fault& fault =
        faults[static_cast<std::size_t>(scene_.Random(0, static_cast<int>(faults.size()) - 1))];
    fault.happen();
    ++happened[fault.name];
    Pause(20, 400);
    if (++count % kFaultsPerProgress != 0) continue;
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
  for (const auto& [name, times] : happened) scene_.Say(absl::StrCat(times, " x ", name));
  scene_.StopProducers(absl::Seconds(300));
  const Verdict verdict = scene_.ExpectExact(master_, Demand::kRecorded);
  EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
  std::cout << "soak: samples " << verdict.held_count + verdict.declared_count << " declared "
            << verdict.declared_count << " faults " << count << " kinds " << happened.size()
            << " ok " << (verdict.ok() && !HasFailure() ? 1 : 0) << std::endl;
}

}  // namespace
}  // namespace stepwell::faults
