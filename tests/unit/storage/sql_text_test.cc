#include "storage/sql_text.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "storage/pg_connection.h"

namespace stepwell {
namespace {

// What somebody put together elsewhere is no SQL. sql_text_refused.py has what only a compiler can say.
template <typename From>
constexpr bool kBecomesSql =
    std::is_constructible_v<SqlText, From> || std::is_constructible_v<SqlPiece, From> ||
    std::is_assignable_v<SqlText&, From>;
static_assert(!kBecomesSql<std::string>);
static_assert(!kBecomesSql<const std::string&>);
static_assert(!kBecomesSql<std::string_view>);
static_assert(!kBecomesSql<const char*>);
static_assert(!kBecomesSql<char*>);
static_assert(!kBecomesSql<std::nullptr_t>);
static_assert(!kBecomesSql<std::size_t>);
static_assert(kBecomesSql<const SqlText&>);

template <typename Text>
concept IsRun = requires(PgConnection& connection, Text text) {
  connection.Exec(text, {});
};
template <typename Text>
concept IsRunAsScript = requires(PgConnection& connection, Text text) {
  connection.ExecScript(text);
};
template <typename Text>
concept IsCopied = requires(PgConnection& connection, Text text) {
  connection.CopyIn(text, "");
};
static_assert(IsRun<SqlText> && IsRunAsScript<SqlText> && IsCopied<SqlText>);
static_assert(!IsRun<std::string> && !IsRunAsScript<std::string> && !IsCopied<std::string>);
static_assert(!IsRun<const char*> && !IsRunAsScript<const char*> && !IsCopied<const char*>);
static_assert(!std::is_constructible_v<PgStatement, std::string>);

constexpr char kConstant[] = "select 1";

TEST(SqlTextTest, ALiteralIsKeptAsItIs) {
  const SqlText literal = kConstant;
  const SqlText copied = literal;
  EXPECT_EQ(literal.c_str(), kConstant) << "it copies no bytes";
  EXPECT_EQ(copied.c_str(), kConstant);
  EXPECT_EQ(copied.text(), "select 1");
  constexpr SqlText kAtCompileTime = "select 2";
  EXPECT_EQ(kAtCompileTime.text(), "select 2");
  EXPECT_TRUE(SqlText().empty());
  EXPECT_STREQ(SqlText().c_str(), "");
}

TEST(SqlTextTest, WhatWasMadeOutlivesWhatItWasMadeOf) {
  SqlText made;
  {
    const SqlText leaf = SqlCat({"stepwell.", SqlName("metrics_k0_20260101")});
    made = SqlCat({"truncate ", leaf, ", ", leaf});
  }
  SqlText copied = made;
  const SqlText moved = std::move(made);
  EXPECT_EQ(moved.text(),
            "truncate stepwell.\"metrics_k0_20260101\", stepwell.\"metrics_k0_20260101\"");
  EXPECT_EQ(copied.text(), moved.text());
  EXPECT_NE(copied.c_str(), moved.c_str());
  EXPECT_EQ(moved.c_str()[moved.text().size()], '\0');
  copied = SqlCat({copied, ";"});
  EXPECT_EQ(copied.text().back(), ';');
  made = "select 1";
  EXPECT_EQ(made.text(), "select 1");
}

TEST(SqlTextTest, JoinsAndFills) {
  EXPECT_EQ(SqlJoin({}, ", ").text(), "");
  const std::vector<SqlText> one = {"a"};
  EXPECT_EQ(SqlJoin(one, " or ").text(), "a");
  const std::vector<SqlText> some = {"a", SqlParameter(2), SqlInteger(-7)};
  EXPECT_EQ(SqlJoin(some, " or ").text(), "a or $2 or -7");
  EXPECT_EQ(SqlCat({}).text(), "");
  EXPECT_EQ(SqlFill("select from %table, (%table)", "t").text(), "select from t, (t)");
  EXPECT_EQ(SqlFill("select 1", "t").text(), "select 1");
  EXPECT_EQ(SqlParameter(65535).text(), "$65535");
  EXPECT_EQ(SqlInteger(INT64_MIN).text(), "-9223372036854775808");
}

TEST(SqlTextTest, NamesStayWithinTheirQuotes) {
  struct Row {
    std::string_view name;
    std::string_view quoted;
  };
  for (const Row& row : {Row{"metrics", "\"metrics\""}, Row{"a b", "\"a b\""},
                         Row{"x\" ; drop table t; --", "\"x\"\" ; drop table t; --\""},
                         Row{"\"", "\"\"\"\""}, Row{"it's", "\"it's\""}}) {
    EXPECT_EQ(SqlName(row.name).text(), row.quoted);
  }
  EXPECT_EQ(SqlQuoted(SqlName("it's")).text(), "'\"it''s\"'");
  EXPECT_EQ(SqlQuoted("a\\'").text(), "'a\\'''");
}

TEST(SqlTextTest, DaysAreDates) {
  EXPECT_EQ(SqlDay(0).text(), "'1970-01-01'");
  EXPECT_EQ(SqlDay(20'454).text(), "'2026-01-01'");
  EXPECT_EQ(SqlDay(-1).text(), "'1969-12-31'");
}

TEST(SqlTextDeathTest, BoundsAreHeld) {
  EXPECT_DEATH(SqlName(""), "");
  EXPECT_DEATH(SqlName(std::string(64, 'x')), "");
  EXPECT_DEATH(SqlName(std::string_view("a\0b", 3)), "");
  EXPECT_DEATH(SqlParameter(0), "");
  EXPECT_DEATH(SqlParameter(65536), "");
}

}  // namespace
}  // namespace stepwell
