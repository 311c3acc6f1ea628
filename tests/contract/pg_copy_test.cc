#include "storage/pg_copy.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/support/postgres.h"
#include "tests/support/sql_of.h"

namespace stepwell {
namespace {

using testing::Connect;
using testing::TestPostgres;

constexpr std::int64_t kInt64Min = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();

// One connection for all: each test has a temporary table of its own name.
class PgCopyTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { connection_ = Connect(TestPostgres::Get().FreshDatabase()); }
  static void TearDownTestSuite() { connection_.reset(); }

  // Sends one-column rows through a real table of `type` and reads them back in order.
  PgResult RoundTrip(const std::string& type, PgCopyRows& rows) {
    const std::int64_t count = rows.row_count();
    EXPECT_TRUE(connection_
                    ->ExecScript(SqlOf(absl::StrCat("drop table if exists t; create temp table t "
                                                    "(n int generated always as identity, v ",
                                                    type, ")")))
                    .ok());
    const auto copied = connection_->CopyIn("copy t (v) from stdin (format binary)", rows.Take());
    EXPECT_TRUE(copied.ok()) << copied.status();
    EXPECT_EQ(copied.value_or(-1), count);
    auto result = connection_->Exec("select v from t order by n");
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *std::move(result) : PgResult();
  }

  static std::unique_ptr<PgConnection> connection_;
};
std::unique_ptr<PgConnection> PgCopyTest::connection_;

TEST_F(PgCopyTest, Integers) {
  const std::vector<std::int64_t> values = {0, 1, -1, kInt64Min, kInt64Max, 0x0102030405060708};
  PgCopyRows rows(1);
  for (const std::int64_t value : values) rows.Int64(value);
  const PgResult result = RoundTrip("int8", rows);
  ASSERT_EQ(result.row_count(), 6);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(result.Int64(i, 0), values[i]);

  PgCopyRows narrow(2);
  narrow.Int16(-32768).Int32(std::numeric_limits<std::int32_t>::min()).Int16(7).Int32(8);
  ASSERT_TRUE(connection_->ExecScript("create temp table narrow (a int2, b int4)").ok());
  ASSERT_TRUE(connection_->CopyIn("copy narrow from stdin (format binary)", narrow.Take()).ok());
  const auto read = connection_->Exec("select a, b from narrow order by a");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->Int32(0, 0), -32768);
  EXPECT_EQ(read->Int32(0, 1), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(read->Int32(1, 0), 7);
}

std::vector<double> AwkwardDoubles() {
  std::vector<double> values = {0.0, -0.0, INFINITY, -INFINITY, 5e-324, 1.7976931348623157e308};
  // Quiet, signalling and negative NaN with payloads.
  for (const std::uint64_t bits : {0x7ff8000000000000u, 0x7ff0000000000001u, 0xfff8000000abcdefu,
                                   0x7fffffffffffffffu, 0xfff0000000000002u}) {
    values.push_back(std::bit_cast<double>(std::uint64_t{bits}));
  }
  return values;
}

TEST_F(PgCopyTest, DoublesKeepEveryBit) {
  const std::vector<double> values = AwkwardDoubles();
  PgCopyRows rows(1);
  for (const double value : values) rows.Float64(value);
  const PgResult result = RoundTrip("float8", rows);
  ASSERT_EQ(result.row_count(), static_cast<int>(values.size()));
  for (int i = 0; i < result.row_count(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(result.Float64(i, 0)),
              std::bit_cast<std::uint64_t>(values[i]))
        << i;
  }
}

TEST_F(PgCopyTest, ArraysKeepEveryBit) {
  const std::vector<double> doubles = AwkwardDoubles();
  PgCopyRows rows(1);
  rows.Float64Array(doubles).Float64Array({}).Null();
  const PgResult result = RoundTrip("float8[]", rows);
  ASSERT_EQ(result.row_count(), 3);
  const std::vector<double> read = result.Float64Array(0, 0);
  ASSERT_EQ(read.size(), doubles.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(read[i]), std::bit_cast<std::uint64_t>(doubles[i]));
  }
  EXPECT_TRUE(result.Float64Array(1, 0).empty());
  EXPECT_TRUE(result.IsNull(2, 0));

  const std::vector<std::int64_t> integers = {kInt64Min, -1, 0, kInt64Max};
  PgCopyRows integer_rows(1);
  integer_rows.Int64Array(integers).Int64Array({});
  const PgResult read_integers = RoundTrip("bigint[]", integer_rows);
  EXPECT_EQ(read_integers.Int64Array(0, 0), integers);
  EXPECT_TRUE(read_integers.Int64Array(1, 0).empty());

  const std::vector<std::int32_t> fours = {-5, 5};
  PgCopyRows four_rows(1);
  four_rows.Int32Array(fours);
  EXPECT_EQ(RoundTrip("int[]", four_rows).Int64Array(0, 0), (std::vector<std::int64_t>{-5, 5}));
}

