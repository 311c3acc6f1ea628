// Workers that a fork server starts, from their rings to SQL: Python's own, whose children are forked
// from a process that is no part of the training.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"
#include "tests/support/places/places.h"

namespace stepwell::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr int kNumbers = 1000;

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class ForkServerTest : public SpineTest {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a library with a sanitizer in it cannot be loaded into a Python without";
#endif
    ChildProcess python;
    python.Start({"/usr/bin/env", "python3", "-c", "import ctypes"}, {}, scratch_ / "python.log");
    if (python.Wait(absl::Seconds(30)) != "exit 0") GTEST_SKIP() << "no Python with ctypes here";
  }
  struct Stored {
    // How often, by the number.
    std::map<int, int> counts;
    // By who recorded: the labels worker, "" = without.
    std::map<int, std::set<std::string>> labels;
    std::map<int, std::set<std::int64_t>> attempts;
  };
  Stored ReadStored() {
    EXPECT_TRUE(client_->Flush().ok());
    auto connection = PgConnection::Open({.url = master_->database_url()});
    EXPECT_TRUE(connection.ok()) << connection.status();
    const auto rows =
        (*connection)
            ->Exec(
                "select coalesce(s.labels->>'worker', ''), s.value, s.attempt::bigint"
                " from stepwell.trials t, stepwell.samples(t.trial_id, $2, $3, null,"
                " null) s where t.external_id = $1",
                {std::string("served"), std::string("loader"), std::string("number")});
    EXPECT_TRUE(rows.ok()) << rows.status();
    Stored stored;
    for (int row = 0; rows.ok() && row < rows->row_count(); ++row) {
      const int number = static_cast<int>(rows->Float64(row, 1));
      ++stored.counts[number];
      stored.labels[number / 1'000'000].insert(std::string(rows->Text(row, 0)));
      stored.attempts[number / 1'000'000].insert(rows->Int64(row, 2));
    }
    return stored;
  }
  // Runs the trial to its end, and an agent beside it until all that `who` recorded is stored.
  Stored Run(const std::string& recorder_in, const std::set<int>& who) {
    StartMaster();
    const std::string spool = scratch_ / "spool";
    EXPECT_EQ(mkdir(spool.c_str(), 0700), 0);
    ChildProcess agent;
    agent.Start({BuiltProgram("stepwell"), "agent", "--server", master_->grpc_address(),
                 "--spool-dir", spool, "--no-auto-sampling"},
                {}, scratch_ / "agent.log");
    ChildProcess trial;
    const std::filesystem::path program = SourcePlace("tests/e2e/programs/fork_server_trial.py");
    trial.Start({"/usr/bin/env", "python3", program},
                {{"PYTHONPATH", program.parent_path()},
                 {"PYTHONDONTWRITEBYTECODE", "1"},
                 {"RECORDER_LIBRARY", BuildPlace("client/recorder/libstepwell_recorder.so")},
                 {"RECORDER_IN", recorder_in},
                 {"STEPWELL_SPOOL_DIR", spool},
                 {"STEPWELL_TRIAL", "served"}},
                scratch_ / "trial.log");
    EXPECT_EQ(trial.Wait(absl::Seconds(60)), "exit 0") << TrialLog();
    EXPECT_THAT(TrialLog(), HasSubstr("codes -9 0 0 0 0"));
    Stored stored;
    EXPECT_TRUE(Eventually(
        [&] {
          stored = ReadStored();
          return stored.counts.size() >= who.size() * kNumbers && IsEachWriterClosed();
        },
        absl::Seconds(60)))
        << stored.counts.size() << " stored\n"
        << ReadText(scratch_ / "agent.log");
    agent.Signal(SIGTERM);
    EXPECT_EQ(agent.Wait(absl::Seconds(30)), "exit 0");
    // Whatever else there was to come of them has come by now.
    stored = ReadStored();
    ExpectOnce(stored, who);
    return stored;
  }
  // The server ends after the trial, by itself.
  bool IsEachWriterClosed() {
    return QueryNumber("select count(*) from stepwell.writers where writer_no > $1 and state = 1",
                       0) == 0;
  }
  std::string TrialLog() { return ReadText(scratch_ / "trial.log"); }
  static void ExpectOnce(const Stored& stored, const std::set<int>& who) {
    EXPECT_EQ(stored.counts.size(), who.size() * kNumbers);
    for (const auto& [number, count] : stored.counts) {
      ASSERT_EQ(count, 1) << number;
      ASSERT_TRUE(who.contains(number / 1'000'000)) << number;
      ASSERT_LT(number % 1'000'000, kNumbers);
    }
  }
};

// Not even a writer for the server, and none for the one that records nothing.
TEST_F(ForkServerTest, AgentRule11_WorkersThatOpenThemselvesStartAfreshThroughTheEnvironment) {
  const Stored stored = Run("worker", {0, 2, 3, 4, 5});
  for (const auto& [who, labels] : stored.labels) EXPECT_THAT(labels, ElementsAre("")) << who;
  EXPECT_EQ(QueryNumber("select count(*) from stepwell.writers where trial_id >= $1", 0), 5);
}

TEST_F(ForkServerTest, AgentRule11_ChildrenOfAServerThatRecordsAreItsWorkers) {
  const Stored stored = Run("server", {0, 1, 2, 3, 4, 5});
  ASSERT_EQ(stored.labels.size(), 6u);
  EXPECT_THAT(stored.labels.at(0), ElementsAre(""));
  EXPECT_THAT(stored.labels.at(1), ElementsAre(""));
  std::set<std::string> labels;
  for (int who = 2; who <= 5; ++who) {
    EXPECT_EQ(stored.labels.at(who).size(), 1u) << who;
    labels.insert(stored.labels.at(who).begin(), stored.labels.at(who).end());
    EXPECT_EQ(stored.attempts.at(who), stored.attempts.at(1)) << "of the server's writer";
  }
  EXPECT_THAT(labels, UnorderedElementsAre("0", "1", "2", "3"));
  EXPECT_EQ(QueryNumber("select count(*) from stepwell.writers where trial_id >= $1", 0), 2);
}

}  // namespace
}  // namespace stepwell::testing
