// What the C++ face adds to the C ABI: scopes that end by themselves, and a close in its parts.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "stepwell/stepwell.h"
#include "tests/unit/recorder/files/in_child.h"
#include "tests/unit/recorder/files/recorder_fixture.h"

namespace stepwell::recorder {
namespace {

class CppFaceTest : public RecorderTest {};

TEST_F(CppFaceTest, ScopesThatTakeTurnsEndInAnyOrder) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING) << stepwell_message();
    const ScopeName task("task");
    {
      STEPWELL_SCOPE("around");
      ScopeApart first(task);
      ScopeApart second(task);
      { STEPWELL_SCOPE("forward"); }
      EXPECT_GT(first.End().count(), 0);
      EXPECT_EQ(first.End().count(), 0) << "it has ended";
    }
    EXPECT_EQ(stepwell_dropped_count(), 0u);
  });
  // In the order of their ends: the second goes with its block, before the one around it.
  EXPECT_EQ(Lines(), (std::vector<std::string>{"scope around/forward", "scope task", "scope task",
                                               "scope around"}));
}

TEST_F(CppFaceTest, AMomentIsOneEvent) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING) << stepwell_message();
    {
      STEPWELL_SCOPE("around");
      for (int i = 0; i < 2; ++i) STEPWELL_INSTANT("checkpoint");
      stepwell_instant(0);
    }
  });
  EXPECT_EQ(Lines(),
            (std::vector<std::string>{"instant checkpoint", "instant checkpoint", "scope around"}));
}

TEST_F(CppFaceTest, ACloseInPartsEndsByItself) {
  ExpectInChild([this] {
    Recorder recorder(
        {.spool_dir = directory_.path(), .trial = "t", .exit_wait = std::chrono::milliseconds(0)});
    ASSERT_EQ(recorder.state(), STEPWELL_RECORDING) << recorder.message();
    Closing closing = recorder.CloseBegin();
    EXPECT_TRUE(closing);
    EXPECT_EQ(stepwell_current_state(), STEPWELL_CLOSED);
    EXPECT_EQ(closing.Await(std::chrono::milliseconds(1)), Closing::Told::kNotYet);
    Closing elsewhere = std::move(closing);
    EXPECT_FALSE(closing);  // NOLINT(bugprone-use-after-move): that is the question
    EXPECT_EQ(elsewhere.Await(std::chrono::seconds(60)), Closing::Told::kNever) << "no agent comes";
    elsewhere.Ease();
    EXPECT_EQ(elsewhere.Await(std::chrono::milliseconds(1)), Closing::Told::kNotYet);
    EXPECT_FALSE(recorder.CloseBegin()) << "none is open any more";
  });
}

}  // namespace
}  // namespace stepwell::recorder
