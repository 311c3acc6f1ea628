#include "tests/support/damaged_table.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "storage/pg_error.h"
#include "tests/support/sql_of.h"

namespace stepwell::testing {
namespace {

std::string Text(PgConnection& connection, const std::string& sql) {
  const auto row = connection.Exec(SqlOf(sql));
  EXPECT_TRUE(row.ok()) << row.status() << " " << sql;
  return row.ok() ? std::string(row->Text(0, 0)) : "";
}

// Its own tablespace gives the table a file that the server has no page of in memory.
void MoveAside(PgConnection& connection, const std::string& table) {
  const std::string space =
      absl::StrCat("damaged_", table, "_", Text(connection, "select current_database()::text"));
  for (const std::string& sql :
       {std::string("set allow_in_place_tablespaces = on"),
        absl::StrCat("create tablespace ", space, " location ''"),
        absl::StrCat("alter table stepwell.", table, " set tablespace ", space),
        std::string("checkpoint")}) {
    const absl::Status status = connection.ExecScript(SqlOf(sql));
    ASSERT_TRUE(status.ok()) << status << " " << sql;
  }
}

}  // namespace

void DamageTable(PgConnection& connection, const std::string& table, std::optional<int> page) {
  ASSERT_NO_FATAL_FAILURE(MoveAside(connection, table));
  const std::string path = absl::StrCat(
      Text(connection, "show data_directory"), "/",
      Text(connection, absl::StrCat("select pg_relation_filepath('stepwell.", table, "')")));
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  ASSERT_TRUE(file.is_open()) << path;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path));
  const std::int64_t page_bytes = std::stoll(Text(connection, "show block_size"));
  const std::int64_t begin = page.value_or(0) * page_bytes;
  const std::int64_t end = page ? begin + page_bytes : size;
  ASSERT_LT(begin, end) << path;
  ASSERT_LE(end, size) << path;
  file.seekp(begin);
  file << std::string(static_cast<std::size_t>(end - begin), 'x');
  file.close();
  ASSERT_TRUE(file.good());
  const absl::Status read =
      connection.Exec(SqlOf(absl::StrCat("select count(*) from stepwell.", table))).status();
  ASSERT_TRUE(IsUnreadable(read)) << read;
}

}  // namespace stepwell::testing
