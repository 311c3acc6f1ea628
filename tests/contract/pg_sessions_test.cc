// Sessions that are given up, over a real server: what is idle, what is borrowed, what is under way.
#include "storage/pg_sessions.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/worker.h"
#include "storage/pg_link.h"
#include "storage/pg_shelf.h"
#include "tests/support/child_process.h"
#include "tests/support/postgres.h"

namespace stepwell {
namespace {

using testing::Connect;
using testing::Eventually;
using testing::TestPostgres;

class PgSessionsTest : public ::testing::Test {
 protected:
  PgConnection::Options OptionsOf(const std::string& application_name) const {
    return {.url = url_, .application_name = application_name, .cut = cut_};
  }
  PgSessions& sessions() { return cut_->sessions(); }
  std::int64_t CountOf(const std::string& application_name) {
    const auto count = observer_->Exec(
        "select count(*) from pg_stat_activity where datname = current_database() and"
        " application_name = $1",
        {application_name});
    EXPECT_TRUE(count.ok()) << count.status();
    return count.ok() ? count->Int64(0, 0) : -1;
  }
  bool AwaitNoneOf(const std::string& application_name) {
    return Eventually([&] { return CountOf(application_name) == 0; }, absl::Seconds(20));
  }

  const std::string url_ = TestPostgres::Get().FreshDatabase();
  const std::shared_ptr<PgCut> cut_ = std::make_shared<PgCut>();
  const std::unique_ptr<PgConnection> observer_ = Connect(url_);
};

TEST_F(PgSessionsTest, ABorrowedOneEndsItsTransactionAndIsClosedWhereItIsGivenBack) {
  PgShelf shelf(OptionsOf("borrowed"), 1);
  {
    auto loan = shelf.Borrow();
    ASSERT_TRUE(loan.ok()) << loan.status();
    ASSERT_TRUE((*loan)->Begin().ok());
    EXPECT_EQ(sessions().GiveUp(), 1);
    EXPECT_TRUE((*loan)->Exec("select 1").ok()) << "until it is used next";
    EXPECT_TRUE((*loan)->Commit().ok());
  }
  EXPECT_TRUE(AwaitNoneOf("borrowed"));
}

TEST_F(PgSessionsTest, OneThatRestsIsNotUsedAgain) {
  PgShelf shelf(OptionsOf("resting"), 1);
  PgLink link(OptionsOf("linked"));
  ASSERT_TRUE(shelf.Borrow().ok());
  ASSERT_TRUE(link.Get().ok());
  EXPECT_EQ(sessions().GiveUp(), 2);
  const auto loan = shelf.Borrow();
  ASSERT_TRUE(loan.ok()) << loan.status();
  EXPECT_TRUE(loan->is_new());
  ASSERT_TRUE(link.Get().ok());
  EXPECT_EQ(link.opened_count(), 2);
  EXPECT_EQ(sessions().EndOver(), 0) << "both are of the new era";
  EXPECT_TRUE((*loan)->Exec("select 1").ok());
}

// Nobody comes by; or somebody waits for an answer.
TEST_F(PgSessionsTest, WhatIsLeftEndsAndWhatWaitsFailsAsUnavailable) {
  PgShelf shelf(OptionsOf("resting"), 1);
  ASSERT_TRUE(shelf.Borrow().ok());
  auto busy = PgConnection::Open(OptionsOf("busy"));
  ASSERT_TRUE(busy.ok()) << busy.status();
  absl::Status status;
  Worker worker("busy", [&] { status = (*busy)->Exec("select pg_sleep(600)").status(); });
  const auto sleeps = [&] {
    const auto found = observer_->Exec(
        "select 1 from pg_stat_activity where application_name = 'busy' and"
        " wait_event = 'PgSleep'");
    return found.ok() && found->row_count() == 1;
  };
  EXPECT_TRUE(Eventually(sleeps, absl::Seconds(20)));
  EXPECT_EQ(sessions().GiveUp(), 2);
  EXPECT_EQ(sessions().EndOver(), 2);
  worker.Join();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_FALSE((*busy)->usable());
  EXPECT_TRUE(AwaitNoneOf("resting"));
  // The server notices such a one when it answers, which it does not for long.
  ASSERT_TRUE(observer_
                  ->Exec("select pg_terminate_backend(pid) from pg_stat_activity where"
                         " application_name = 'busy'")
                  .ok());
}

}  // namespace
}  // namespace stepwell
