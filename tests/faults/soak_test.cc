// A round of the long run (tests/soak.sh): training processes record through an agent and a bad network
// to one master, and for as long as it is told (STEPWELL_SOAK_SECONDS, else a minute) one fault after
// the other happens to one of them, each chosen by chance. Then all is well again, all must arrive but what
// recorders themselves dropped, or what lay in a spool's record that a fault damaged, and the checker compares. A fault counts
// where it hit something: a signal to a postmaster that is not there is none. A line for each kind, one for each that cannot be had here,
// and the last one sums the round up, for who adds rounds together. Trials beside the one that is checked are made to be merged and deleted.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "tests/faults/child_pids.h"
#include "tests/faults/database_text.h"
#include "tests/faults/master_client.h"
#include "tests/faults/network/chaos_proxy.h"
#include "tests/faults/scene.h"
#include "tests/faults/set_clocks.h"
#include "tests/faults/small_disk.h"

namespace stepwell::faults {
namespace {

namespace fs = std::filesystem;

constexpr int kTrainerCount = 2;
// So many faults without a commit in between at most.
constexpr int kFaultsPerProgress = 5;
// What a byte of a spool may cost, or its full disk: a record of a rank's, which has what its rings held since the one before. A
// killed agent is back within a second or two.
constexpr int kSecondsPerRecord = 3;
constexpr int kSamplesPerStep = 12;  // of a trainer, at most
constexpr char kDiskSize[] = "4g";   // of the database's, and of the spool's
// Those that some machines cannot have.
constexpr char kDatabaseDiskFull[] = "the database's disk full";
constexpr char kSpoolDiskFull[] = "the spool's disk full";
constexpr char kClockSet[] = "the clock set";

class SoakTest : public ::testing::Test {
 protected:
  ~SoakTest() override {
    master_.Kill();
    for (const std::string& disk : disks_) umount2(disk.c_str(), MNT_DETACH);
  }
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

