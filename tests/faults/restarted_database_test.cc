// PostgreSQL is stopped again and again, two seconds after it was back, in each of the ways in which it ends.
// The master waits longer before each next start, up to 30 s; commits make progress in between, nothing is lost or doubled, and nobody storms the door: the master's
// sessions per restart have a bound.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/faults/database_text.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

constexpr absl::Duration kBetween = absl::Seconds(2);
// Each worker of the master and each reader opens one, and once more where the first try came too early.
constexpr int kSessionsPerRestartMax = 60;

class RestartedDatabaseTest : public ::testing::Test {
 protected:
  std::uint64_t committed() {
    const auto status = client_.Status();
    return status ? status->chunks_committed() : 0;
  }
  void RestartFor(absl::Duration length, int restart_count_min) {
    ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
    scene_.StartAgent(master_.grpc_address());
    for (const int rank : {0, 1}) scene_.StartTrainer(rank, {{"--world-size", "2"}});
    scene_.StartRawWriter(10, master_.grpc_address());
    const absl::Duration end = scene_.Elapsed() + length;
    int restarts = 0;
    for (; restarts < restart_count_min || scene_.Elapsed() < end; ++restarts) {
      const std::uint64_t before = committed();
      ASSERT_TRUE(Eventually([&] { return committed() > before; }, absl::Seconds(90)))
          << "nothing is committed after restart " << restarts << "\n"
          << scene_.Logs() << master_.LogTail();
      const absl::Duration due = scene_.Elapsed() + kBetween;
      Eventually([&] { return scene_.Elapsed() >= due; }, absl::Seconds(60));
      ExpectFewSessions(restarts);
      const pid_t postmaster = master_.PostmasterPid();
      ASSERT_GT(postmaster, 0) << master_.LogTail();
      kill(postmaster, kSignals[restarts % 3]);
      ASSERT_TRUE(Eventually(
          [&] {
            const pid_t now = master_.PostmasterPid();
            return now != 0 && now != postmaster;
          },
          absl::Seconds(90)))
          << master_.LogTail();
    }
    scene_.Say(
        absl::StrCat(restarts, " restarts, ", sessions_most_, " sessions of one life at most"));
    scene_.StopProducers(absl::Seconds(90));
    const Verdict verdict = scene_.ExpectExact(master_, Demand::kRecorded);
    EXPECT_EQ(verdict.declared_count, 0U);
    EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
  }

 private:
  static constexpr int kSignals[] = {SIGINT, SIGQUIT, SIGKILL};

  // PostgreSQL forgets the number where it dies, and keeps it where it is stopped in order.
  void ExpectFewSessions(int restarts) {
    int sessions = 0;
    const std::string text =
        DatabaseText(master_.database_url(),
                     "select sessions from pg_stat_database where datname = current_database()");
    if (!absl::SimpleAtoi(text, &sessions)) return;
    const int lives = restarts % 3 == 1 ? 2 : 1;
    EXPECT_LE(sessions, lives * kSessionsPerRestartMax) << "restart " << restarts;
    sessions_most_ = std::max(sessions_most_, sessions / lives);
  }

  Scene scene_{::testing::UnitTest::GetInstance()->current_test_info()->name()};
  MasterProcess master_{{.scratch = scene_.path("")}};
  MasterClient client_{master_.grpc_address()};
  int sessions_most_ = 0;
};

TEST_F(RestartedDatabaseTest, LongTwoSecondsAfterEachStartForFiveMinutes) {
  RestartFor(absl::Minutes(5), 8);
}

}  // namespace
}  // namespace stepwell::faults
