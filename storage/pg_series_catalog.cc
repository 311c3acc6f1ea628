#include "storage/pg_series_catalog.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/failpoint.h"
#include "base/status_macros.h"
#include "storage/pg_array.h"
#include "storage/pg_sql.h"
#include "storage/series_labels.h"

namespace stepwell {
namespace {

// One answer in the making. Definitions may name the same series twice.
class Catalog {
 public:
  Catalog(PgConnection& connection, TrialId trial_id,
          absl::Span<const SeriesDefinition> definitions)
      : connection_(connection),
        trial_id_(trial_id),
        definitions_(definitions),
        numbers_(definitions.size()) {
    for (const SeriesDefinition& definition : definitions) {
      groups_.push_back(definition.key.metric_group);
      names_.push_back(definition.key.name);
      hashes_.push_back(LabelsHash(definition.key.labels));
    }
  }

  absl::Status Find();
  bool Complete() const {
    for (const SeriesNo number : numbers_) {
      if (number == SeriesNo{}) return false;
    }
    return true;
  }
  // Whether the trial has its `series_max`, asked without a lock: series are never taken away, so
  // that it will have them later, too.
  absl::StatusOr<bool> TrialIsFull(int series_max) const;
  // Those for which there is room; the others stay without a number.
  absl::Status CreateMissing(int series_max);
  std::vector<SeriesNo> numbers() const { return numbers_; }
  const std::vector<std::size_t>& created() const { return created_; }

 private:
  absl::Status CheckSame(const SeriesDefinition& given, std::int16_t kind,
                         std::string_view unit) const;
  absl::Status Insert(absl::Span<const std::size_t> missing, std::int32_t first_number);

  PgConnection& connection_;
  const TrialId trial_id_;
  const absl::Span<const SeriesDefinition> definitions_;
  std::vector<std::string> groups_, names_, hashes_;
  std::vector<SeriesNo> numbers_;
  std::vector<std::size_t> created_;
};

absl::Status Catalog::Find() {
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult found,
      connection_.Exec(sql::kFindSeries, {Value(trial_id_), PgArray(groups_), PgArray(names_),
                                          PgParam::BytesArray(hashes_)}));
  for (int row = 0; row < found.row_count(); ++row) {
    const auto index = static_cast<std::size_t>(found.Int32(row, 0)) - 1;
    STEPWELL_RETURN_IF_ERROR(CheckSame(
        definitions_[index], static_cast<std::int16_t>(found.Int32(row, 2)), found.Text(row, 3)));
    numbers_[index] = SeriesNo{found.Int32(row, 1)};
  }
  return absl::OkStatus();
}

absl::Status Catalog::CheckSame(const SeriesDefinition& given, std::int16_t kind,
                                std::string_view unit) const {
  if (unit == given.unit && kind == static_cast<std::int16_t>(given.kind)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("series ", given.key.metric_group, "/", given.key.name, " is known with unit '",
                   std::string(unit), "' and kind ", kind, ", given were unit '", given.unit,
                   "' and kind ", static_cast<int>(given.kind)));
}

absl::StatusOr<bool> Catalog::TrialIsFull(int series_max) const {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult trial,
                            connection_.Exec(sql::kReadSeriesCount, {Value(trial_id_)}));
  return trial.row_count() > 0 && trial.Int32(0, 0) >= series_max;
}

absl::Status Catalog::CreateMissing(int series_max) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult trial,
                            connection_.Exec(sql::kLockSeriesCount, {Value(trial_id_)}));
  if (trial.row_count() == 0) {
    return absl::NotFoundError(absl::StrCat("trial ", Value(trial_id_), ": there is none"));
  }
  const std::int32_t known_count = trial.Int32(0, 0);
  const auto room = static_cast<std::size_t>(std::max(series_max - known_count, 0));
  // Under the lock nobody else creates any: what is missing now is ours to create.
  STEPWELL_RETURN_IF_ERROR(Find());
  absl::flat_hash_map<SeriesKey, std::size_t> first_with;
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < definitions_.size(); ++i) {
    if (numbers_[i] != SeriesNo{}) continue;
    const auto [first, is_new] = first_with.emplace(definitions_[i].key, i);
    if (is_new && missing.size() < room) missing.push_back(i);
    const SeriesDefinition& same = definitions_[first->second];
    STEPWELL_RETURN_IF_ERROR(
        CheckSame(definitions_[i], static_cast<std::int16_t>(same.kind), same.unit));
  }
  created_ = missing;
  if (missing.empty()) return absl::OkStatus();
  const auto count = known_count + static_cast<std::int32_t>(missing.size());
  STEPWELL_RETURN_IF_ERROR(Insert(missing, known_count + 1));
  for (std::size_t i = 0; i < definitions_.size(); ++i) {
    if (numbers_[i] == SeriesNo{}) numbers_[i] = numbers_[first_with.at(definitions_[i].key)];
  }
  return connection_.Exec(sql::kSetSeriesCount, {Value(trial_id_), count}).status();
}

absl::Status Catalog::Insert(absl::Span<const std::size_t> missing, std::int32_t first_number) {
  std::vector<std::int32_t> numbers;
  std::vector<std::int16_t> kinds;
  std::vector<std::string> groups, names, units, labels, hashes;
  for (const std::size_t i : missing) {
    const SeriesDefinition& definition = definitions_[i];
    numbers_[i] = SeriesNo{first_number + static_cast<std::int32_t>(numbers.size())};
    numbers.push_back(Value(numbers_[i]));
    kinds.push_back(static_cast<std::int16_t>(definition.kind));
    groups.push_back(groups_[i]);
    names.push_back(names_[i]);
    units.push_back(definition.unit);
    labels.push_back(LabelsJson(definition.key.labels));
    hashes.push_back(hashes_[i]);
  }
  return connection_
      .Exec(sql::kCreateSeries,
            {Value(trial_id_), PgArray(numbers), PgArray(kinds), PgArray(groups), PgArray(names),
             PgArray(units), PgArray(labels), PgParam::BytesArray(hashes)})
      .status();
}

}  // namespace

absl::StatusOr<std::vector<SeriesNo>> FindOrCreateSeriesRows(
    PgConnection& connection, TrialId trial_id, absl::Span<const SeriesDefinition> definitions,
    int series_max, std::vector<std::size_t>& created) {
  Catalog catalog(connection, trial_id, definitions);
  if (definitions.empty()) return catalog.numbers();
  STEPWELL_RETURN_IF_ERROR(catalog.Find());
  if (!catalog.Complete()) {
    STEPWELL_ASSIGN_OR_RETURN(const bool is_full, catalog.TrialIsFull(series_max));
    if (is_full) {
      // What others created meanwhile filled it, and may be what is looked for.
      STEPWELL_RETURN_IF_ERROR(catalog.Find());
      return catalog.numbers();
    }
    STEPWELL_RETURN_IF_ERROR(connection.InTransaction([&] {
      const absl::Status made = catalog.CreateMissing(series_max);
      return made.ok() ? failpoint::Check("define_before_commit") : made;
    }));
    created = catalog.created();
    STEPWELL_FAILPOINT("define_after_commit");
  }
  return catalog.numbers();
}

}  // namespace stepwell
