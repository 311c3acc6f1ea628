#include "storage/pg_connection.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/postgres.h"

namespace stepwell {
namespace {

using testing::Connect;
using testing::TestPostgres;

class PgConnectionTest : public ::testing::Test {
 protected:
  const std::string url_ = TestPostgres::Get().FreshDatabase();
  std::unique_ptr<PgConnection> connection_ = Connect(url_);
};

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

}  // namespace
}  // namespace stepwell
