// A master is killed under load, and a PostgreSQL remains that is nobody's child: one that answers is adopted by the next master,
// one that does not is replaced.
#include <gtest/gtest.h>
#include <signal.h>

#include "absl/strings/str_cat.h"
#include "tests/faults/database_text.h"
#include "tests/faults/master_client.h"
#include "tests/faults/others_postgres.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

class AdoptedOrphanTest : public ::testing::Test {
 protected:
  void AwaitCommits(const std::string& when) {
    const auto committed = [&] {
      const auto status = client_.Status();
      return status ? status->chunks_committed() : 0;
    };
    const std::uint64_t before = committed();
    ASSERT_TRUE(scene_.Await(absl::StrCat("commits ", when), absl::Seconds(60), [&] {
      return committed() >= before + 20;
    })) << master_.LogTail();
  }

  Scene scene_{"adopted orphan"};
  MasterProcess master_{{.scratch = scene_.path("")}};
  MasterClient client_{master_.grpc_address()};
};

TEST_F(AdoptedOrphanTest, OneThatAnswersIsAdoptedAndAnotherReplacedAndNothingIsLost) {
  ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
  scene_.StartAgent(master_.grpc_address());
  for (const int rank : {0, 1}) scene_.StartTrainer(rank, {{"--world-size", "2"}});
  scene_.StartRawWriter(10, master_.grpc_address());
  AwaitCommits("of a private one");
  // The kernel ends the private one with its master.
  master_.Kill();
  ASSERT_TRUE(scene_.Await("the private one's end", absl::Seconds(30),
                           [&] { return master_.PostmasterPid() == 0; }));
  OthersPostgres orphan(master_.data_directory());
  ASSERT_EQ(orphan.Start(), "");
  ASSERT_TRUE(scene_.Await("the orphan lets somebody in", absl::Seconds(30), [&] {
    return DatabaseText(master_.database_url(), "select 1") == "1";
  }));
  ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
  EXPECT_EQ(master_.PostmasterPid(), orphan.pid());
  AwaitCommits("of the adopted one");
  // It outlives its second master, too.
  master_.Kill();
  ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
  EXPECT_EQ(master_.PostmasterPid(), orphan.pid());
  EXPECT_EQ(master_.CountInLog("private_postgres_adopted"), 2) << master_.LogTail();
  AwaitCommits("of the one adopted again");
  master_.Kill();
  orphan.Signal(SIGSTOP);
  ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
  EXPECT_TRUE(orphan.HasEnded()) << "it is stopped, and its files are another's";
  EXPECT_GT(master_.PostmasterPid(), 0);
  AwaitCommits("of the one in its place");
  scene_.StopProducers(absl::Seconds(60));
  const Verdict verdict = scene_.ExpectExact(master_, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
  EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
