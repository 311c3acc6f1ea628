// A disk whose fsync fails: strace makes the calls of PostgreSQL fail as such a disk would. PostgreSQL
// must panic, for what it wrote may be gone, and recover from its log.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

namespace fs = std::filesystem;

constexpr char kStrace[] = "/usr/bin/strace";

// Of a process that ends meanwhile: what there was.
std::string Text(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The postmaster and its children.
std::vector<pid_t> ServerProcesses(pid_t postmaster) {
  std::vector<pid_t> pids = {postmaster};
  const std::string parent = absl::StrCat("PPid:\t", postmaster, "\n");
  std::error_code gone;
  for (fs::directory_iterator entry("/proc", gone), end; !gone && entry != end;
       entry.increment(gone)) {
    int pid = 0;
    if (!absl::SimpleAtoi(entry->path().filename().string(), &pid)) continue;
    if (absl::StrContains(Text(entry->path() / "status"), parent)) pids.push_back(pid);
  }
  return pids;
}

// Lines of PostgreSQL's own log, wherever below the data directory it lies.
int CountInServerLogs(const std::string& directory, const std::string& text) {
  int count = 0;
  std::error_code gone;
  for (fs::recursive_directory_iterator entry(directory, gone), end; !gone && entry != end;
       entry.increment(gone)) {
    if (entry->path().extension() != ".log") continue;
    const std::string log = Text(entry->path());
    for (std::size_t at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) {
      ++count;
    }
  }
  return count;
}

TEST(FailingSyncTest, PostgresPanicsRecoversAndNothingIsLost) {
  if (access(kStrace, X_OK) != 0) GTEST_SKIP() << "strace is not installed";
  Scene scene("failing sync");
  MasterProcess master({.scratch = scene.path("")});
  MasterClient client(master.grpc_address());
  const auto committed = [&] {
    const auto status = client.Status();
    return status ? status->chunks_committed() : 0;
  };
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  scene.StartAgent(master.grpc_address());
  scene.StartTrainer(0, {{"--world-size", "2"}});
  scene.StartTrainer(1, {{"--world-size", "2"}});
  scene.StartRawWriter(10, master.grpc_address());
  for (int round = 1; round <= 2; ++round) {
    const std::uint64_t before = committed();
    ASSERT_TRUE(
        scene.Await("20 chunks", absl::Seconds(60), [&] { return committed() >= before + 20; }))
        << scene.Logs() << master.LogTail();
    const pid_t postmaster = master.PostmasterPid();
    ASSERT_GT(postmaster, 0);
    std::vector<std::string> words = {kStrace,
                                      "-f",
                                      "-q",
                                      "-o",
                                      "/dev/null",
                                      "-e",
                                      "trace=fsync,fdatasync",
                                      "-e",
                                      "inject=fsync,fdatasync:error=EIO"};
    for (const pid_t pid : ServerProcesses(postmaster)) {
      words.insert(words.end(), {"-p", absl::StrCat(pid)});
    }
    ChildProcess strace;
    strace.Start(words, {}, scene.path("strace.log"));
    const bool panicked = scene.Await("PostgreSQL panics", absl::Seconds(60), [&] {
      return CountInServerLogs(master.data_directory(), "PANIC:  could not f") >= round ||
             !strace.running();
    });
    const std::string traced = Text(scene.path("strace.log"));
    if (!strace.running() && absl::StrContains(traced, "ptrace")) GTEST_SKIP() << traced;
    ASSERT_TRUE(panicked) << traced << master.LogTail();
    strace.Kill();  // lets go of all
    scene.Say("the disk syncs again");
  }
  const std::uint64_t before = committed();
  EXPECT_TRUE(scene.Await("20 chunks more", absl::Seconds(60), [&] {
    return committed() >= before + 20;
  })) << master.LogTail();
  EXPECT_GE(CountInServerLogs(master.data_directory(), "PANIC:  could not f"), 2);
  scene.StopProducers(absl::Seconds(60));
  const Verdict verdict = scene.ExpectExact(master, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
