#include "storage/pg_caps_places.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/caps_index.h"
#include "storage/pg_array.h"
#include "storage/pg_caps_sql.h"
#include "storage/pg_sql.h"
#include "storage/pg_trial_filter.h"
#include "storage/token_store.h"

namespace stepwell {
namespace {

// The project of a place; 0 for all trials.
std::int64_t ProjectOf(const Places& places, const CapsPlace& place) {
  if (place.owner == CapsOwner::kProject) return place.owner_id;
  if (place.owner == CapsOwner::kAll) return 0;
  const auto at = std::lower_bound(places.trial_projects.begin(), places.trial_projects.end(),
                                   std::pair(place.owner_id, std::int64_t{0}));
  return at != places.trial_projects.end() && at->first == place.owner_id ? at->second : 0;
}

Caps* FindSet(std::vector<PlacedCaps>& placed, const CapsPlace& place) {
  const auto found = std::find_if(placed.begin(), placed.end(),
                                  [&](const PlacedCaps& each) { return each.place == place; });
  return found == placed.end() ? nullptr : &found->caps;
}

PgParam OptionalParam(const std::optional<std::int64_t>& value) {
  return value ? PgParam(*value) : PgParam::Null(PgOid::kInt8);
}

absl::Status WriteCaps(PgConnection& connection, const CapsPlace& place, const Caps& caps) {
  std::vector<PgParam> params = {static_cast<std::int16_t>(place.owner), place.owner_id,
                                 place.metric_group};
  if (caps == Caps{}) return connection.Exec(sql::kDeleteCaps, params).status();
  for (const CapField& field : kCapFields) params.push_back(OptionalParam(caps.*field.set));
  return connection.Exec(sql::kWriteCaps, params).status();
}

absl::Status CheckPlaceCount(const std::vector<PlacedCaps>& placed, const CapsPlace& place) {
  const auto of_owner = std::count_if(placed.begin(), placed.end(), [&](const PlacedCaps& each) {
    return each.place.owner == place.owner && each.place.owner_id == place.owner_id;
  });
  if (placed.size() <= kPlacesMax && static_cast<std::size_t>(of_owner) <= kPlacesOfOwnerMax) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("place: caps would be set at ", placed.size(), " places, ", of_owner,
                   " of them of this owner; allowed are ", kPlacesMax, ", and ", kPlacesOfOwnerMax,
                   " of one owner: clear what is not needed"));
}

// Classes that have no rows and whose ages nobody asks for.
absl::StatusOr<std::set<std::int16_t>> SpareClasses(PgConnection& connection,
                                                    const KeepClasses& classes,
                                                    const std::vector<KeepAges>& wanted) {
  std::vector<std::int16_t> unwanted;
  for (const KeepClass& each : classes.all()) {
    if (!std::binary_search(wanted.begin(), wanted.end(), each.ages)) {
      unwanted.push_back(each.keep_class);
    }
  }
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows,
                            connection.Exec(sql::kFindEmptyClasses, {PgArray(unwanted)}));
  std::set<std::int16_t> spare;
  for (int row = 0; row < rows.row_count(); ++row) {
    spare.insert(static_cast<std::int16_t>(rows.Int32(row, 0)));
  }
  return spare;
}

