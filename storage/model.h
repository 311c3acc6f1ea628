// The nouns of storage: trials, writers, series, and decoded ticks. Values, no behaviour.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/uuid.h"

namespace stepwell {

// Sorted by name, names unique.
using Labels = std::vector<std::pair<std::string, std::string>>;

// Numbers are those of the wire contract's enums and of the columns.
enum class SeriesKind : std::int16_t { kGauge = 1, kCounter = 2, kDuration = 3 };
enum class TrialState : std::int16_t { kRunning = 1, kCompleted = 2, kFailed = 3, kLost = 4 };
enum class WriterState : std::int16_t { kOpen = 1, kClosed = 2, kDied = 3 };
enum class GapCause : std::int16_t {
  kRingFull = 1,
  kSensorFailed = 2,
  kLate = 3,
  kUnsupported = 4,
  kNoPermission = 5,
  kSpoolFull = 6,
  kSpoolCorrupt = 7,
  kSpoolLost = 8,
  kRejected = 9,
  kClock = 10,
  kCap = 11,
  kCutOff = 12,
  kRestored = 13,
};

struct SeriesKey {
  std::string metric_group;
  std::string name;
  Labels labels;  // with rank and agent

  bool operator==(const SeriesKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const SeriesKey& key) {
    return H::combine(std::move(h), key.metric_group, key.name, key.labels);
  }
};

struct SeriesDefinition {
  SeriesKey key;
  std::string unit;
  SeriesKind kind = SeriesKind::kGauge;
};

struct Series {
  SeriesNo series_no{};
  SeriesDefinition definition;
};

// A known hole; see the table stepwell.gaps.
struct Gap {
  WriterNo writer_no{};  // 0 = the trial
  GapCause cause{};
  std::string metric_group;  // "" = all
  std::int64_t sample_count = 0;
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;
  std::uint64_t first_sequence = 0;
  std::uint64_t last_sequence = 0;
  std::string reason;
};

// Whether and how densely a trial is recorded, as an operator asked.
struct TrialProfiling {
  std::int64_t revision = 0;  // grows with each request; 0 = nobody ever asked
  bool on = true;
  std::int64_t interval_us = 0;                 // 0 = what each writer chose
  std::vector<std::string> metric_groups = {};  // empty = what each writer chose

  bool operator==(const TrialProfiling&) const = default;
};

// The samples of one series on the ticks of a TickTable.
struct TickColumn {
  SeriesNo series_no{};
  // One per tick where `presence` is empty, else one per set bit.
  std::vector<double> values;
  // presence[i] == 1: tick i has a sample. Empty = all have.
  std::vector<std::uint8_t> presence;
};

// Ticks of one tick group of one writer, decoded, in the order in which they came.
struct TickTable {
  std::uint32_t tick_group = 0;
  std::vector<std::int64_t> times_us;
  std::vector<std::int32_t> batches;  // -1 = none; as long as times_us
  std::vector<TickColumn> columns;
};

}  // namespace stepwell
