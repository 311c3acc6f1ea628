// Rings of a process that was over before its agent came, where the master knows more of its writer than the
// spool does: whoever told it may have sealed them, too.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/uuid.h"
#include "tests/unit/agent/line/agent_fixture.h"

namespace stepwell::agent {
namespace {

constexpr int kSteps = 100;
constexpr std::uint64_t kSamplesPerStep = 4;  // step, forward, forward.count, loss

class CopiedRingsTest : public AgentTest {
 protected:
  // A process that ended without a close, and no agent was there. Its writer.
  std::string RecordAndEnd() {
    EXPECT_EQ(Wait(Record("copied", 0, [] { RecordSteps(kSteps); })), 0);
    const std::filesystem::directory_iterator writers(root_ + "/f1");
    const auto writer = Uuid::FromText(writers->path().filename().string());
    EXPECT_TRUE(writer);
    return writer ? writer->ToBytes() : "";
  }
};

TEST_F(CopiedRingsTest, AgentRule03_AreToldAsLostWhereTheMasterKnowsMore) {
  const std::string writer = RecordAndEnd();
  master_.Change([&](Writers& writers) {
    writers[writer].committed = 1000;
    writers[writer].committed_crc = 77;
  });
  StartAgent();
  ASSERT_TRUE(master_.WaitUntil(
      [](const Writers& writers) { return writers.size() == 2 && AllClosed(writers); }));
  const Writers writers = master_.writers();
  std::uint64_t told_count = 0;
  for (const auto& [id, each] : writers) {
    EXPECT_TRUE(FakeMaster::SamplesOf(each).empty());
    EXPECT_TRUE(each.wrongs.empty()) << each.wrongs.front();
    for (const pb::GapRange& gap : each.gaps) told_count += gap.sample_count();
    for (const auto& [sequence, chunk] : each.chunks) {
      pb::ChunkBody body;
      ASSERT_TRUE(body.ParseFromString(chunk.body()));
      for (const pb::Loss& loss : body.losses()) told_count += loss.sample_count();
    }
  }
  EXPECT_EQ(told_count, kSteps * kSamplesPerStep);
}

// As those of any short run whose agent came late.
TEST_F(CopiedRingsTest, AreSentWhereTheMasterKnowsNoMore) {
  (void)RecordAndEnd();
  StartAgent();
  ASSERT_TRUE(WaitForClosed());
  ExpectEachStepOnce(master_.writers(), kSteps);
}

}  // namespace
}  // namespace stepwell::agent
