#include "storage/pg_connection.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/worker.h"
#include "storage/pg_copy.h"
#include "storage/pg_url.h"
#include "tests/support/postgres.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/sql_of.h"

namespace stepwell {
namespace {

using testing::Connect;
using testing::TestPostgres;

class PgConnectionTest : public ::testing::Test {
 protected:
  static std::unique_ptr<PgConnection> Open(const PgConnection::Options& options) {
    auto connection = PgConnection::Open(options);
    EXPECT_TRUE(connection.ok()) << connection.status();
    return *std::move(connection);
  }

  // Returns when the backend is gone.
  void Terminate(int backend_pid) {
    const auto ended =
        Connect(url_)->Exec("select pg_terminate_backend($1, 10000)", {std::int32_t{backend_pid}});
    ASSERT_TRUE(ended.ok()) << ended.status();
    ASSERT_TRUE(ended->Bool(0, 0));
  }

  const std::string url_ = TestPostgres::Get().FreshDatabase();
  std::unique_ptr<PgConnection> connection_ = Connect(url_);
};

TEST_F(PgConnectionTest, SeveralStatementsTravelInOneRoundTrip) {
  const auto count = std::make_shared<std::atomic<std::int64_t>>(0);
  const auto connection = Open({.url = url_, .round_trip_count = count});
  const auto results =
      connection->ExecAll(std::vector<PgStatement>{{"begin isolation level repeatable read", {}},
                                                   {"select $1 + 1", {std::int64_t{41}}},
                                                   {"select generate_series(1, 100000)", {}},
                                                   {"commit", {}}});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(*count, 1);
  ASSERT_EQ(results->size(), 4u);
  EXPECT_EQ((*results)[1].Int64(0, 0), 42);
  EXPECT_EQ((*results)[2].row_count(), 100'000);
  EXPECT_EQ((*results)[3].command(), "COMMIT");
  EXPECT_EQ(connection->Exec("select 7")->Int32(0, 0), 7) << "as before";
  EXPECT_EQ(*count, 2);
}

TEST_F(PgConnectionTest, TheFirstOfSeveralThatFailsEndsThem) {
  ASSERT_TRUE(connection_->ExecScript("create table t (k int primary key)").ok());
  const auto results = connection_->ExecAll(
      std::vector<PgStatement>{{"insert into t values (1)", {}},
                               {"insert into t values ($1)", {std::int32_t{1}}},
                               {"select no_such_column", {}}});
  EXPECT_EQ(results.status().code(), absl::StatusCode::kInvalidArgument) << results.status();
  EXPECT_EQ(connection_->Exec("select count(*) from t")->Int64(0, 0), 0) << "none has happened";
  Terminate(connection_->backend_pid());
  const auto lost = connection_->ExecAll(std::vector<PgStatement>{{"select 1", {}}});
  EXPECT_EQ(lost.status().code(), absl::StatusCode::kUnavailable) << lost.status();
  EXPECT_FALSE(connection_->usable());
}

std::int64_t KeptCount(PgConnection& connection) {
  return connection.Exec("select count(*) from pg_prepared_statements")->Int64(0, 0);
}

TEST_F(PgConnectionTest, StatementsThatSaySoAreKeptOnceTheConnectionIsKnownToBeTheServers) {
  const auto sum = [&](std::int64_t left, std::int64_t right) {
    const auto results = connection_->ExecAll(
        std::vector<PgStatement>{{"begin isolation level repeatable read", {}, true},
                                 {"select $1 + $2", {left, right}, true},
                                 {"select 'unnamed'", {}},
                                 {"rollback", {}, true}});
    EXPECT_TRUE(results.ok()) << results.status();
    EXPECT_EQ(results->size(), 4u);
    return results.ok() ? (*results)[1].Int64(0, 0) : 0;
  };
  EXPECT_FALSE(connection_->keeps_statements());
  EXPECT_EQ(sum(1, 2), 3);
  EXPECT_TRUE(connection_->keeps_statements()) << "nothing stands between us";
  EXPECT_EQ(KeptCount(*connection_), 0);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(sum(i, i), 2 * i);
  EXPECT_EQ(KeptCount(*connection_), 3);
}

TEST_F(PgConnectionTest, StatementsAreKeptInBounds) {
  for (int i = 0; i < 300; ++i) {
    const auto results = connection_->ExecAll(std::vector<PgStatement>{
        {SqlOf(absl::StrCat("select $1 + ", i % 150)), {std::int32_t{i}}, true},
        {i % 7 == 0 ? SqlText("select 1 / 0") : SqlText("select 1"), {}}});
    if (i % 7 == 0) {
      EXPECT_FALSE(results.ok());
    } else {
      ASSERT_TRUE(results.ok()) << results.status();
      EXPECT_EQ((*results)[0].Int64(0, 0), i + i % 150);
    }
    EXPECT_LE(KeptCount(*connection_), PgKeptStatements::kCountMax + 2) << i;
  }
}

TEST_F(PgConnectionTest, AKeptStatementThatFailedIsSentAgain) {
  const std::vector<PgStatement> statement = {{"select k from t", {}, true}};
  ASSERT_TRUE(connection_->ExecAll(std::vector<PgStatement>{{"select 1", {}, true}}).ok());
  EXPECT_FALSE(connection_->ExecAll(statement).ok()) << "there is no such table";
  ASSERT_TRUE(connection_->ExecScript("create table t (k int); insert into t values (7)").ok());
  for (int i = 0; i < 2; ++i) {
    const auto results = connection_->ExecAll(statement);
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ((*results)[0].Int32(0, 0), 7);
  }
}

// As a pooler does that hides where it stands, and hands out another backend.
TEST_F(PgConnectionTest, WhereNamesAreLostStatementsGoUnnamedFromThenOn) {
  const std::vector<PgStatement> statement = {{"select 7", {}, true}};
  ASSERT_TRUE(connection_->ExecAll(statement).ok());
  ASSERT_TRUE(connection_->ExecAll(statement).ok());
  ASSERT_TRUE(connection_->ExecScript("deallocate all").ok());
  const auto lost = connection_->ExecAll(statement);
  EXPECT_TRUE(IsStatementUnknown(lost.status())) << lost.status();
  EXPECT_FALSE(connection_->keeps_statements());
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(connection_->ExecAll(statement).ok());
  EXPECT_EQ(KeptCount(*connection_), 0);
}

// As a migration does of a newer master beside us, which widens a column.
TEST_F(PgConnectionTest, AKeptStatementThatAnswersOtherTypesSinceGoesUnnamedFromThenOn) {
  ASSERT_TRUE(connection_->ExecScript("create table t (k int); insert into t values (7)").ok());
  const auto read = [&] { return connection_->ExecKept("select k from t", {}); };
  for (int i = 0; i < 3; ++i) ASSERT_EQ(read()->Int32(0, 0), 7);
  EXPECT_TRUE(connection_->keeps_statements());
  ASSERT_TRUE(connection_->ExecScript("alter table t alter column k type bigint").ok());
  // Whoever retries what is unavailable goes on, and takes it for no fault of the data.
  const auto changed = read();
  EXPECT_EQ(changed.status().code(), absl::StatusCode::kUnavailable) << changed.status();
  EXPECT_FALSE(connection_->keeps_statements());
  for (int i = 0; i < 2; ++i) ASSERT_EQ(read()->Int64(0, 0), 7);
}

TEST_F(PgConnectionTest, ReturnsEachTypeAsItWasBound) {
  const Uuid uuid = Uuid::Random();
  const std::vector<std::int64_t> integers = {1, -2, std::numeric_limits<std::int64_t>::min()};
  const std::vector<double> doubles = {-0.0, 1e-320, INFINITY};
  const auto result = connection_->Exec(
      "select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14",
      {true, std::int32_t{-7}, std::int64_t{1} << 40, -0.0, "tick \xc3\xa9", PgBytes{"\0\xff"},
       PgTimestamp{1700000000123456}, PgDate{20000}, uuid, PgJsonb{R"({"a": 1})"},
       PgBits{"\xab\xc0", 11}, std::span<const std::int64_t>(integers),
       std::span<const double>(doubles), PgParam::Null(PgOid::kInt4)});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->Bool(0, 0));
  EXPECT_EQ(result->Int32(0, 1), -7);
  EXPECT_EQ(result->Int64(0, 2), std::int64_t{1} << 40);
  EXPECT_TRUE(std::signbit(result->Float64(0, 3)));
  EXPECT_EQ(result->Text(0, 4), "tick \xc3\xa9");
  EXPECT_EQ(result->Bytes(0, 5), std::string_view("\0\xff"));
  EXPECT_EQ(result->TimestampUs(0, 6), 1700000000123456);
  EXPECT_EQ(result->DateDays(0, 7), 20000);
  EXPECT_EQ(result->UuidAt(0, 8), uuid);
  EXPECT_EQ(result->Text(0, 9), R"({"a": 1})");
  EXPECT_EQ(result->Bits(0, 10).bit_count, 11);
  EXPECT_EQ(result->Int64Array(0, 11), integers);
  EXPECT_EQ(result->Float64Array(0, 12), doubles);
  EXPECT_TRUE(result->IsNull(0, 13));
}

TEST_F(PgConnectionTest, CommitsAndRollsBack) {
  ASSERT_TRUE(connection_->ExecScript("create table t (n int primary key)").ok());
  ASSERT_TRUE(
      connection_
          ->InTransaction([&] {
            return connection_->Exec("insert into t values ($1)", {std::int32_t{1}}).status();
          })
          .ok());
  const absl::Status refused = connection_->InTransaction([&]() -> absl::Status {
    const auto inserted = connection_->Exec("insert into t values (2), (1)");
    return inserted.status();
  });
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
  EXPECT_EQ(SqlState(refused), "23505");
  const auto rows = connection_->Exec("select count(*) from t");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->Int64(0, 0), 1);
}

TEST_F(PgConnectionTest, TellsACommitThatWasARollback) {
  ASSERT_TRUE(connection_->Begin().ok());
  EXPECT_FALSE(connection_->Exec("select 1 / 0").ok());
  EXPECT_EQ(connection_->Commit().code(), absl::StatusCode::kAborted);
}

TEST_F(PgConnectionTest, ArraysBindForUnnest) {
  const std::vector<std::string> names = {"a", "", "\xc3\xa9"};
  const std::vector<std::string> blobs = {std::string("\0\1", 2), ""};
  const std::vector<std::int32_t> numbers = {3, -4};
  const std::vector<Uuid> uuids = {Uuid::Random(), Uuid::Random()};
  const auto result = connection_->Exec(
      "select array_to_string($1, '|'), ($2::bytea[])[1], (select sum(n) from unnest($3) n), $4[2]",
      {PgParam::TextArray(names), PgParam::BytesArray(blobs),
       std::span<const std::int32_t>(numbers), std::span<const Uuid>(uuids)});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->Text(0, 0), "a||\xc3\xa9");
  EXPECT_EQ(result->Bytes(0, 1), blobs[0]);
  EXPECT_EQ(result->Int64(0, 2), -1);
  EXPECT_EQ(result->UuidAt(0, 3), uuids[1]);
}

