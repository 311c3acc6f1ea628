// ManyTrialsTest: a trial among a thousand copies of itself in thirty leaves. Header only.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "storage/pg_leaves.h"
#include "tests/contract/query/random_trial.h"
#include "tests/support/sql_of.h"

namespace stepwell {

class ManyTrialsTest : public RandomTrialTest {
 protected:
  static constexpr int kDays = 30;
  static constexpr std::int32_t kFirstDay = 20'000;

  ManyTrialsTest() {
    PgLeaves leaves;
    for (std::int32_t day = 0; day < kDays; ++day) {
      EXPECT_TRUE(leaves.Ensure(*connection_, 0, kFirstDay + day).ok());
    }
  }

  void Run(const std::string& script) {
    const absl::Status status = connection_->ExecScript(SqlOf(script));
    ASSERT_TRUE(status.ok()) << status << "\n" << script;
  }

  // What is merged, and what waits to be.
  static std::vector<std::string> MergedTables() {
    return {"trials",
            "attempts",
            "writers",
            "writer_origins",
            "series",
            "gaps",
            "usage_lines",
            "caps",
            "metrics",
            "ticks",
            "rollups",
            "rollup_ticks",
            "recent_rollups_0",
            "recent_rollups_1",
            "recent_rollups_2",
            "recent_rollups_3",
            "recent_rollup_ticks_0",
            "recent_rollup_ticks_1",
            "recent_rollup_ticks_2",
            "recent_rollup_ticks_3"};
  }
  static std::vector<std::string> AllTables() {
    std::vector<std::string> tables = MergedTables();
    for (const char* unmerged : {"recent", "recent_ticks", "journal_0"}) tables.push_back(unmerged);
    return tables;
  }

  // Copies of the trial numbered first ... last: half of them in its own leaves, the others in all. Of so many of its series at most.
  void CopyTrial(int first, int last, const std::vector<std::string>& tables = AllTables(),
                 int series_max = INT32_MAX) {
    const std::string numbers = absl::StrCat("generate_series(", first, ", ", last, ") n");
    for (const std::string& table : tables) {
      const auto columns = ColumnsOf(table);
      ASSERT_TRUE(columns.ok()) << columns.status();
      std::string names;
      std::string values;
      bool is_of_series = false;
      for (int row = 0; row < columns->row_count(); ++row) {
        const std::string name(columns->Text(row, 0));
        absl::StrAppend(&names, row == 0 ? "" : ", ", name);
        is_of_series = is_of_series || name == "series_no";
        // The segments of rollups are those of days.
        const bool stays = name == "received_day" && absl::StartsWith(table, "recent_rollup");
        absl::StrAppend(&values, row == 0 ? "" : ", ", stays ? name : Changed(name));
      }
      const std::string key = table == "caps" ? "place = 2 and place_id" : "trial_id";
      Run(absl::StrCat("insert into stepwell.", table, " (", names, ") select ", values,
                       " from stepwell.", table, ", ", numbers, " where ", key, " = ",
                       Value(trial_id_),
                       is_of_series ? absl::StrCat(" and series_no <= ", series_max) : ""));
    }
    Run("analyze");
  }

  absl::StatusOr<PgResult> ColumnsOf(const std::string& table) {
    return connection_->Exec(
        "select column_name::text from information_schema.columns where table_schema = "
        "'stepwell' and table_name = $1 and column_name <> 'gap_no'",
        {table});
  }

  // Those that hold samples or rollups of the trial, by the ledger.
  std::set<std::string> LeavesOfTrial() {
    std::set<std::string> leaves;
    const auto days = connection_->Exec(
        "select distinct to_char(received_day, 'YYYYMMDD') from stepwell.usage where trial_id = $1",
        {Value(trial_id_)});
    EXPECT_TRUE(days.ok()) << days.status();
    for (int row = 0; row < days->row_count(); ++row) {
      for (const char* table : {"metrics", "ticks", "rollups", "rollup_ticks"}) {
        leaves.insert(absl::StrCat(table, "_k0_", std::string(days->Text(row, 0))));
      }
    }
    return leaves;
  }

  static std::string Changed(const std::string& column) {
    if (column == "trial_id" || column == "place_id") return column + " + n";
    if (column == "external_id") return "external_id || '-' || n";
    if (column == "created_time") return "created_time - n * interval '1 minute'";
    if (column == "segment") return "(n % 4)::smallint";
    if (column == "received_day") {
      return absl::StrCat("case when n % 2 = 0 then received_day else date '1970-01-01' + ",
                          kFirstDay, " + (n / 2 + (received_day - date '1970-01-01')) % ", kDays,
                          " end");
    }
    return column;
  }

  const std::unique_ptr<PgConnection> connection_ = testing::Connect(url_);
};

}  // namespace stepwell
