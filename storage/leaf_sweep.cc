#include "storage/leaf_sweep.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/time/civil_time.h"
#include "base/check.h"
#include "storage/caps.h"
#include "storage/fold_plan.h"

namespace stepwell {
namespace {

// What is known of the leaves of one class and day.
struct Known {
  bool has[2] = {false, false};
  std::int64_t bytes[2] = {0, 0};
};

std::optional<std::int64_t> Digits(std::string_view text) {
  std::int64_t value = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
  }
  if (!absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &value)) return std::nullopt;
  return value;
}

std::optional<std::int32_t> DayAt(std::string_view text) {
  const auto date = Digits(text);
  if (text.size() != 8 || !date) return std::nullopt;
  const absl::CivilDay day(*date / 10'000, *date / 100 % 100, *date % 100);
  return static_cast<std::int32_t>(day - absl::CivilDay(1970, 1, 1));
}

}  // namespace

std::optional<NamedLeaf> ParseLeafName(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, LeafPair>, 4> kTables = {{
      {"metrics_k", LeafPair::kSamples},
      {"ticks_k", LeafPair::kSamples},
      {"rollups_k", LeafPair::kRollups},
      {"rollup_ticks_k", LeafPair::kRollups},
  }};
  for (const auto& [prefix, pair] : kTables) {
    if (name.substr(0, prefix.size()) != prefix) continue;
    const std::string_view rest = name.substr(prefix.size());
    const std::size_t line = rest.find('_');
    if (line == std::string_view::npos || line == 0 || line > 2) return std::nullopt;
    const auto keep_class = Digits(rest.substr(0, line));
    const auto day = DayAt(rest.substr(line + 1));
    if (!keep_class || !day) return std::nullopt;
    return NamedLeaf{pair, {static_cast<std::int16_t>(*keep_class), *day}};
  }
  return std::nullopt;
}

MarkMove PlanMark(absl::Span<const std::int64_t> trial_ids, std::size_t lines_max) {
  STEPWELL_CHECK(lines_max > 0);
  if (trial_ids.empty()) return {};
  const std::int64_t last = trial_ids.back();
  if (trial_ids.size() < lines_max) return {.through_trial_id = last};
  const auto first_of_last = std::lower_bound(trial_ids.begin(), trial_ids.end(), last);
  if (first_of_last == trial_ids.begin()) return {.long_trial_id = last, .more = true};
  return {.through_trial_id = *std::prev(first_of_last), .more = true};
}

LeafSweep PlanLeafSweep(absl::Span<const StoredLeaf> leaves, absl::Span<const SweptLeaf> swept,
                        absl::Span<const KeepClass> classes, std::int64_t now_us) {
  std::map<std::int16_t, KeepAges> ages_of;
  for (const KeepClass& each : classes) ages_of[each.keep_class] = each.ages;
  std::map<LeafKey, const SweptLeaf*> pending;
  for (const SweptLeaf& each : swept) {
    if (!each.emptied) pending[each.key] = &each;
  }
  std::map<LeafKey, Known> known;
  for (const StoredLeaf& each : leaves) {
    Known& at = known[each.leaf.key];
    at.has[static_cast<int>(each.leaf.pair)] = true;
    at.bytes[static_cast<int>(each.leaf.pair)] += each.bytes;
  }
  LeafSweep sweep;
  for (const auto& [key, at] : known) {
    const auto waits = pending.find(key);
    const bool waits_for_samples = waits != pending.end();
    const bool waits_for_rollups = waits_for_samples && waits->second->rollups_too;
    // Rows that are counted under class 0 may lie in recent.
    const auto ages = key.keep_class == 0 ? ages_of.end() : ages_of.find(key.keep_class);
    const auto is_due = [&](LeafPair pair, std::int64_t KeepAges::*age, bool is_waiting) {
      return ages != ages_of.end() && at.bytes[static_cast<int>(pair)] > 0 && !is_waiting &&
             IsOverAge(key.received_day, ages->second.*age, now_us);
    };
    if (is_due(LeafPair::kSamples, &KeepAges::raw_age_seconds, waits_for_samples)) {
      sweep.give_up_samples.push_back(key);
    }
    if (is_due(LeafPair::kRollups, &KeepAges::rollup_age_seconds, waits_for_rollups) &&
        IsOverAge(key.received_day, ages->second.raw_age_seconds, now_us)) {
      sweep.give_up_all.push_back(key);
    }
    if (waits_for_samples || key.received_day >= DayOf(now_us) - kLeafDaysKept) continue;
    for (const LeafPair pair : {LeafPair::kSamples, LeafPair::kRollups}) {
      const auto index = static_cast<int>(pair);
      if (at.has[index] && at.bytes[index] == 0) sweep.drop.push_back({pair, key});
    }
  }
  return sweep;
}

}  // namespace stepwell