TEST_F(PgConnectionTest, ValuesAreNeverSql) {
  const std::string hostile = "'; drop table t; --";
  const auto result = connection_->Exec("select $1", {hostile});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->Text(0, 0), hostile);
  EXPECT_EQ(connection_->Exec("select $1", {std::string_view("a\0b", 3)}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(PgConnectionTest, AConnectionLostBeforeCommitIsUnavailable) {
  ASSERT_TRUE(connection_->Begin().ok());
  Terminate(connection_->backend_pid());
  const absl::Status status = connection_->Exec("select 1").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_FALSE(connection_->usable());
  // Nothing was sent: that is known.
  EXPECT_EQ(connection_->Commit().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(connection_->Begin().code(), absl::StatusCode::kUnavailable);
}

TEST_F(PgConnectionTest, AConnectionLostAtCommitLeavesTheOutcomeUnknown) {
  ASSERT_TRUE(connection_->Begin().ok());
  Terminate(connection_->backend_pid());
  const absl::Status status = connection_->Commit();
  EXPECT_TRUE(IsCommitUnknown(status)) << status;
}

TEST_F(PgConnectionTest, AFailureAtCommitThatTheServerTellsIsKnown) {
  ASSERT_TRUE(connection_
                  ->ExecScript("create table a (n int primary key); create table b (n int "
                               "references a deferrable initially deferred)")
                  .ok());
  ASSERT_TRUE(connection_->Begin().ok());
  ASSERT_TRUE(connection_->Exec("insert into b values (1)").ok());
  const absl::Status status = connection_->Commit();
  EXPECT_EQ(SqlState(status), "23503");
  EXPECT_FALSE(IsCommitUnknown(status));
  EXPECT_TRUE(connection_->usable());
}

TEST_F(PgConnectionTest, SlowStatementsAreCancelledAndTheConnectionGoesOn) {
  const auto impatient = Open({.url = url_, .statement_timeout = absl::Milliseconds(50)});
  ASSERT_TRUE(impatient->Begin().ok());
  EXPECT_EQ(impatient->Exec("select pg_sleep(60)").status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(impatient->Rollback().ok());
  EXPECT_TRUE(impatient->Exec("select 1").ok());
}

TEST_F(PgConnectionTest, AStoppedServerDoesNotHoldTheCaller) {
  const auto impatient = Open({.url = url_,
                               .statement_timeout = absl::Milliseconds(50),
                               .reply_timeout = absl::Milliseconds(200)});
  ASSERT_TRUE(impatient->Begin().ok());
  const int pid = impatient->backend_pid();
  ASSERT_EQ(kill(pid, SIGSTOP), 0);
  const absl::Status status = impatient->Commit();
  EXPECT_TRUE(IsCommitUnknown(status)) << status;
  EXPECT_FALSE(impatient->usable());
  ASSERT_EQ(kill(pid, SIGCONT), 0);
}

TEST_F(PgConnectionTest, AStoppedServerDoesNotHoldALargeCopy) {
  const auto impatient = Open({.url = url_,
                               .statement_timeout = absl::Milliseconds(50),
                               .reply_timeout = absl::Milliseconds(300)});
  ASSERT_TRUE(impatient->ExecScript("create table t (v bytea)").ok());
  PgCopyRows rows(1);
  rows.Bytes(std::string(8 << 20, 'x'));
  const std::string data = rows.Take();
  const int pid = impatient->backend_pid();
  ASSERT_TRUE(impatient->Begin().ok());
  ASSERT_EQ(kill(pid, SIGSTOP), 0);
  const absl::Status status = impatient->CopyIn("copy t from stdin (format binary)", data).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  ASSERT_EQ(kill(pid, SIGCONT), 0);
}

TEST_F(PgConnectionTest, ACutEndsWhatAnotherThreadWaitsForAndLetsNobodyIn) {
  struct Row {
    const char* name;
    std::function<absl::Status(PgConnection&)> wait;
    bool is_stopped;
  };
  const std::string large(8 << 20, 'x');
  const std::vector<Row> rows = {
      {"a slow statement",
       [](PgConnection& connection) { return connection.Exec("select pg_sleep(60)").status(); },
       false},
      {"a server that reads nothing",
       [&](PgConnection& connection) {
         return connection.Exec("select length($1)", {large}).status();
       },
       true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const auto cut = std::make_shared<PgCut>();
    const PgConnection::Options options{.url = url_, .cut = cut};
    const auto connection = Open(options);
    EXPECT_TRUE(connection->Exec("select 1").ok()) << "nothing is cut yet";
    const int pid = connection->backend_pid();
    if (row.is_stopped) {
      ASSERT_EQ(kill(pid, SIGSTOP), 0);
    }
    const absl::Time begin = absl::Now();
    Worker other("cut", [&] { cut->CutAfter(absl::Milliseconds(50)); });
    const absl::Status status = row.wait(*connection);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_GE(absl::Now() - begin, absl::Milliseconds(40));
    EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
    EXPECT_FALSE(connection->usable());
    EXPECT_EQ(PgConnection::Open(options).status().code(), absl::StatusCode::kUnavailable);
    if (row.is_stopped) {
      ASSERT_EQ(kill(pid, SIGCONT), 0);
    }
  }
  // The earliest holds.
  PgCut cut;
  EXPECT_EQ(cut.left(), absl::InfiniteDuration());
  cut.CutAfter(absl::Hours(1));
  cut.CutAfter(absl::Hours(2));
  EXPECT_LE(cut.left(), absl::Hours(1));
  EXPECT_FALSE(cut.is_cut());
  cut.CutAfter(-absl::Seconds(1));
  EXPECT_TRUE(cut.is_cut());
}

// Of two hosts the first is there and says nothing, as where its disk hangs.
TEST_F(PgConnectionTest, AHostThatSaysNothingIsFollowedByTheNext) {
  const int silent = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const testing::ScratchDirectory scratch;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof(address.sun_path), "%s/.s.PGSQL.5432",
                scratch.path().c_str());
  ASSERT_EQ(bind(silent, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(silent, 4), 0);
  const auto real = connection_->Exec(
      "select split_part(current_setting('unix_socket_directories'), ',', 1),"
      " current_setting('port')");
  ASSERT_TRUE(real.ok()) << real.status();
  const auto url =
      PgConninfo(url_, {{"host", absl::StrCat(scratch.path(), ",", std::string(real->Text(0, 0)))},
                        {"port", absl::StrCat("5432,", std::string(real->Text(0, 1)))}});
  ASSERT_TRUE(url.ok()) << url.status();
  const auto connection = Open({.url = *url, .connect_timeout = absl::Milliseconds(200)});
  EXPECT_TRUE(connection->Exec("select 1").ok());
  close(silent);
}

TEST_F(PgConnectionTest, AnIdleTransactionLetsItsLocksGo) {
  const auto idle = Open({.url = url_, .idle_in_transaction_timeout = absl::Milliseconds(50)});
  ASSERT_TRUE(idle->ExecScript("create table t as select 1 as n").ok());
  ASSERT_TRUE(idle->Begin().ok());
  ASSERT_TRUE(idle->Exec("update t set n = 2").ok());
  // Waits for the lock until the server ends the idle transaction.
  ASSERT_TRUE(connection_->Exec("update t set n = 3").ok());
  EXPECT_EQ(idle->Exec("select 1").status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(PgConnectionTest, AFailedOpenTellsNoPassword) {
  for (const char* url : {"postgresql://u:geheim@/x?host=/nonexistent",
                          "postgresql://u:geheim@%zz/x", "host=/nonexistent password=geheim"}) {
    const absl::Status status = PgConnection::Open({.url = url}).status();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(std::string(status.message()).find("geheim"), std::string::npos) << status;
  }
}

}  // namespace
}  // namespace stepwell
