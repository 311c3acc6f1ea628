// What a writer that has ended is told, and when, by an agent whose master goes away and comes back.
#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/agent/line/agent_fixture.h"

namespace stepwell::agent {
namespace {

// What became of a writer that had ended when its master went away and came back.
class EndedWriterTest : public AgentTest {
 protected:
  // One ends, one lives on across `change` of the stopped master.
  void RecordBoth(const std::function<void()>& change) {
    StartAgent();
    const pid_t ended = Record("ended", 0, [] {
      RecordSteps(100, 1000);
      if (stepwell_close(20000) != 1) _exit(3);
    });
    EXPECT_EQ(Wait(ended), 0);
    const pid_t lives = Record("lives", 0, [] {
      RecordSteps(1500, 2000);
      if (stepwell_close(20000) != 1) _exit(3);
    });
    ASSERT_TRUE(master_.WaitUntil([](const Writers& writers) {
      const auto found = Of(writers, "lives");
      return !found.empty() && found.begin()->second.committed > 10;
    }));
    master_.Stop();
    change();
    master_.Start();
    EXPECT_EQ(Wait(lives), 0);
    ASSERT_TRUE(WaitForClosed());
    ExpectEachStepOnce(Of(master_.writers(), "ended"), 100);
    ExpectEachStepOnce(Of(master_.writers(), "lives"), 1500);
  }
  static Writers Of(const Writers& writers, const std::string& trial) {
    Writers found = writers;
    std::erase_if(found,
                  [&](const auto& entry) { return entry.second.open.external_id() != trial; });
    return found;
  }
  int open_count() { return Of(master_.writers(), "ended").begin()->second.open_count; }
};

TEST_F(EndedWriterTest, StaysEndedWhereTheMasterLostNothing) {
  RecordBoth([] {});
  EXPECT_EQ(open_count(), 1);
}

TEST_F(EndedWriterTest, IsToldAgainWhereTheMasterIsBehindAnothersMark) {
  RecordBoth([this] { master_.RewindAll(2); });
  EXPECT_EQ(open_count(), 2);
}

TEST_F(EndedWriterTest, IsToldAgainWhereTheDatabaseIsAnother) {
  RecordBoth([this] {
    master_.SetIncarnation(std::string(16, 'b'));
    // Of the living one nothing is lost: the incarnation alone tells.
    master_.Change([](Writers& writers) {
      for (auto& [id, writer] : writers) {
        if (writer.open.external_id() != "ended") continue;
        writer.chunks.clear();
        writer.committed = 0;
        writer.committed_crc = 0;
        writer.closed = false;
      }
    });
  });
  EXPECT_EQ(open_count(), 2);
}

// Nobody else opens: what the connection says is all there is.
TEST_F(EndedWriterTest, ALoneOneIsToldAgainWhereTheDatabaseIsAnother) {
  StartAgent();
  const pid_t ended = Record("ended", 0, [] {
    RecordSteps(100, 1000);
    if (stepwell_close(20000) != 1) _exit(3);
  });
  EXPECT_EQ(Wait(ended), 0);
  master_.Stop();
  master_.SetIncarnation(std::string(16, 'b'));
  master_.Change([](Writers& writers) { writers.clear(); });
  master_.Start();
  ASSERT_TRUE(WaitForClosed());
  ExpectEachStepOnce(master_.writers(), 100);
  EXPECT_EQ(open_count(), 1);  // of this database
}

}  // namespace
}  // namespace stepwell::agent
