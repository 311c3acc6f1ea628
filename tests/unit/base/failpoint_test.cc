// The environment is read once per process, so each case runs in a child of its own.
#include "base/failpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace stepwell {
namespace {

void Arm(const char* text) { setenv("STEPWELL_FAILPOINTS", text, 1); }

// Exits with how many of `passes` failed, 100 if another point did too.
[[noreturn]] void CountErrorsAndExit(const char* arming, int passes) {
  Arm(arming);
  int errors = 0;
  for (int i = 0; i < passes; ++i) errors += failpoint::Check("point").ok() ? 0 : 1;
  if (!failpoint::Check("other").ok()) errors = 100;
  std::exit(errors);
}

class FailpointDeathTest : public testing::Test {
 protected:
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_F(FailpointDeathTest, ErrorsAsOftenAsSaid) {
  struct Row {
    const char* arming;
    int errors;
  };
  for (const Row& row : {Row{"point=error", 10},
                         {"point=error*3", 3},
                         {"point=error@4", 6},
                         {"point=error*2@9", 1},
                         {"other2=error", 0},
                         {"a=sleep:1;point=error*1", 1}}) {
    SCOPED_TRACE(row.arming);
    EXPECT_EXIT(CountErrorsAndExit(row.arming, 10), testing::ExitedWithCode(row.errors), "");
  }
}

TEST_F(FailpointDeathTest, ExitIsASigkillAndSaysWhere) {
  EXPECT_EXIT(
      {
        Arm("point=exit");
        STEPWELL_FAILPOINT("point");
        std::exit(0);
      },
      testing::KilledBySignal(SIGKILL), "failpoint point exit");
}

TEST(FailpointTest, UnarmedPassesAreFree) {
  EXPECT_FALSE(failpoint::AnyArmed());
  EXPECT_TRUE(failpoint::Check("point").ok());
}

TEST_F(FailpointDeathTest, WaitsWhileTheFileIsThere) {
  EXPECT_EXIT(
      {
        const std::string path = testing::TempDir() + "failpoint_hold" + std::to_string(getpid());
        std::ofstream(path) << "held";
        Arm(("point=while:" + path).c_str());
        std::thread waiting([] { STEPWELL_FAILPOINT("point"); });
        std::this_thread::yield();
        unlink(path.c_str());
        waiting.join();
        std::exit(7);
      },
      testing::ExitedWithCode(7), "failpoint point while:");
}

}  // namespace
}  // namespace stepwell