  // True: it is a disk of its own, which the fault of this name fills up.
  bool Mount(const std::string& directory, const char* fault) {
    const std::string why = MountSmallDisk(directory, kDiskSize);
    if (!why.empty()) {
      scene_.Say(directory + " is on no disk of its own: " + why);
      impossible_.emplace_back(fault, why);
      return false;
    }
    disks_.push_back(directory);
    return chmod(directory.c_str(), 0711) == 0;  // PostgreSQL's own user passes through it
  }
  // True: PostgreSQL found no room, whether it refused or panicked.
  bool FillDatabaseDisk() {
    const auto told = [&] {
      return master_.CountInLog("is full)") + master_.CountInLog("No space left");
    };
    const int before = told();
    const bool is_full = TightenSmallDisk(master_.data_directory());
    const bool hit =
        is_full && Eventually(
                       [&] {
                         DatabaseText(master_.database_url(), "select pg_switch_wal()");
                         return told() > before;
                       },
                       absl::Seconds(3));
    Pause(0, 1000);
    EXPECT_TRUE(ResizeSmallDisk(master_.data_directory(), kDiskSize));
    return hit;
  }
  bool FillSpoolDisk() {
    const bool is_full = TightenSmallDisk(spool_disk_);
    Pause(100, 1000);
    EXPECT_TRUE(ResizeSmallDisk(spool_disk_, kDiskSize));
    if (!is_full || !scene_.agent().running()) return false;
    ++full_spool_count_;
    return true;
  }
  // Once in a round: who drops samples while clocks and anchors differ tells another time of them than who recorded them. So
  // rings are emptied before, and anchors are taken anew behind it.
  bool SetClock() {
    if (std::exchange(clock_was_set_, true)) return false;
    static const std::vector<absl::Duration> kOffsets = {
        -absl::Hours(24), -absl::Hours(1), absl::Minutes(10), absl::Hours(1), absl::Hours(24)};
    const std::uint64_t before = committed();
    if (!Eventually([&] { return committed() > before + 3; }, absl::Seconds(30))) return false;
    Pause(1500, 1500);
    clocks_->SetWall(kOffsets[static_cast<std::size_t>(
        scene_.Random(0, static_cast<int>(kOffsets.size()) - 1))]);
    Pause(200, 2000);
    clocks_->SetWall(absl::ZeroDuration());
    Pause(12'000, 12'000);
    return true;
  }
  // One byte of what was written last, as a rule of a record that the master has not: nothing came to it for a while before.
  bool DamageSpool() {
    proxy_.Set("hold=up");
    Pause(200, 600);
    scene_.agent().Kill();
    std::vector<std::string> segments;
    std::error_code gone;
    for (const auto& entry : fs::recursive_directory_iterator(scene_.spool_dir(), gone)) {
      if (entry.path().extension() == ".seg" && entry.file_size() > 0)
        segments.push_back(entry.path());
    }
    bool hit = false;
    if (!segments.empty()) {
      const std::string& segment = segments[static_cast<std::size_t>(
          scene_.Random(0, static_cast<int>(segments.size()) - 1))];
      const auto bytes = static_cast<int>(fs::file_size(segment));
      const int at = scene_.Random(std::max(0, bytes - 20'000), bytes - 1);
      std::fstream file(segment, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(at);
      const int byte = file.get();
      file.seekp(at);
      hit = byte >= 0 && file.put(static_cast<char>(byte ^ 0x10)).flush().good();
    }
    damaged_count_ += hit ? 1 : 0;
    proxy_.Set("");
    RestartAgent();
    return hit;
  }

  std::vector<Fault> Faults() {
    std::vector<Fault> faults = {
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
        {"a byte of a spool turned", [&] { return DamageSpool(); }},
    };
    if (database_has_disk_) {
      faults.push_back({kDatabaseDiskFull, [&] { return FillDatabaseDisk(); }});
    }
    if (!spool_disk_.empty()) {
      faults.push_back({kSpoolDiskFull, [&] { return FillSpoolDisk(); }});
    }
    if (clocks_) faults.push_back({kClockSet, [&] { return SetClock(); }});
    return faults;
  }

  // What gaps may tell: all that recorders dropped, and so much at most that lay in damaged records (the last one of a file is cut
  // off as torn, and of a definition all that it defined is rejected), or that a full disk left no room for.
  Allowance AllowanceFor(int steps_per_second) const {
    Allowance allowed = scene_.DropsOfRecorders();
    const int count = damaged_count_ + full_spool_count_;
    if (damaged_count_ > 0) {
      allowed.causes.insert({Cause::kSpoolCorrupt, Cause::kSpoolLost, Cause::kRejected});
      allowed.with_uncounted = true;
      allowed.stretches_max = static_cast<std::size_t>(damaged_count_);
    }
    if (full_spool_count_ > 0) allowed.causes.insert(Cause::kSpoolFull);
    allowed.count_max += static_cast<std::uint64_t>(count) * kSecondsPerRecord *
                         static_cast<std::uint64_t>(steps_per_second * kSamplesPerStep);
    return allowed;
  }

  Scene scene_{::testing::UnitTest::GetInstance()->current_test_info()->name()};
  std::optional<SetClocks> clocks_;  // of every other round, before anybody is started
  MasterProcess master_{{.scratch = scene_.path("")}};
  MasterClient client_{master_.grpc_address()};
  ChaosProxy proxy_{master_.grpc_address(), scene_.random()()};
  int beside_count_ = 0;
  // Closed trials that are there still.
  std::vector<std::string> beside_;
  std::vector<std::string> disks_;
  std::vector<std::pair<std::string, std::string>> impossible_;  // faults, and why not here
  bool database_has_disk_ = false;
  std::string spool_disk_;  // empty = none
  int damaged_count_ = 0;
  int full_spool_count_ = 0;
  bool clock_was_set_ = false;
};

TEST_F(SoakTest, LongRoundOfFaultsLosesAndDoublesNothing) {
  const char* seconds = std::getenv("STEPWELL_SOAK_SECONDS");
  const absl::Duration length = absl::Seconds(seconds == nullptr ? 60 : std::atoi(seconds));
  const char* rate = std::getenv("STEPWELL_SOAK_RATE");
  const std::string steps_per_second = rate == nullptr ? "100" : rate;
  if (!SetClocks::kIsPossible) {
    impossible_.emplace_back(kClockSet, "nothing is preloaded before a sanitizer");
  } else if (scene_.Random(0, 1) == 1) {
    clocks_.emplace(scene_);
  }
  database_has_disk_ = Mount(master_.data_directory(), kDatabaseDiskFull);
  if (Mount(scene_.path("spool-disk"), kSpoolDiskFull)) {
    spool_disk_ = scene_.path("spool-disk");
    scene_.set_spool_dir(spool_disk_ + "/spool");
    ASSERT_EQ(mkdir(scene_.spool_dir().c_str(), 0700), 0);
  }
  ASSERT_NO_FATAL_FAILURE(StartMaster());
  RestartAgent();
  for (int rank = 0; rank < kTrainerCount; ++rank) {
    scene_.StartTrainer(
        rank, {{"--world-size", absl::StrCat(kTrainerCount)}, {"--rate", steps_per_second}});
  }
  ASSERT_TRUE(Eventually([&] { return committed() > 0; }, absl::Seconds(60)))
      << scene_.Logs() << master_.LogTail();
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
  for (const auto& [fault, why] : impossible_) {
    std::cout << "soak impossible: " << fault << " (" << why << ")\n";
  }
  scene_.Say(absl::StrCat("of ", tried_count, " faults ", hit_count, " hit something"));
  scene_.StopProducers(absl::Seconds(300));
  const Verdict verdict = scene_.ExpectExact(master_, Demand::kRecorded,
                                             AllowanceFor(std::atoi(steps_per_second.c_str())));
  EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
  std::cout << "soak: samples " << verdict.held_count + verdict.declared_count << " declared "
            << verdict.declared_count << " faults " << hit_count << " tried " << tried_count
            << " ok " << (verdict.ok() && !HasFailure() ? 1 : 0) << std::endl;
}

}  // namespace
}  // namespace stepwell::faults
