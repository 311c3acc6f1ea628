// The checker of every fault test: compares what producers logged with what SQL holds. It shares no
// code with the way samples take; it knows series, ranks and numbers, no writers or sequences.
//
//   const Verdict verdict = Check(ledger, stored, gaps, Demand::kAcked);
//   EXPECT_TRUE(verdict.ok()) << verdict.ToText();
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/faults/checker/ledger.h"

namespace stepwell::faults {

// A row of stepwell.samples().
struct StoredSample {
  std::string series;
  int rank = 0;
  std::int32_t batch = -1;
  std::int64_t time_us = 0;
  std::uint64_t value_bits = 0;
};

// A row of stepwell.gaps with samples missing.
struct StoredGap {
  std::optional<int> rank;   // none = all writers
  std::string metric_group;  // empty = all groups
  std::int64_t sample_count = 0;
  std::int64_t first_time_us = 0;  // 0 = unknown
  std::int64_t last_time_us = 0;
  int cause = 0;  // GapCause of the wire contract
};

enum class Demand {
  kAcked,     // what is acked must be there or declared; what is not acked may be
  kRecorded,  // so must all that was recorded
};

struct Verdict {
  std::uint64_t held_count = 0;
  // Demanded, absent, and within a declared gap.
  std::uint64_t declared_count = 0;
  // Demanded, absent, and nobody says so.
  std::uint64_t missing_count = 0;
  // More often there than recorded.
  std::uint64_t doubled_count = 0;
  // There, with another value, time or batch.
  std::uint64_t changed_count = 0;
  // There, and never recorded.
  std::uint64_t unknown_count = 0;
  // At most 20, for people.
  std::vector<std::string> examples;

  bool ok() const {
    return missing_count + doubled_count + changed_count + unknown_count == 0 && held_count > 0;
  }
  std::string ToText() const;
};

Verdict Check(const Ledger& ledger, const std::vector<StoredSample>& stored,
              const std::vector<StoredGap>& gaps, Demand demand);

}  // namespace stepwell::faults
