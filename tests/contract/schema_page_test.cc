// The tables of columns in docs/schema.md say what the database has: all of it, and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/support/places/places.h"
#include "tests/support/postgres.h"

namespace stepwell {
namespace {

using ::testing::IsSupersetOf;

// "name type", as PostgreSQL writes it.
using Columns = std::set<std::string>;

// What stands between backticks.
std::vector<std::string> Quoted(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '`');
  std::vector<std::string> quoted;
  for (std::size_t i = 1; i < parts.size(); i += 2) quoted.push_back(parts[i]);
  return quoted;
}

std::map<std::string, Columns> ColumnsOfPage() {
  std::ifstream page(SourcePlace("docs/schema.md"));
  std::map<std::string, Columns> all;
  std::vector<std::string> tables;
  for (std::string line; std::getline(page, line);) {
    if (absl::StartsWith(line, "#")) {
      tables = absl::StartsWith(line, "### Columns of") ? Quoted(line) : std::vector<std::string>();
    }
    const std::vector<std::string> cells = absl::StrSplit(line, " | ");
    if (!absl::StartsWith(line, "| `") || cells.size() < 3) continue;
    for (const std::string& table : tables) {
      for (const std::string& column : Quoted(cells[0])) {
        EXPECT_TRUE(all[table].insert(absl::StrCat(column, " ", cells[1])).second) << line;
      }
    }
  }
  return all;
}

TEST(SchemaPageTest, TellsTheColumnsThatThereAre) {
  const std::map<std::string, Columns> told = ColumnsOfPage();
  std::set<std::string> tables;
  for (const auto& [table, columns] : told) tables.insert(table);
  EXPECT_THAT(tables, IsSupersetOf({"projects", "trials", "series", "gaps", "usage", "attempts",
                                    "caps", "keep_classes", "swept_leaves", "decoded_metrics",
                                    "decoded_recent", "decoded_rollups"}));
  const auto connection = testing::Connect(testing::TestPostgres::Get().FreshMigratedDatabase());
  for (const auto& [table, columns] : told) {
    SCOPED_TRACE(table);
    const auto rows = connection->Exec(
        "select attname || ' ' || format_type(atttypid, atttypmod) from pg_attribute "
        "where attrelid = ('stepwell.' || $1)::regclass and attnum > 0 and not attisdropped",
        {table});
    ASSERT_TRUE(rows.ok()) << rows.status();
    Columns there;
    for (int row = 0; row < rows->row_count(); ++row) there.emplace(rows->Text(row, 0));
    EXPECT_EQ(columns, there);
  }
}

}  // namespace
}  // namespace stepwell
