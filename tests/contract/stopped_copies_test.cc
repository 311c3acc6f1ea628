// A master that is stopped in the middle of a COPY: whoever takes over gets its trials all the same, and nobody else is ended. What it
// must survive is a session that PostgreSQL waits for without an end.
#include "storage/pg_stopped_copies.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/contract/store_test.h"
#include "tests/support/sql_of.h"

namespace stepwell {
namespace {

using testing::StoreTest;

constexpr char kCount[] = "select count(*) from pg_stat_activity where pid = ";
constexpr char kCopy[] = "copy stepwell.projects (name) from stdin";

class StoppedCopiesTest : public StoreTest {
 protected:
  // Of one that says no more: a transaction that holds a trial as commits do, and copies.
  std::unique_ptr<PgConnection> Stopped(const std::string& name, const std::string& last) {
    auto connection = PgConnection::Open({.url = url_, .application_name = name});
    EXPECT_TRUE(connection.ok()) << connection.status();
    EXPECT_TRUE((*connection)->Begin().ok());
    EXPECT_TRUE((*connection)->Exec("select from stepwell.trials for key share").ok());
    const auto begun = (*connection)->Exec(SqlOf(last));
    EXPECT_TRUE(begun.ok()) << begun.status();
    return *std::move(connection);
  }
  void Await(const std::string& sql, std::int64_t wanted) {
    for (const absl::Time deadline = absl::Now() + absl::Seconds(20); absl::Now() < deadline;) {
      if (Number(sql) == wanted) return;
      absl::SleepFor(absl::Milliseconds(1));
    }
    ADD_FAILURE() << sql;
  }
  // Until the server shows it as it is meant to be.
  void AwaitShown(const PgConnection& connection) {
    Await(absl::StrCat(kCount, connection.backend_pid(), " and wait_event = 'ClientRead'"), 1);
  }
  void AwaitGone(int backend_pid) { Await(absl::StrCat(kCount, backend_pid), 0); }
  bool Lives(int backend_pid) { return Number(absl::StrCat(kCount, backend_pid)) == 1; }
};

TEST_F(StoppedCopiesTest, OnlyMastersSessionsThatCopyForLongAreEnded) {
  OpenWriter("t");
  const struct {
    const char* name;
    std::string session;
    std::string last;
    absl::Duration age;
    int ended;
  } rows[] = {
      {"a commit", "stepwell-commit", kCopy, absl::ZeroDuration(), 1},
      {"a fold", "stepwell-fold", kCopy, absl::ZeroDuration(), 1},
      {"one that has just begun", "stepwell-commit", kCopy, absl::Hours(1), 0},
      {"one that is idle, which PostgreSQL ends", "stepwell-commit", "select 1",
       absl::ZeroDuration(), 0},
      {"somebody else's", "psql", kCopy, absl::ZeroDuration(), 0},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    auto stopped = Stopped(row.session, row.last);
    AwaitShown(*stopped);
    const auto ended = EndStoppedCopies(*sql_, row.age);
    ASSERT_TRUE(ended.ok()) << ended.status();
    EXPECT_EQ(*ended, row.ended);
    if (row.ended == 1) AwaitGone(stopped->backend_pid());
    EXPECT_EQ(Lives(stopped->backend_pid()), row.ended == 0);
    // The next row is to find its own alone.
    const int pid = stopped->backend_pid();
    stopped.reset();
    AwaitGone(pid);
  }
}

TEST_F(StoppedCopiesTest, ATakeOverGetsTheTrialsOfOneThatIsStoppedWithinACopy) {
  OpenWriter("t");
  const auto stopped = Stopped("stepwell-commit", kCopy);
  AwaitShown(*stopped);
  const auto next = PgIngestStore::Open({.url = url_, .stopped_copy_age = absl::ZeroDuration()},
                                        std::make_shared<JournalRing>());
  ASSERT_TRUE(next.ok()) << next.status();
  const absl::Time begin = absl::Now();
  const absl::Status fenced = (*next)->FenceTrials(2);
  EXPECT_TRUE(fenced.ok()) << fenced;
  EXPECT_LT(absl::Now() - begin, absl::Seconds(20)) << "it is not waited for until it times out";
  EXPECT_EQ(Number("select owner_epoch from stepwell.trials"), 2);
}

}  // namespace
}  // namespace stepwell
