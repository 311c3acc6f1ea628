// Caps: bounds of what is kept, where they are set, and which of them hold for a trial and a metric
// group. A core: nothing here asks a database. Pure functions.
//
//   const EffectiveCaps caps = ResolveCaps(placed, project_id, trial_id, "gpu");
//   caps.raw_age_seconds.value           // 0 = no bound
//   caps.raw_age_seconds.place           // who says so; null = the product's default
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace stepwell {

// Of the gap that tells when a profiling window ended (cause CAP): nothing was removed, for nothing came.
inline constexpr std::string_view kWindowOverReason = "profiling_window_seconds";

// Each: absent = not set, the next wider place decides; 0 = no bound.
struct Caps {
  // From the end of the day (UTC) on which the master received a sample. Of rows that are merged
  // later; what is merged keeps its age.
  std::optional<std::int64_t> raw_age_seconds = {};
  // Of rollups, likewise.
  std::optional<std::int64_t> rollup_age_seconds = {};
  // By the ledger: samples, ticks and rollups of a trial; at a place with a metric group, of that
  // group of each trial.
  std::optional<std::int64_t> trial_bytes = {};
  // Of each series. Rows go whole, oldest first, as long as the newer ones alone hold so many.
  std::optional<std::int64_t> series_samples = {};
  // From the trial's first Open on. Only at places without a metric group.
  std::optional<std::int64_t> profiling_window_seconds = {};
  // Of one trace, of all of a trial's, and from a trace's upload on. Likewise.
  std::optional<std::int64_t> trace_bytes = {};
  std::optional<std::int64_t> trial_trace_bytes = {};
  std::optional<std::int64_t> trace_age_seconds = {};

  bool operator==(const Caps&) const = default;
};

enum class CapsOwner : std::int16_t { kAll = 0, kProject = 1, kTrial = 2 };

// Where caps are set. Two places are the same when owner, owner_id and metric_group are.
struct CapsPlace {
  CapsOwner owner = CapsOwner::kAll;
  // 0, a project_id, a trial_id.
  std::int64_t owner_id = 0;
  // Empty = all groups.
  std::string metric_group = {};
  // For people, where the store knows them: the project's name, the trial's name in it.
  std::string project = {};
  std::string external_id = {};

  friend bool operator==(const CapsPlace& a, const CapsPlace& b) {
    return a.owner == b.owner && a.owner_id == b.owner_id && a.metric_group == b.metric_group;
  }
};

struct PlacedCaps {
  CapsPlace place = {};
  Caps caps = {};
};

// One cap that holds.
struct EffectiveCap {
  std::int64_t value = 0;  // 0 = no bound
  // Null = the product's default.
  std::optional<CapsPlace> place = {};
};

// Fields as those of Caps.
struct EffectiveCaps {
  EffectiveCap raw_age_seconds = {};
  // Never shorter than raw_age_seconds: where it was set so, the raw age holds, as of its place.
  EffectiveCap rollup_age_seconds = {};
  EffectiveCap trial_bytes = {};
  EffectiveCap series_samples = {};
  EffectiveCap profiling_window_seconds = {};
  EffectiveCap trace_bytes = {};
  EffectiveCap trial_trace_bytes = {};
  EffectiveCap trace_age_seconds = {};
};

// A field by its name in the wire contract.
struct CapField {
  std::string_view name;
  std::optional<std::int64_t> Caps::*set;
  EffectiveCap EffectiveCaps::*effective;
  std::int64_t value_max;
};

// 100 years.
inline constexpr std::int64_t kCapAgeSecondsMax = INT64_C(3'153'600'000);
// An exbibyte, and as many samples: sums of ledgers stay far from 2^63.
inline constexpr std::int64_t kCapCountMax = INT64_C(1) << 60;
inline constexpr std::size_t kCapGroupBytesMax = 128;

// In the order of the wire contract.
inline constexpr std::array<CapField, 8> kCapFields = {{
    {"raw_age_seconds", &Caps::raw_age_seconds, &EffectiveCaps::raw_age_seconds, kCapAgeSecondsMax},
    {"rollup_age_seconds", &Caps::rollup_age_seconds, &EffectiveCaps::rollup_age_seconds,
     kCapAgeSecondsMax},
    {"trial_bytes", &Caps::trial_bytes, &EffectiveCaps::trial_bytes, kCapCountMax},
    {"series_samples", &Caps::series_samples, &EffectiveCaps::series_samples, kCapCountMax},
    {"profiling_window_seconds", &Caps::profiling_window_seconds,
     &EffectiveCaps::profiling_window_seconds, kCapAgeSecondsMax},
    {"trace_bytes", &Caps::trace_bytes, &EffectiveCaps::trace_bytes, kCapCountMax},
    {"trial_trace_bytes", &Caps::trial_trace_bytes, &EffectiveCaps::trial_trace_bytes,
     kCapCountMax},
    {"trace_age_seconds", &Caps::trace_age_seconds, &EffectiveCaps::trace_age_seconds,
     kCapAgeSecondsMax},
}};

// Null where there is no such field.
const CapField* FindCapField(std::string_view name);

// What holds where nothing is set (docs/decisions/0011).
inline constexpr Caps kDefaultCaps = {.raw_age_seconds = 0,
                                      .rollup_age_seconds = 0,
                                      .trial_bytes = 0,
                                      .series_samples = 0,
                                      .profiling_window_seconds = 0,
                                      .trace_bytes = INT64_C(256) << 20,
                                      .trial_trace_bytes = INT64_C(1) << 30,
                                      .trace_age_seconds = 0};

// kInvalidArgument: which field, what was wrong, what is allowed.
absl::Status CheckCaps(const Caps& caps, const CapsPlace& place);

// `stored` with the fields of `set` that are present, and without those named in `clear`.
// kInvalidArgument: an unknown name, or one that `set` has, too.
absl::Status ChangeCaps(const Caps& set, absl::Span<const std::string> clear, Caps& stored);

// True when `place` decides over that project, trial and group (0 and "" = none of them named).
bool DecidesOver(const CapsPlace& place, std::int64_t project_id, std::int64_t trial_id,
                 std::string_view metric_group);
// Wider places have lower ranks: all < project < trial < group (of all < of a project < of a trial).
int RankOf(const CapsPlace& place);

// The narrowest place that sets a field decides it. `placed` in any order; places that do not
// decide over this trial and group are passed over. O(placed).
EffectiveCaps ResolveCaps(absl::Span<const PlacedCaps> placed, std::int64_t project_id,
                          std::int64_t trial_id, std::string_view metric_group);

// Bytes that `metric_group` alone may take; 0 = no bound of its own: a cap that is set without a
// group bounds the trial as a whole.
std::int64_t GroupBytesCap(const EffectiveCaps& caps);

// Whether samples received on `received_day` (days since 1970) are over `age_seconds` old; never for
// an age of 0.
bool IsOverAge(std::int32_t received_day, std::int64_t age_seconds, std::int64_t now_us);

}  // namespace stepwell
