#include "storage/pg_leaves.h"

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/backoff.h"
#include "base/failpoint.h"
#include "base/status_macros.h"
#include "storage/fold_plan.h"
#include "storage/pg_caps_read.h"
#include "storage/pg_ddl.h"
#include "storage/pg_fold_sql.h"
#include "storage/pg_row_copy.h"

namespace stepwell {
namespace {

constexpr int kAttemptsMax = 5;
constexpr std::int32_t kDaysBack = 1;
constexpr std::int32_t kDaysAhead = 2;

// A row of rollups is read whole, and one that lies in one place is read in one go. So is a row of samples,
// of which most are a little longer than the 2 kB that PostgreSQL leaves in place; where fewer than three fit
// a page, too much of it would stay empty.
SqlText StorageOf(std::string_view table) {
  if (table == "rollups") return " with (toast_tuple_target = 8160)";
  if (table == "metrics") return " with (toast_tuple_target = 2712)";
  return "";
}

// The table is empty, so ATTACH has nothing to check and holds its locks for a moment only; its
// indexes are made by ATTACH itself.
SqlText AttachSql(const char* table, std::int16_t keep_class, std::int32_t day) {
  const SqlText parent = SqlName(table);
  const SqlText leaf = LeafTable(table, keep_class, day);
  const SqlText number = SqlInteger(keep_class);
  return SqlCat({"create table if not exists ", leaf, " (like stepwell.", parent,
                 " including storage)", StorageOf(table), "; alter table stepwell.", parent,
                 " attach partition ", leaf, " for values from (", number, ", ", SqlDay(day),
                 ") to (", number, ", ", SqlDay(day + 1), ")"});
}

// ANALYZE would sort vectors, too, which nothing asks for.
SqlText AnalyzeKeysSql(const char* table, std::int16_t keep_class, std::int32_t day) {
  const SqlText leaf = SqlQuoted(LeafTable(table, keep_class, day));
  return SqlCat({"select stepwell.analyze_keys(", leaf, ")"});
}

}  // namespace

absl::Status PgLeaves::AttachAround(PgConnection& connection, std::int64_t now_us) {
  STEPWELL_ASSIGN_OR_RETURN(const KeepClasses classes, ReadKeepClasses(connection));
  for (const KeepClass& each : classes.all()) {
    for (std::int32_t day = -kDaysBack; day <= kDaysAhead; ++day) {
      STEPWELL_RETURN_IF_ERROR(Ensure(connection, each.keep_class, DayOf(now_us) + day));
    }
  }
  return absl::OkStatus();
}

absl::Status PgLeaves::Ensure(PgConnection& connection, std::int16_t keep_class, std::int32_t day) {
  if (known_.contains({keep_class, day})) return absl::OkStatus();
  for (const char* table : {"metrics", "ticks", "rollups", "rollup_ticks"}) {
    STEPWELL_RETURN_IF_ERROR(Attach(connection, table, keep_class, day));
  }
  known_.insert({keep_class, day});
  return absl::OkStatus();
}

absl::Status PgLeaves::Attach(PgConnection& connection, const char* table, std::int16_t keep_class,
                              std::int32_t day) {
  Backoff backoff({.first = absl::Milliseconds(10), .longest = absl::Milliseconds(100)});
  absl::Status status;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult attached,
        connection.Exec(sql::kIsAttached, {LeafName(table, keep_class, day)}));
    if (attached.Bool(0, 0)) return absl::OkStatus();
    status = InDdlTransaction(connection, [&]() -> absl::Status {
      STEPWELL_RETURN_IF_ERROR(connection.ExecScript(AttachSql(table, keep_class, day)));
      STEPWELL_RETURN_IF_ERROR(connection.ExecScript(AnalyzeKeysSql(table, keep_class, day)));
      return failpoint::Check("attach_before_commit");
    });
    if (status.ok()) STEPWELL_FAILPOINT("attach_after_commit");
    if (!IsLockTimeout(status)) return Annotate(status, "attach a leaf");
    absl::SleepFor(backoff.NextDelay());
  }
  return absl::UnavailableError(
      absl::StrCat("attach ", LeafName(table, keep_class, day), ": ", status.message()));
}

}  // namespace stepwell
