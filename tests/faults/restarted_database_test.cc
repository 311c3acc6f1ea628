// PostgreSQL is stopped again and again, two seconds after it was back, in each of the ways in which it ends.
// The master waits longer before each next start, up to 30 s; commits make progress in between, nothing is lost or doubled, and nobody storms the door: the master's
// sessions per restart have a bound. One of others is started at once, a hundred times.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/faults/database_text.h"
#include "tests/faults/master_client.h"
#include "tests/faults/others_postgres.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

constexpr absl::Duration kBetween = absl::Seconds(2);
// Each worker of the master and each reader opens one, and once more where the first try came too early.
constexpr int kSessionsPerRestartMax = 25;
// Of one of others, which is back at once: whoever waits for it need not meet each of its lives.
constexpr int kProgressEach = 5;

class RestartedDatabaseTest : public ::testing::Test {
 protected:
  static std::uint64_t CommittedBy(MasterClient& client) {
    const auto status = client.Status();
    return status ? status->chunks_committed() : 0;
  }
  void StartLoad(const MasterProcess& master) {
    scene_.StartAgent(master.grpc_address());
    for (const int rank : {0, 1}) scene_.StartTrainer(rank, {{"--world-size", "2"}});
    scene_.StartRawWriter(10, master.grpc_address());
  }
  void ExpectAllOnce(MasterProcess& master, int restarts) {
    scene_.Say(
        absl::StrCat(restarts, " restarts, ", sessions_most_, " sessions of one life at most"));
    scene_.StopProducers(absl::Seconds(90));
    const Verdict verdict = scene_.ExpectExact(master, Demand::kRecorded);
    EXPECT_EQ(verdict.declared_count, 0U);
    EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
  }
  void Pass(absl::Duration length) const {
    const absl::Duration due = scene_.Elapsed() + length;
    Eventually([&] { return scene_.Elapsed() >= due; }, absl::Minutes(1));
  }
  void RestartFor(absl::Duration length, int restart_count_min) {
    ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
    StartLoad(master_);
    MasterClient client(master_.grpc_address());
    const absl::Duration end = scene_.Elapsed() + length;
    int restarts = 0;
    for (; restarts < restart_count_min || scene_.Elapsed() < end; ++restarts) {
      const std::uint64_t before = CommittedBy(client);
      ASSERT_TRUE(Eventually([&] { return CommittedBy(client) > before; }, absl::Seconds(90)))
          << "nothing is committed after restart " << restarts << "\n"
          << scene_.Logs() << master_.LogTail();
      Pass(kBetween);
      ExpectFewSessions(master_, restarts);
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
    ExpectAllOnce(master_, restarts);
  }
  // Of --database-url, by a master whose database another one made.
  void RestartOneOfOthersFor(absl::Duration length) {
    ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
    const std::string url = master_.database_url();
    ASSERT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
    OthersPostgres postgres(master_.data_directory());
    MasterProcess master({.scratch = scene_.path(""), .name = "guest", .database_url = url});
    MasterClient client(master.grpc_address());
    const absl::Duration end = scene_.Elapsed() + length;
    std::uint64_t before = 0;
    int restarts = 0;
    for (; scene_.Elapsed() < end; ++restarts) {
      ASSERT_TRUE(StartAndWait(postgres, url));
      if (restarts == 0) {
        ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
        StartLoad(master);
      }
      Pass(kBetween);
      ExpectFewSessions(master, restarts);
      if (restarts % kProgressEach == kProgressEach - 1) {
        const std::uint64_t now = CommittedBy(client);
        EXPECT_GT(now, before) << "no progress in " << kProgressEach << " restarts";
        before = now;
      }
      postgres.Signal(kSignals[restarts % 3]);
      ASSERT_TRUE(Eventually([&] { return postgres.HasEnded(); }, absl::Seconds(60)));
    }
    ASSERT_TRUE(StartAndWait(postgres, url));
    EXPECT_GE(restarts, length / absl::Seconds(6)) << "restarts took too long";
    ExpectAllOnce(master, restarts);
  }

 private:
  static constexpr int kSignals[] = {SIGINT, SIGQUIT, SIGKILL};

  // After a kill its children hold the shared memory for a moment, and it refuses to start beside them.
  static bool StartAndWait(OthersPostgres& postgres, const std::string& url) {
    const auto lets_in = [&] {
      if (postgres.HasEnded() && !postgres.Start().empty()) return false;
      return DatabaseText(url, "select 1") == "1";
    };
    return Eventually(lets_in, absl::Seconds(60));
  }
  // PostgreSQL forgets the number where it dies, and keeps it where it is stopped in order.
  void ExpectFewSessions(const MasterProcess& master, int restarts) {
    int sessions = 0;
    const std::string text =
        DatabaseText(master.database_url(),
                     "select sessions from pg_stat_database where datname = current_database()");
    if (!absl::SimpleAtoi(text, &sessions)) return;
    const int lives = restarts % 3 == 1 ? 2 : 1;
    EXPECT_LE(sessions, lives * kSessionsPerRestartMax) << "restart " << restarts;
    sessions_most_ = std::max(sessions_most_, sessions / lives);
  }

  Scene scene_{::testing::UnitTest::GetInstance()->current_test_info()->name()};
  MasterProcess master_{{.scratch = scene_.path("")}};
  int sessions_most_ = 0;
};

TEST_F(RestartedDatabaseTest, LongTwoSecondsAfterEachStartForFiveMinutes) {
  RestartFor(absl::Minutes(5), 8);
}

TEST_F(RestartedDatabaseTest, LongOneOfOthersTwoSecondsAfterEachStartForFiveMinutes) {
  RestartOneOfOthersFor(absl::Minutes(5));
}

}  // namespace
}  // namespace stepwell::faults