TEST_F(PgCopyTest, BitStringsOfEachLength) {
  std::mt19937_64 random(65);
  std::vector<std::string> values;
  PgCopyRows rows(1);
  for (int bit_count = 0; bit_count <= 65; ++bit_count) {
    std::string bits((bit_count + 7) / 8, '\0');
    for (char& byte : bits) byte = static_cast<char>(random());
    rows.Bits({bits, bit_count});
    values.push_back(bits);
  }
  const PgResult result = RoundTrip("varbit", rows);
  ASSERT_EQ(result.row_count(), 66);
  for (int bit_count = 0; bit_count <= 65; ++bit_count) {
    const PgBits read = result.Bits(bit_count, 0);
    ASSERT_EQ(read.bit_count, bit_count);
    for (int i = 0; i < bit_count; ++i) {
      const int shift = 7 - i % 8;
      EXPECT_EQ((read.bits[i / 8] >> shift) & 1, (values[bit_count][i / 8] >> shift) & 1);
    }
    // Stray low bits of the last byte were cleared; equal strings are equal in SQL.
    if (bit_count % 8 != 0) {
      EXPECT_EQ(read.bits.back() & (0xff >> (bit_count % 8)), 0);
    }
  }
}

TEST_F(PgCopyTest, TimesAndDates) {
  // timestamptz reaches from 4714 BC to beyond the last int64, 294247 AD.
  const std::vector<std::int64_t> values = {0, -1, 1700000000123456, -210866803200000000,
                                            kInt64Max};
  PgCopyRows rows(1);
  for (const std::int64_t value : values) rows.Timestamp({value});
  const PgResult result = RoundTrip("timestamptz", rows);
  ASSERT_EQ(result.row_count(), 5);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(result.TimestampUs(i, 0), values[i]);

  PgCopyRows dates(1);
  dates.Date({0}).Date({20000}).Date({-1});
  const PgResult read = RoundTrip("date", dates);
  EXPECT_EQ(read.DateDays(0, 0), 0);
  EXPECT_EQ(read.DateDays(1, 0), 20000);
  EXPECT_EQ(read.DateDays(2, 0), -1);
  const auto named = connection_->Exec("select v::text from t order by n limit 1");
  EXPECT_EQ(named->Text(0, 0), "1970-01-01");
}

TEST_F(PgCopyTest, TimesOutsideTheRangeAreRefusedAsBadData) {
  for (const std::int64_t value : {kInt64Min, std::int64_t{-210866803200000001}}) {
    ASSERT_TRUE(connection_
                    ->ExecScript("drop table if exists t; create temp table t "
                                 "(v timestamptz)")
                    .ok());
    PgCopyRows rows(1);
    rows.Timestamp({value});
    const auto copied = connection_->CopyIn("copy t from stdin (format binary)", rows.Take());
    EXPECT_EQ(copied.status().code(), absl::StatusCode::kInvalidArgument) << value;
    EXPECT_EQ(SqlState(copied.status()), "22008");
  }
}

TEST_F(PgCopyTest, TextBytesUuidJsonAndNull) {
  const Uuid uuid = Uuid::Random();
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  ASSERT_TRUE(connection_
                  ->ExecScript("create temp table mixed (a text, b bytea, c uuid, d jsonb, e bool, "
                               "f float4, g text)")
                  .ok());
  PgCopyRows rows(7);
  rows.Text("h\xc3\xa9llo").Bytes(bytes).UuidValue(uuid).Jsonb({R"({"k": [1, null]})"});
  rows.Bool(true).Float32(0.1f).Null();
  rows.Text("").Bytes("").Null().Null().Bool(false).Null().Text("x");
  const auto copied = connection_->CopyIn("copy mixed from stdin (format binary)", rows.Take());
  ASSERT_TRUE(copied.ok()) << copied.status();
  const auto read = connection_->Exec("select * from mixed order by a desc");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->Text(0, 0), "h\xc3\xa9llo");
  EXPECT_EQ(read->Bytes(0, 1), bytes);
  EXPECT_EQ(read->UuidAt(0, 2), uuid);
  EXPECT_EQ(read->Text(0, 3), R"({"k": [1, null]})");
  EXPECT_TRUE(read->Bool(0, 4));
  EXPECT_EQ(read->Float64(0, 5), 0.1f);
  EXPECT_TRUE(read->IsNull(0, 6));
  EXPECT_EQ(read->Text(1, 0), "");
  EXPECT_EQ(read->Bytes(1, 1), "");
  EXPECT_TRUE(read->IsNull(1, 2));
}

TEST_F(PgCopyTest, BadTextIsRefusedAndTheConnectionGoesOn) {
  ASSERT_TRUE(connection_->ExecScript("create temp table texts (v text)").ok());
  for (const std::string_view bad : {std::string_view("a\0b", 3), std::string_view("\xff\xfe")}) {
    PgCopyRows rows(1);
    rows.Text(bad);
    const auto copied = connection_->CopyIn("copy texts from stdin (format binary)", rows.Take());
    EXPECT_EQ(SqlState(copied.status()), "22021") << copied.status();
    EXPECT_TRUE(connection_->Exec("select 1").ok());
  }
}

TEST_F(PgCopyTest, EightMebibytesInOneValue) {
  std::string payload(std::size_t{8} << 20, '\0');
  std::mt19937_64 random(8);
  for (char& byte : payload) byte = static_cast<char>(random());
  PgCopyRows rows(1);
  rows.Bytes(payload);
  const PgResult result = RoundTrip("bytea", rows);
  EXPECT_EQ(result.Bytes(0, 0), payload);
}

TEST_F(PgCopyTest, NoRowsIsAValidStream) {
  PgCopyRows rows(1);
  EXPECT_EQ(RoundTrip("int4", rows).row_count(), 0);
}

}  // namespace
}  // namespace stepwell
