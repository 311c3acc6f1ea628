#include "storage/keep_classes.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

std::string AgeText(std::int64_t age_seconds) {
  if (age_seconds == 0) return "for ever";
  if (age_seconds % 86'400 == 0) return absl::StrCat(age_seconds / 86'400, " days");
  return absl::StrCat(age_seconds, " s");
}

std::string ListText(const std::vector<KeepClass>& classes) {
  std::string text;
  for (const KeepClass& each : classes) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", each.keep_class, ": samples ",
                    AgeText(each.ages.raw_age_seconds), ", rollups ",
                    AgeText(each.ages.rollup_age_seconds));
  }
  return text;
}

// A project and trial for which places may differ from others; 0 = none of those named.
using Context = std::pair<std::int64_t /*project*/, std::int64_t /*trial*/>;

}  // namespace

KeepAges AgesOf(const EffectiveCaps& caps) {
  return {caps.raw_age_seconds.value, caps.rollup_age_seconds.value};
}

std::optional<std::int16_t> KeepClasses::Find(KeepAges ages) const {
  for (const KeepClass& each : classes_) {
    if (each.ages == ages) return each.keep_class;
  }
  return std::nullopt;
}

absl::StatusOr<std::int16_t> KeepClasses::FindOrCreate(KeepAges ages,
                                                       const std::set<std::int16_t>& spare) {
  if (const auto found = Find(ages)) return *found;
  std::int16_t next = 0;
  for (const KeepClass& each : classes_) {
    if (each.keep_class == next) ++next;
  }
  if (next < static_cast<std::int16_t>(kKeepClassesMax)) {
    classes_.push_back({next, ages});
    std::sort(classes_.begin(), classes_.end(),
              [](const KeepClass& a, const KeepClass& b) { return a.keep_class < b.keep_class; });
    return next;
  }
  for (KeepClass& each : classes_) {
    if (each.keep_class == 0 || !spare.contains(each.keep_class)) continue;
    each.ages = ages;
    return each.keep_class;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("raw_age_seconds, rollup_age_seconds: samples ", AgeText(ages.raw_age_seconds),
                   ", rollups ", AgeText(ages.rollup_age_seconds), " would be pair number ",
                   kKeepClassesMax + 1, " of ages; allowed are those that there are (",
                   ListText(classes_), "), until rows and caps have given one up"));
}

std::vector<KeepAges> AgesThatMayHold(
    absl::Span<const PlacedCaps> placed,
    absl::Span<const std::pair<std::int64_t, std::int64_t>> trial_projects) {
  // Places that decide over a context, so that each pair is resolved from a few of them.
  std::map<Context, std::vector<PlacedCaps>> own;
  std::vector<PlacedCaps> of_all;
  for (const PlacedCaps& each : placed) {
    switch (each.place.owner) {
      case CapsOwner::kAll:
        of_all.push_back(each);
        break;
      case CapsOwner::kProject:
        own[{each.place.owner_id, 0}].push_back(each);
        break;
      case CapsOwner::kTrial: {
        const auto at = std::lower_bound(trial_projects.begin(), trial_projects.end(),
                                         std::pair(each.place.owner_id, std::int64_t{0}));
        const bool known = at != trial_projects.end() && at->first == each.place.owner_id;
        own[{known ? at->second : 0, each.place.owner_id}].push_back(each);
        break;
      }
    }
  }
  own.try_emplace({0, 0});
  std::set<KeepAges> ages;
  for (const auto& [context, places] : own) {
    std::vector<PlacedCaps> deciding = of_all;
    deciding.insert(deciding.end(), places.begin(), places.end());
    const auto project = context.second == 0 ? own.end() : own.find({context.first, 0});
    if (project != own.end()) {
      deciding.insert(deciding.end(), project->second.begin(), project->second.end());
    }
    std::set<std::string> groups = {""};
    for (const PlacedCaps& each : deciding) groups.insert(each.place.metric_group);
    for (const std::string& group : groups) {
      ages.insert(AgesOf(ResolveCaps(deciding, context.first, context.second, group)));
    }
  }
  return {ages.begin(), ages.end()};
}

}  // namespace stepwell