// Makes a class for each pair of ages that may hold from now on.
absl::Status EnsureClasses(PgConnection& connection, const std::vector<KeepAges>& wanted) {
  STEPWELL_ASSIGN_OR_RETURN(KeepClasses classes, ReadKeepClasses(connection));
  const bool all_there = std::all_of(wanted.begin(), wanted.end(), [&](const KeepAges& ages) {
    return classes.Find(ages).has_value();
  });
  if (all_there) return absl::OkStatus();
  // Merges under way end first, so that a class without rows stays without.
  STEPWELL_RETURN_IF_ERROR(connection.Exec(sql::kLockKeepClasses).status());
  STEPWELL_ASSIGN_OR_RETURN(std::set<std::int16_t> spare,
                            SpareClasses(connection, classes, wanted));
  for (const KeepAges& ages : wanted) {
    if (classes.Find(ages)) continue;
    STEPWELL_ASSIGN_OR_RETURN(const std::int16_t keep_class, classes.FindOrCreate(ages, spare));
    spare.erase(keep_class);
    STEPWELL_RETURN_IF_ERROR(
        connection
            .Exec(sql::kWriteKeepClass, {keep_class, static_cast<double>(ages.raw_age_seconds),
                                         static_cast<double>(ages.rollup_age_seconds)})
            .status());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FoundTrial> FindTrialOf(PgConnection& connection, const TrialSelector& selector,
                                       const TrialFilter& trials) {
  std::vector<PgParam> params = PgTrialFilter(trials);
  const bool by_number = selector.trial_id != 0;
  if (by_number) {
    params.emplace_back(selector.trial_id);
  } else {
    params.emplace_back(selector.project);
    params.emplace_back(selector.external_id);
  }
  STEPWELL_ASSIGN_OR_RETURN(const PgResult found,
                            by_number ? connection.Exec(sql::kFindTrialToCapById, params)
                                      : connection.Exec(sql::kFindTrialToCapByName, params));
  if (found.row_count() == 0) return NoSuchTrial(selector);
  return FoundTrial{.trial_id = TrialId{found.Int64(0, 0)},
                    .project_id = found.Int64(0, 3),
                    .project = std::string(found.Text(0, 4)),
                    .external_id = std::string(found.Text(0, 5)),
                    .archived = found.Bool(0, 1),
                    .deleted = found.Bool(0, 2)};
}

absl::StatusOr<FoundPlace> FindPlace(PgConnection& connection, const CapsTarget& target,
                                     const ProjectFilter& projects) {
  STEPWELL_RETURN_IF_ERROR(CheckTarget(target));
  FoundPlace found;
  found.place.metric_group = target.metric_group;
  if (target.project) {
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult row, connection.Exec(sql::kFindProject, {*target.project, !projects.is_all(),
                                                                PgArray(projects.named())}));
    found.project_id = row.row_count() == 0 ? 0 : row.Int64(0, 0);
    found.place.owner = CapsOwner::kProject;
    found.place.owner_id = found.project_id;
    found.place.project = *target.project;
  }
  if (target.trial) {
    STEPWELL_ASSIGN_OR_RETURN(const FoundTrial trial,
                              FindTrialOf(connection, *target.trial, projects));
    if (trial.deleted) return NoSuchTrial(*target.trial);
    found.project_id = trial.project_id;
    found.trial_id = Value(trial.trial_id);
    found.place.owner = CapsOwner::kTrial;
    found.place.owner_id = found.trial_id;
    found.place.project = trial.project;
    found.place.external_id = trial.external_id;
  }
  return found;
}

CapsReport ReportOf(const Places& places, const FoundPlace& found) {
  const CapsPlace& asked = found.place;
  CapsReport report;
  report.place = asked;
  const CapsIndex index(places.placed);
  report.effective = ResolveCaps(index.Of(found.project_id, found.trial_id), found.project_id,
                                 found.trial_id, asked.metric_group);
  for (const PlacedCaps& each : places.placed) {
    if (each.place == asked) report.set = each.caps;
    const std::int64_t trial =
        each.place.owner == CapsOwner::kTrial ? each.place.owner_id : std::int64_t{0};
    const bool decides =
        DecidesOver(each.place, found.project_id, found.trial_id, asked.metric_group);
    const bool below =
        DecidesOver(asked, ProjectOf(places, each.place), trial, each.place.metric_group);
    if ((decides || below) && report.places.size() < kPlacesListedMax) {
      report.places.push_back(each);
    }
  }
  return report;
}

absl::Status SetPlace(PgConnection& connection, const CapsTarget& target,
                      const ProjectFilter& projects, const Caps& caps,
                      const std::vector<std::string>& clear) {
  STEPWELL_RETURN_IF_ERROR(CheckTarget(target));
  if (target.project) {
    if (!projects.LetsThrough(*target.project)) {
      return absl::NotFoundError(absl::StrCat("there is no project '", *target.project, "'"));
    }
    STEPWELL_RETURN_IF_ERROR(connection.Exec(sql::kCreateProject, {*target.project}).status());
  }
  STEPWELL_ASSIGN_OR_RETURN(const FoundPlace found, FindPlace(connection, target, projects));
  STEPWELL_RETURN_IF_ERROR(connection.Exec(sql::kLockCaps).status());
  // How many there are, and of which ages, is bounded for all together.
  STEPWELL_ASSIGN_OR_RETURN(Places places, ReadPlaces(connection, kAllProjects));
  Caps* stored = FindSet(places.placed, found.place);
  if (stored == nullptr) {
    stored = &places.placed.emplace_back(PlacedCaps{.place = found.place}).caps;
  }
  STEPWELL_RETURN_IF_ERROR(ChangeCaps(caps, clear, *stored));
  STEPWELL_RETURN_IF_ERROR(CheckCaps(*stored, found.place));
  STEPWELL_RETURN_IF_ERROR(WriteCaps(connection, found.place, *stored));
  STEPWELL_RETURN_IF_ERROR(CheckPlaceCount(places.placed, found.place));
  if (found.trial_id != 0) {
    auto& pairs = places.trial_projects;
    const std::pair<std::int64_t, std::int64_t> own(found.trial_id, found.project_id);
    pairs.insert(std::upper_bound(pairs.begin(), pairs.end(), own), own);
  }
  return EnsureClasses(connection, AgesThatMayHold(places.placed, places.trial_projects));
}

}  // namespace stepwell
