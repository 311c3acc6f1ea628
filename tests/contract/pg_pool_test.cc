#include "storage/pg_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <pqxx/pqxx>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/postgres.h"

namespace stepwell {
namespace {

using testing::Connect;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TestPostgres;
using Access = PgPool::Access;

absl::Time In(absl::Duration duration) { return absl::Now() + duration; }

class PgPoolTest : public ::testing::Test {
 protected:
  std::unique_ptr<PgPool> OpenPool(int connection_count_max) {
    auto pool = PgPool::Open({.url = url_, .connection_count_max = connection_count_max});
    EXPECT_TRUE(pool.ok()) << pool.status();
    return *std::move(pool);
  }

  // Runs one statement in a transaction; its first value as text.
  absl::StatusOr<std::string> Value(PgPool& pool, const std::string& sql,
                                    Access access = Access::kWrite) {
    std::string value;
    const absl::Status status =
        pool.Run(access, In(absl::Seconds(20)), [&](pqxx::transaction_base& transaction) {
          const auto result = transaction.exec(sql);
          if (!result.empty()) value = result[0][0].as<std::string>();
          return absl::OkStatus();
        });
    if (!status.ok()) return status;
    return value;
  }

  const std::string url_ = TestPostgres::Get().FreshDatabase();
  std::unique_ptr<PgPool> pool_ = OpenPool(2);
};

TEST_F(PgPoolTest, CommitsWhatSucceedsAndNothingElse) {
  ASSERT_TRUE(Value(*pool_, "create table t (n int primary key)").ok());
  ASSERT_TRUE(Value(*pool_, "insert into t values (1)").ok());
  EXPECT_EQ(Value(*pool_, "insert into t values (2), (1)").status().code(),
            absl::StatusCode::kInvalidArgument);
  const absl::Status own = pool_->Run(Access::kWrite, In(absl::Seconds(5)), [&](auto& transaction) {
    transaction.exec("insert into t values (3)");
    return absl::NotFoundError("trial 7");
  });
  EXPECT_EQ(own, absl::NotFoundError("trial 7"));
  EXPECT_EQ(*Value(*pool_, "select string_agg(n::text, ',') from t"), "1");
}

TEST_F(PgPoolTest, ReadsSeeOneSnapshotAndMayNotWrite) {
  ASSERT_TRUE(Value(*pool_, "create table t (n int)").ok());
  EXPECT_EQ(SqlState(Value(*pool_, "insert into t values (1)", Access::kRead).status()), "25006");
  const auto other = Connect(url_);
  const absl::Status status =
      pool_->Run(Access::kRead, In(absl::Seconds(5)), [&](pqxx::transaction_base& transaction) {
        EXPECT_EQ(transaction.exec("select count(*) from t")[0][0].as<int>(), 0);
        EXPECT_TRUE(other->Exec("insert into t values (1)").ok());
        EXPECT_EQ(transaction.exec("select count(*) from t")[0][0].as<int>(), 0);
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(PgPoolTest, ErrorsCarryTheStateAndNoSql) {
  const absl::Status status =
      Value(*pool_, "select secret_column from pg_class where relname = 'hidden'").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(SqlState(status), "42703");
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("hidden")));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
}

TEST_F(PgPoolTest, MistakesInReadingResultsAreInternal) {
  const absl::Status status =
      pool_->Run(Access::kRead, In(absl::Seconds(5)), [&](pqxx::transaction_base& transaction) {
        (void)transaction.exec("select 'x'")[0][0].as<int>();
        return absl::OkStatus();
      });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
}

TEST_F(PgPoolTest, KeepsASoundConnectionAndDropsAFailedOne) {
  const std::string first = *Value(*pool_, "select pg_backend_pid()");
  EXPECT_EQ(*Value(*pool_, "select pg_backend_pid()"), first);
  EXPECT_FALSE(Value(*pool_, "select 1 / 0").ok());
  EXPECT_NE(*Value(*pool_, "select pg_backend_pid()"), first);
  EXPECT_EQ(pool_->connection_count(), 1);
}

TEST_F(PgPoolTest, AnIdleConnectionThatWasCutIsReplacedUnseen) {
  const std::string first = *Value(*pool_, "select pg_backend_pid()");
  ASSERT_TRUE(Connect(url_)
                  ->ExecScript(absl::StrCat("select pg_terminate_backend(", first, ", 5000)"))
                  .ok());
  const auto second = Value(*pool_, "select pg_backend_pid()");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE(*second, first);
}

TEST_F(PgPoolTest, AConnectionCutInsideATransactionIsUnavailableAndForgotten) {
  const absl::Status status =
      pool_->Run(Access::kWrite, In(absl::Seconds(20)), [&](pqxx::transaction_base& transaction) {
        const int pid = transaction.exec("select pg_backend_pid()")[0][0].as<int>();
        EXPECT_TRUE(Connect(url_)
                        ->ExecScript(absl::StrCat("select pg_terminate_backend(", pid, ", 5000)"))
                        .ok());
        transaction.exec("select 1");
        return absl::OkStatus();
      });
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(pool_->connection_count(), 0);
}

TEST_F(PgPoolTest, AConnectionLostAtCommitLeavesTheOutcomeUnknown) {
  const absl::Status status =
      pool_->Run(Access::kWrite, In(absl::Seconds(20)), [&](pqxx::transaction_base& transaction) {
        const int pid = transaction.exec("select pg_backend_pid()")[0][0].as<int>();
        EXPECT_TRUE(Connect(url_)
                        ->ExecScript(absl::StrCat("select pg_terminate_backend(", pid, ", 5000)"))
                        .ok());
        return absl::OkStatus();
      });
  EXPECT_TRUE(IsCommitUnknown(status)) << status;
}

TEST_F(PgPoolTest, SlowStatementsAreCancelledAtTheDeadline) {
  const absl::Time start = absl::Now();
  const absl::Status status = pool_->Run(Access::kRead, In(absl::Milliseconds(100)),
                                         [&](pqxx::transaction_base& transaction) {
                                           transaction.exec("select pg_sleep(60)");
                                           return absl::OkStatus();
                                         });
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
}

TEST_F(PgPoolTest, AStoppedServerIsCutOff) {
  int pid = 0;
  const absl::Status status = pool_->Run(
      Access::kRead, In(absl::Milliseconds(200)), [&](pqxx::transaction_base& transaction) {
        pid = transaction.exec("select pg_backend_pid()")[0][0].as<int>();
        kill(pid, SIGSTOP);
        transaction.exec("select 1");
        return absl::OkStatus();
      });
  kill(pid, SIGCONT);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
}

TEST_F(PgPoolTest, CallersWaitForAConnectionUntilTheirDeadline) {
  const auto pool = OpenPool(1);
  const absl::Status status = pool->Run(Access::kRead, In(absl::Seconds(20)), [&](auto&) {
    const absl::Status inner = pool->Run(Access::kRead, In(absl::Milliseconds(50)),
                                         [](auto&) { return absl::OkStatus(); });
    EXPECT_EQ(inner.code(), absl::StatusCode::kDeadlineExceeded) << inner;
    EXPECT_THAT(std::string(inner.message()), HasSubstr("all 1 database connections"));
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(PgPoolTest, ManyThreadsShareFewConnections) {
  const auto pool = OpenPool(3);
  ASSERT_TRUE(Value(*pool, "create table t (n int)").ok());
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 20; ++n) {
        // Every fifth fails and costs its connection.
        const bool fails = n % 5 == 0;
        EXPECT_EQ(Value(*pool, fails ? "select 1 / 0" : "insert into t values (1)").ok(), !fails);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*Value(*pool, "select count(*) from t"), "128");
  EXPECT_LE(pool->connection_count(), 3);
}

TEST_F(PgPoolTest, AnUnreachableServerIsUnavailable) {
  auto pool = PgPool::Open({.url = "postgresql://u:secret@/x?host=/nonexistent"});
  ASSERT_TRUE(pool.ok());
  const absl::Status status = Value(**pool, "select 1").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("secret")));
  EXPECT_EQ((*pool)->connection_count(), 0);
}

}  // namespace
}  // namespace stepwell
