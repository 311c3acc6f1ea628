#include "storage/pg_caps_read.h"

#include <algorithm>
#include <string>

#include "base/status_macros.h"
#include "storage/pg_array.h"
#include "storage/pg_caps_sql.h"

namespace stepwell {
namespace {

constexpr int kProjectId = 11, kCreatedTime = 12;
constexpr int kOwnerProject = 11, kOwnerName = 12, kOwnerProjectId = 13;

// The columns of STEPWELL_CAPS_COLUMNS.
PlacedCaps CapsAt(const PgResult& result, int row) {
  PlacedCaps placed;
  placed.place = {.owner = static_cast<CapsOwner>(result.Int32(row, 0)),
                  .owner_id = result.Int64(row, 1),
                  .metric_group = std::string(result.Text(row, 2))};
  int column = 3;
  for (const CapField& field : kCapFields) {
    if (!result.IsNull(row, column)) placed.caps.*field.set = result.Int64(row, column);
    ++column;
  }
  return placed;
}

std::vector<KeepClass> ClassesIn(const PgResult& result) {
  std::vector<KeepClass> classes;
  for (int row = 0; row < result.row_count(); ++row) {
    classes.push_back({.keep_class = static_cast<std::int16_t>(result.Int32(row, 0)),
                       .ages = {result.Int64(row, 1), result.Int64(row, 2)}});
  }
  return classes;
}

}  // namespace

absl::StatusOr<std::optional<CapsOfTrial>> ReadCapsOfTrial(PgConnection& connection,
                                                           TrialId trial_id) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows,
                            connection.Exec(sql::kReadCapsOfTrial, {Value(trial_id)}));
  if (rows.row_count() == 0) return std::nullopt;
  CapsOfTrial caps{.project_id = rows.Int64(0, kProjectId),
                   .created_time_us = rows.TimestampUs(0, kCreatedTime)};
  for (int row = 0; row < rows.row_count(); ++row) {
    if (!rows.IsNull(row, 0)) caps.placed.push_back(CapsAt(rows, row));
  }
  return caps;
}

absl::StatusOr<KeepClasses> ReadKeepClasses(PgConnection& connection) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows, connection.Exec(sql::kReadKeepClasses));
  return KeepClasses(ClassesIn(rows));
}

absl::StatusOr<KeepPlan> ReadKeepPlan(PgConnection& connection, TrialId trial_id) {
  STEPWELL_ASSIGN_OR_RETURN(const auto caps, ReadCapsOfTrial(connection, trial_id));
  if (!caps) return KeepPlan();
  STEPWELL_ASSIGN_OR_RETURN(const KeepClasses classes, ReadKeepClasses(connection));
  return KeepPlan(caps->placed, caps->project_id, Value(trial_id), classes);
}

absl::StatusOr<bool> HoldKeepPlan(PgConnection& connection, const KeepPlan& plan) {
  std::vector<KeepClass> held;
  std::vector<std::int16_t> numbers;
  for (const KeepClass& each : plan.used()) {
    if (each.keep_class == 0) continue;  // never changes
    held.push_back(each);
    numbers.push_back(each.keep_class);
  }
  if (numbers.empty()) return true;
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows,
                            connection.Exec(sql::kHoldKeepClasses, {PgArray(numbers)}));
  return ClassesIn(rows) == held;
}

absl::StatusOr<Places> ReadPlaces(PgConnection& connection, const ProjectFilter& projects) {
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult rows,
      connection.Exec(sql::kReadPlaces, {!projects.is_all(), PgArray(projects.named())}));
  Places places;
  for (int row = 0; row < rows.row_count(); ++row) {
    PlacedCaps& placed = places.placed.emplace_back(CapsAt(rows, row));
    placed.place.project = std::string(rows.Text(row, kOwnerProject));
    placed.place.external_id = std::string(rows.Text(row, kOwnerName));
    if (placed.place.owner == CapsOwner::kTrial) {
      places.trial_projects.emplace_back(placed.place.owner_id, rows.Int64(row, kOwnerProjectId));
    }
  }
  auto& pairs = places.trial_projects;
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return places;
}

}  // namespace stepwell
