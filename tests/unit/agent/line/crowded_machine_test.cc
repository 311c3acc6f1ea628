// More trials on a machine than a master takes on one stream: the others wait, and none is refused.
#include <gtest/gtest.h>

#include "client/agent/sender.h"
#include "tests/unit/agent/line/agent_fixture.h"

namespace stepwell::agent {
namespace {

class CrowdedMachineTest : public AgentTest {
 protected:
  static std::size_t StoredCount(const Writers& writers) {
    std::size_t stored = 0;
    for (const auto& [id, writer] : writers) stored += writer.chunks.empty() ? 0 : 1;
    return stored;
  }
};

TEST_F(CrowdedMachineTest, WritersBeyondThoseOfAStreamWaitUntilOthersClose) {
  constexpr int kCount = static_cast<int>(FakeMaster::kWritersPerStreamMax) + 40;
  int gate[2];
  ASSERT_EQ(pipe(gate), 0);
  std::vector<pid_t> trials;
  for (int i = 0; i < kCount; ++i) {
    trials.push_back(Record(absl::StrCat("trial", i), 0, [&gate] {
      close(gate[1]);
      RecordSteps(3);
      char none;
      if (read(gate[0], &none, 1) != 0) _exit(4);  // until as many as may be are stored
      if (stepwell_close(60000) != 1) _exit(3);
    }));
  }
  close(gate[0]);
  // Not before: a child that is forked while others log, open and send may find a lock of theirs that nobody gives back.
  StartAgent();
  EXPECT_TRUE(master_.WaitUntil(
      [](const Writers& writers) { return StoredCount(writers) >= Sender::kOpenMax; }));
  EXPECT_EQ(master_.writers_per_stream(), Sender::kOpenMax);
  close(gate[1]);
  for (const pid_t trial : trials) EXPECT_EQ(Wait(trial), 0);
  EXPECT_TRUE(WaitForClosed());
  EXPECT_EQ(StoredCount(master_.writers()), static_cast<std::size_t>(kCount));
  EXPECT_EQ(master_.writers_per_stream(), Sender::kOpenMax);
}

}  // namespace
}  // namespace stepwell::agent
