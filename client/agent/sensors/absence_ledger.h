// AbsenceLedger: which samples are absent, since when, how many, and what of it has been told: once
// when an absence begins, once when it ends, up to the last tick that lacks it, and in between each
// minute what has come together since, never each tick. What this machine cannot measure has no
// count: it is no hole in what was measured. Pure.
//
//   ledger.Note(reading.absences(), Cadence::kFast, time_us);
//   for (const ToldAbsence& told : ledger.TakeDue(time_us)) ...
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/time/time.h"
#include "client/agent/sensors/reading.h"
#include "client/agent/sensors/sensor.h"

namespace stepwell::agent {

// When the first and the last of some samples would have been taken.
struct AbsenceSpan {
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;
};

// Of the last `count` ticks that were due before `time_us`. REQUIRES: count > 0.
AbsenceSpan MissedBefore(std::int64_t time_us, std::uint64_t count, absl::Duration interval);

struct ToldAbsence {
  std::string metric_group;
  AbsenceKind kind = AbsenceKind::kFailed;
  // 0 = how many is not the question, or all of them were told before.
  std::uint64_t sample_count = 0;
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;
  std::string reason;
};

class AbsenceLedger {
 public:
  static constexpr std::int64_t kToldIntervalUs = 60'000'000;
  // Absences that stand at once; those beyond are counted on the group's first.
  static constexpr std::size_t kAbsenceCountMax = 256;

  // All absences of one tick; what stood in that cadence and is not among them is back.
  void Note(const std::vector<Absence>& absences, Cadence cadence, std::int64_t time_us);
  // Samples lost for another reason than a sensor's: told at once, and then each minute.
  // Of no group: of whole ticks. Nothing where there are none.
  void Count(const std::string& metric_group, AbsenceKind kind, std::uint64_t sample_count,
             AbsenceSpan span, const std::string& reason);
  // What is to be told now.
  std::vector<ToldAbsence> TakeDue(std::int64_t now_us);
  // All that is left, at the end.
  std::vector<ToldAbsence> TakeAll();

 private:
  // Group, kind, subject, cadence (0 for what is no sensor's).
  using Key = std::tuple<std::string, AbsenceKind, std::string, int>;
  struct Standing {
    std::uint64_t sample_count = 0;  // not told yet
    std::int64_t begin_time_us = 0;
    std::int64_t first_time_us = 0;  // of those
    std::int64_t last_time_us = 0;
    std::int64_t told_time_us = 0;  // 0 = never
    std::string reason;
    bool back = false;
  };
  static void Add(Standing& standing, std::uint64_t sample_count, AbsenceSpan span,
                  const std::string& reason);
  static ToldAbsence Tell(const Key& key, Standing& standing, std::int64_t now_us);

  std::map<Key, Standing> standing_;
};

}  // namespace stepwell::agent
