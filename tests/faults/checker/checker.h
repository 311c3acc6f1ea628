// The checker of every fault test: compares what producers logged with what SQL holds. It shares no
// code with the way samples take; it knows series, ranks and numbers, no writers or sequences. A sample
// that is declared lost is lost all the same: a gap excuses what a test allowed, and nothing else.
//
//   const Verdict verdict = Check(ledger, stored, gaps, Demand::kAcked);
//   EXPECT_TRUE(verdict.ok()) << verdict.ToText();
//   Check(ledger, stored, gaps, Demand::kRecorded, {.causes = {Cause::kRingFull}, .count_max = 7});
#pragma once

#include <cstdint>
#include <optional>
#include <set>
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

// Why samples are missing: the numbers of the wire contract's GapCause, written down once more.
enum class Cause {
  kUnspecified = 0,
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

// A row of stepwell.gaps with samples missing.
struct StoredGap {
  std::optional<int> rank;         // none = all writers
  std::string metric_group;        // empty = all groups
  std::int64_t sample_count = 0;   // 0 = unknown
  std::int64_t first_time_us = 0;  // 0 = unknown
  std::int64_t last_time_us = 0;   // 0 = unknown
  Cause cause = Cause::kUnspecified;
};

// What a test expects to be lost. All else that is demanded and absent is missing, whatever gaps say.
struct Allowance {
  std::set<Cause> causes = {};
  // That gaps may tell in all.
  std::uint64_t count_max = UINT64_MAX;
  // Also gaps that leave their count open, of those causes that cannot always know it.
  bool with_uncounted = false;
  // Of each series, that one gap without times or count may hide: the master adds up those of one writer and one reason.
  std::size_t stretches_max = 1;
};

enum class Demand {
  kAcked,     // what is acked must be there; what is not acked may be
  kRecorded,  // so must all that was recorded, but for what its producer may not have come to
};

struct Verdict {
  std::uint64_t held_count = 0;
  // Demanded, absent, and within a declared gap of a cause that is allowed.
  std::uint64_t declared_count = 0;
  // Demanded, absent, and nobody who may says so.
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
              const std::vector<StoredGap>& gaps, Demand demand, const Allowance& allowed = {});

}  // namespace stepwell::faults
