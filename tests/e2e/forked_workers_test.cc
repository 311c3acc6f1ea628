// Workers that a training process forks, from their rings to SQL.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

using ::testing::ElementsAre;

// How many at a time.
class ForkedWorkersTest : public SpineTest, public ::testing::WithParamInterface<int> {
 protected:
  // How often each number was stored, by the label worker; "" = without.
  std::map<std::string, std::map<int, int>> Numbers() {
    auto connection = PgConnection::Open({.url = master_->database_url()});
    EXPECT_TRUE(connection.ok()) << connection.status();
    const auto rows =
        (*connection)
            ->Exec(
                "select coalesce(s.labels->>'worker', ''), s.value"
                " from stepwell.trials t, stepwell.samples(t.trial_id, $2, $3, null,"
                " null) s where t.external_id = $1",
                {std::string("forking"), std::string("loader"), std::string("number")});
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::map<std::string, std::map<int, int>> numbers;
    for (int row = 0; rows.ok() && row < rows->row_count(); ++row) {
      ++numbers[std::string(rows->Text(row, 0))][static_cast<int>(rows->Float64(row, 1))];
    }
    return numbers;
  }
};

TEST_P(ForkedWorkersTest, AgentRule11_EachSampleOfEachWorkerIsStoredOnceHoweverItEnds) {
  StartMaster();
  const std::string spool = scratch_ / "spool";
  ASSERT_EQ(mkdir(spool.c_str(), 0700), 0);
  ChildProcess agent;
  agent.Start({BuiltProgram("stepwell"), "agent", "--server", master_->grpc_address(),
               "--spool-dir", spool},
              {}, scratch_ / "agent.log");
  ChildProcess loader;
  const int workers = GetParam();
  loader.Start({BuiltProgram("forking_loader"), spool, "forking", absl::StrCat(workers)}, {},
               scratch_ / "loader.log");
  ASSERT_EQ(loader.Wait(absl::Seconds(60)), "exit 0");
  ASSERT_TRUE(client_->Flush().ok());

  std::map<int, int> all;
  std::set<std::string> labels;
  std::map<std::string, std::set<int>> recorders;  // of each label, epoch * 100 + worker
  for (const auto& [label, numbers] : Numbers()) {
    labels.insert(label);
    for (const auto& [number, count] : numbers) {
      all[number] += count;
      recorders[label].insert(number / 1'000'000 * 100 + number / 10'000 % 100);
    }
  }
  EXPECT_THAT(recorders[""], ElementsAre(workers, 100 + workers, 200 + workers));
  std::set<std::string> wanted = {""};
  for (int worker = 0; worker < workers; ++worker) {
    const std::string label = absl::StrCat(worker);
    wanted.insert(label);
    EXPECT_EQ(recorders[label].size(), 3u) << label;  // one process in each epoch
  }
  EXPECT_EQ(labels, wanted);
  EXPECT_EQ(all.size(), 3u * (static_cast<std::size_t>(workers) + 1) * 1000);
  for (const auto& [number, count] : all) ASSERT_EQ(count, 1) << number;

  // Nothing of the workers is left.
  for (const auto& writer : std::filesystem::directory_iterator(spool + "/f1")) {
    if (!writer.is_directory()) continue;
    for (const auto& entry : std::filesystem::directory_iterator(writer)) {
      const bool is_worker = entry.is_directory() && entry.path().filename().string()[0] == 'w';
      EXPECT_FALSE(is_worker) << entry.path();
    }
  }
  agent.Signal(SIGTERM);
  EXPECT_EQ(agent.Wait(absl::Seconds(30)), "exit 0");
}

INSTANTIATE_TEST_SUITE_P(AFewAndMany, ForkedWorkersTest, ::testing::Values(4, 64),
                         [](const auto& one) { return absl::StrCat(one.param); });

}  // namespace
}  // namespace stepwell::testing
