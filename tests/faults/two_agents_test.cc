// Several agents are started on one spool directory while a training records: its lock lets one serve, the others leave,
// and of those that come when it was killed one takes over.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

constexpr int kOthers = 3;

class TwoAgentsTest : public ::testing::Test {
 protected:
  void StartOthers() {
    for (int i = 0; i < kOthers; ++i) {
      others_.emplace_back().Start(
          {testing::BuiltProgram("stepwell"), "agent", "--server", master_.grpc_address(),
           "--spool-dir", scene_.spool_dir(), "--no-auto-sampling"},
          {}, log());
    }
  }
  std::ptrdiff_t RunningCount() {
    return std::count_if(others_.begin(), others_.end(),
                         [](ChildProcess& other) { return other.running(); });
  }
  std::string log() const { return scene_.path("others.log"); }
  std::string Said() const {
    std::ifstream file(log());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void AwaitCommits(const std::string& when) {
    const auto committed = [&] {
      const auto status = client_.Status();
      return status ? status->chunks_committed() : 0;
    };
    const std::uint64_t before = committed();
    ASSERT_TRUE(scene_.Await(absl::StrCat("commits ", when), absl::Seconds(60), [&] {
      return committed() >= before + 20;
    })) << scene_.Logs();
  }

  Scene scene_{"two agents"};
  MasterProcess master_{{.scratch = scene_.path("")}};
  MasterClient client_{master_.grpc_address()};
  std::vector<ChildProcess> others_;
};

TEST_F(TwoAgentsTest, OneServesADirectoryAndTheOthersLeave) {
  ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
  scene_.StartAgent(master_.grpc_address());
  for (const int rank : {0, 1}) scene_.StartTrainer(rank, {{"--world-size", "2"}});
  AwaitCommits("of one");
  StartOthers();
  for (ChildProcess& other : others_) EXPECT_EQ(other.Wait(absl::Seconds(30)), "exit 0") << Said();
  const std::string refusal = absl::StrCat("another agent (process ", scene_.agent().pid(), ")");
  EXPECT_NE(Said().find(refusal), std::string::npos) << Said();
  AwaitCommits("of the same");
  EXPECT_TRUE(scene_.agent().running());
  scene_.agent().Kill();
  others_.clear();
  StartOthers();
  AwaitCommits("of its successor");
  EXPECT_TRUE(scene_.Await("the others left", absl::Seconds(30), [&] {
    return RunningCount() == 1;
  })) << Said();
  scene_.StopProducers(absl::Seconds(60));
  const Verdict verdict = scene_.ExpectExact(master_, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
  EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
