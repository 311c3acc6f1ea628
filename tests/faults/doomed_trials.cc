#include "tests/faults/doomed_trials.h"

#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "tests/faults/checker/checker.h"
#include "tests/faults/database_text.h"
#include "tests/faults/master_client.h"
#include "tests/faults/stored_samples.h"
#include "tests/support/bookkeeping_sql.h"

namespace stepwell::faults {
namespace {

constexpr int kSeriesCount = 40;
constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr int kClosedRank = 0;
constexpr int kKilledRank = 1;

}  // namespace

void DoomedTrials::Make() {
  name_ = absl::StrCat("doomed-", count_++);
  ledgers_.clear();
  ChildProcess& closed = StartWriter(kClosedRank);
  ASSERT_TRUE(AwaitRows("recent", kClosedRank)) << scene_.Logs() << master_.LogTail();
  closed.Signal(SIGTERM);
  ASSERT_EQ(closed.Wait(kPatience), "exit 0") << scene_.Logs();
  ASSERT_TRUE(AwaitRows("metrics", kClosedRank)) << scene_.Logs() << master_.LogTail();
  ChildProcess& killed = StartWriter(kKilledRank);
  ASSERT_TRUE(AwaitRows("recent", kKilledRank)) << scene_.Logs() << master_.LogTail();
  killed.Kill();
}

void DoomedTrials::Delete(absl::Duration patience) {
  MasterClient client(master_.grpc_address());
  (void)Eventually([&] { return !master_.running() || client.Delete(name_).empty(); }, patience);
}

void DoomedTrials::ExpectWholeOrGone() {
  if (name_.empty()) return;
  if (!IsDeleted()) {
    ++spared_count_;
    ASSERT_NO_FATAL_FAILURE(ExpectWhole());
    MasterClient client(master_.grpc_address());
    ASSERT_TRUE(scene_.Await(absl::StrCat(name_, " is deleted"), kPatience,
                             [&] { return client.Delete(name_).empty(); }))
        << client.Delete(name_) << master_.LogTail();
  }
  ASSERT_TRUE(scene_.Await(absl::StrCat(name_, " is gone"), kPatience, [&] {
    return DatabaseText(url_,
                        "select not exists (select from stepwell.trials where deleted_time is not "
                        "null and attempt_count > 0)") == "t";
  })) << master_.LogTail();
  EXPECT_EQ(DatabaseText(url_, testing::BuriedMismatchSql()), "") << "left of deleted trials";
  EXPECT_EQ(DatabaseText(url_,
                         "select count(*) from stepwell.trials where deleted_time is not "
                         "null and attempt_count = 0"),
            absl::StrCat(count_));
}

ChildProcess& DoomedTrials::StartWriter(int rank) {
  ledgers_.push_back(scene_.path(absl::StrCat(name_, "-ledger-", rank)));
  return scene_.StartRawWriter(
      rank, master_.grpc_address(),
      {{"--trial", name_}, {"--log", ledgers_.back()}, {"--series", absl::StrCat(kSeriesCount)}});
}

bool DoomedTrials::AwaitRows(const std::string& table, int rank) const {
  const std::string sql =
      absl::StrCat("select count(*) >= ", kSeriesCount, " from stepwell.", table,
                   " join stepwell.writers w using (trial_id, writer_no) "
                   "join stepwell.trials t using (trial_id) where w.rank = ",
                   rank, " and t.external_id = '", name_, "'");
  return scene_.Await(absl::StrCat(name_, " has ", table, " of rank ", rank), kPatience,
                      [&] { return DatabaseText(url_, sql) == "t"; });
}

bool DoomedTrials::IsDeleted() const {
  return DatabaseText(url_, absl::StrCat("select deleted_time is not null from stepwell.trials "
                                         "where external_id = '",
                                         name_, "'")) == "t";
}

void DoomedTrials::ExpectWhole() const {
  MasterClient client(master_.grpc_address());
  ASSERT_TRUE(scene_.Await("flushed", kPatience, [&] { return client.Flush().empty(); }));
  Ledger ledger;
  for (const std::string& path : ledgers_) EXPECT_EQ(ReadLedger(path, ledger), "");
  std::set<std::string> series;
  for (const LoggedSample& sample : ledger.samples) series.insert(sample.series);
  StoredTrial stored;
  ASSERT_EQ(ReadStoredTrial(url_, name_, {series.begin(), series.end()}, stored), "");
  const Verdict verdict = Check(ledger, stored.samples, stored.gaps, Demand::kAcked);
  EXPECT_TRUE(verdict.ok()) << name_ << ": " << verdict.ToText();
  EXPECT_EQ(verdict.declared_count, 0u);
}

}  // namespace stepwell::faults
