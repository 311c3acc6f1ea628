// A disk that answers EIO, or that it is full, or a quota used up: strace makes what the agent writes and syncs fail so,
// one after the other, while a training goes on. The agent must live and take up again where it was; nothing is lost that the rings can hold.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

constexpr char kStrace[] = "/usr/bin/strace";
// Some seconds of two trainings, far from what their rings hold.
constexpr std::size_t kSamplesMeanwhile = 2000;

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class FailingSpoolTest : public ::testing::Test {
 protected:
  struct Failure {
    std::string call;
    std::string error;
    std::string words;  // as the agent's log has it
  };
  // Until `failing` works again.
  void FailAndRecover(const Failure& failing) {
    AwaitCommits(20);
    // One that is new has told nothing yet: troubles are told once a minute.
    scene_.agent().Kill();
    unlink(scene_.path("agent.log").c_str());
    scene_.StartAgent(master_.grpc_address());
    AwaitCommits(20);
    ChildProcess strace;
    strace.Start({kStrace, "-f", "-q", "-o", "/dev/null", "-e", "trace=" + failing.call, "-e",
                  absl::StrCat("inject=", failing.call, ":error=", failing.error), "-p",
                  absl::StrCat(scene_.agent().pid())},
                 {}, scene_.path("strace.log"));
    const bool is_told =
        scene_.Await(failing.call + " fails, " + failing.error, absl::Seconds(60), [&] {
          return absl::StrContains(ReadText(scene_.path("agent.log")), failing.words) ||
                 !strace.running();
        });
    const std::string traced = ReadText(scene_.path("strace.log"));
    if (!strace.running() && absl::StrContains(traced, "ptrace")) GTEST_SKIP() << traced;
    ASSERT_TRUE(is_told) << traced << scene_.Logs();
    const std::size_t recorded = scene_.ReadLedgers().samples.size();
    EXPECT_TRUE(scene_.Await("the training goes on", absl::Seconds(60), [&] {
      return scene_.ReadLedgers().samples.size() >= recorded + kSamplesMeanwhile;
    })) << scene_.Logs();
    EXPECT_TRUE(scene_.agent().running()) << scene_.Logs();
    strace.Kill();  // lets go of it
    scene_.Say("the disk works again");
    AwaitCommits(20);
  }
  void AwaitCommits(std::uint64_t count) {
    const auto committed = [&] {
      const auto status = client_.Status();
      return status ? status->chunks_committed() : 0;
    };
    const std::uint64_t first = committed();
    ASSERT_TRUE(scene_.Await(absl::StrCat(count, " chunks"), absl::Seconds(60), [&] {
      return committed() >= first + count;
    })) << scene_.Logs();
  }

  Scene scene_{::testing::UnitTest::GetInstance()->current_test_info()->name()};
  MasterProcess master_{{.scratch = scene_.path("")}};
  MasterClient client_{master_.grpc_address()};
};

TEST_F(FailingSpoolTest, AnErrorOfTheDiskIsToldAndCostsNothing) {
  if (access(kStrace, X_OK) != 0) GTEST_SKIP() << "strace is not installed";
  ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
  scene_.StartAgent(master_.grpc_address());
  for (const int rank : {0, 1}) scene_.StartTrainer(rank, {{"--world-size", "2"}});
  for (const Failure& failing : {Failure{"fdatasync", "EIO", "Input/output error"},
                                 Failure{"pwrite64", "EIO", "Input/output error"},
                                 Failure{"pwrite64", "ENOSPC", "No space left on device"},
                                 Failure{"pwrite64", "EDQUOT", "Disk quota exceeded"}}) {
    FailAndRecover(failing);
    if (HasFatalFailure() || IsSkipped()) return;
  }
  scene_.StopProducers(absl::Seconds(60));
  const Verdict verdict = scene_.ExpectExact(master_, Demand::kRecorded, scene_.DropsOfRecorders());
  EXPECT_EQ(verdict.declared_count, scene_.ReadLedgers().dropped_count);
  EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
