#include "storage/caps.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

constexpr std::int64_t kSecondUs = 1'000'000;
constexpr std::int64_t kDaySeconds = 86'400;

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

absl::Status CheckPlace(const Caps& caps, const CapsPlace& place) {
  const std::string& group = place.metric_group;
  if (group.size() > kCapGroupBytesMax || group.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat("metric_group: ", group.size(),
                                                   " bytes; allowed are 1 to ", kCapGroupBytesMax,
                                                   " without NUL, or none for all groups"));
  }
  if (!group.empty() && caps.profiling_window_seconds) {
    return absl::InvalidArgumentError(
        "profiling_window_seconds: a window concerns a trial as a whole; it is allowed at places "
        "without a metric group");
  }
  if (!group.empty() && (caps.trace_bytes || caps.trial_trace_bytes || caps.trace_age_seconds)) {
    return absl::InvalidArgumentError(
        "trace_bytes, trial_trace_bytes, trace_age_seconds: a trace is of no metric group; they "
        "are "
        "allowed at places without one");
  }
  return absl::OkStatus();
}

// Of two ages, 0 being the longest.
bool IsShorter(std::int64_t age, std::int64_t than) {
  return age != 0 && (than == 0 || age < than);
}

}  // namespace

const CapField* FindCapField(std::string_view name) {
  const auto* found = std::find_if(kCapFields.begin(), kCapFields.end(),
                                   [&](const CapField& field) { return field.name == name; });
  return found == kCapFields.end() ? nullptr : found;
}

absl::Status CheckCaps(const Caps& caps, const CapsPlace& place) {
  if (absl::Status status = CheckPlace(caps, place); !status.ok()) return status;
  for (const CapField& field : kCapFields) {
    const std::optional<std::int64_t>& value = caps.*field.set;
    if (!value || (*value >= 0 && *value <= field.value_max)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        View(field.name), ": ", *value, "; allowed are 0 (no bound) to ", field.value_max));
  }
  if (caps.raw_age_seconds && caps.rollup_age_seconds &&
      IsShorter(*caps.rollup_age_seconds, *caps.raw_age_seconds)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rollup_age_seconds: ", *caps.rollup_age_seconds,
        "; rollups live at least as long as samples, so allowed are ",
        *caps.raw_age_seconds == 0 ? std::string("0 (no bound), as raw_age_seconds is")
                                   : absl::StrCat("0 (no bound) and ", *caps.raw_age_seconds,
                                                  " (raw_age_seconds) to ", kCapAgeSecondsMax)));
  }
  return absl::OkStatus();
}

absl::Status ChangeCaps(const Caps& set, absl::Span<const std::string> clear, Caps& stored) {
  for (const std::string& name : clear) {
    const CapField* field = FindCapField(name);
    if (field == nullptr) {
      std::string known;
      for (const CapField& each : kCapFields) {
        absl::StrAppend(&known, known.empty() ? "" : ", ", View(each.name));
      }
      return absl::InvalidArgumentError(
          absl::StrCat("clear: there is no cap '", name, "'; there are ", known));
    }
    if (set.*field->set) {
      return absl::InvalidArgumentError(absl::StrCat("clear: ", name, " is to be set to ",
                                                     *(set.*field->set),
                                                     ", too; allowed is one of both"));
    }
    stored.*field->set = std::nullopt;
  }
  for (const CapField& field : kCapFields) {
    if (set.*field.set) stored.*field.set = set.*field.set;
  }
  return absl::OkStatus();
}

bool DecidesOver(const CapsPlace& place, std::int64_t project_id, std::int64_t trial_id,
                 std::string_view metric_group) {
  if (!place.metric_group.empty() && place.metric_group != metric_group) return false;
  switch (place.owner) {
    case CapsOwner::kAll:
      return true;
    case CapsOwner::kProject:
      return project_id != 0 && place.owner_id == project_id;
    case CapsOwner::kTrial:
      return trial_id != 0 && place.owner_id == trial_id;
  }
  return false;
}

int RankOf(const CapsPlace& place) {
  return static_cast<int>(place.owner) + (place.metric_group.empty() ? 0 : 3);
}

EffectiveCaps ResolveCaps(absl::Span<const PlacedCaps> placed, std::int64_t project_id,
                          std::int64_t trial_id, std::string_view metric_group) {
  EffectiveCaps effective;
  for (const CapField& field : kCapFields) {
    EffectiveCap& cap = effective.*field.effective;
    cap.value = *(kDefaultCaps.*field.set);
    for (const PlacedCaps& each : placed) {
      if (!(each.caps.*field.set)) continue;
      if (!DecidesOver(each.place, project_id, trial_id, metric_group)) continue;
      if (cap.place && RankOf(*cap.place) >= RankOf(each.place)) continue;
      cap = {.value = *(each.caps.*field.set), .place = each.place};
    }
  }
  if (IsShorter(effective.rollup_age_seconds.value, effective.raw_age_seconds.value)) {
    effective.rollup_age_seconds = effective.raw_age_seconds;
  }
  return effective;
}

std::int64_t GroupBytesCap(const EffectiveCaps& caps) {
  const EffectiveCap& cap = caps.trial_bytes;
  return cap.place && !cap.place->metric_group.empty() ? cap.value : 0;
}

bool IsOverAge(std::int32_t received_day, std::int64_t age_seconds, std::int64_t now_us) {
  if (age_seconds == 0) return false;
  const std::int64_t day_ends_seconds = (std::int64_t{received_day} + 1) * kDaySeconds;
  return now_us >= (day_ends_seconds + age_seconds) * kSecondUs;
}

}  // namespace stepwell
