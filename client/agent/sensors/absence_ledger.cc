#include "client/agent/sensors/absence_ledger.h"

#include <algorithm>
#include <set>

namespace stepwell::agent {
namespace {

// What can never be measured here does not come together with time.
bool IsCounted(AbsenceKind kind) {
  switch (kind) {
    case AbsenceKind::kUnsupported:
    case AbsenceKind::kNoPermission:
      return false;
    case AbsenceKind::kFailed:
    case AbsenceKind::kLate:
    case AbsenceKind::kNoRoom:
      return true;
  }
  return true;
}

// A slow device is late each other tick: that is told each minute, not each time.
bool HasAnEnd(AbsenceKind kind) {
  return kind != AbsenceKind::kLate && kind != AbsenceKind::kNoRoom;
}

}  // namespace

AbsenceSpan MissedBefore(std::int64_t time_us, std::uint64_t count, absl::Duration interval) {
  return {time_us - absl::ToInt64Microseconds(interval * static_cast<double>(count)),
          time_us - absl::ToInt64Microseconds(interval)};
}

void AbsenceLedger::Note(const std::vector<Absence>& absences, Cadence cadence,
                         std::int64_t time_us) {
  std::set<Key> seen;
  for (const Absence& absence : absences) {
    Key key{absence.metric_group, absence.kind, absence.subject, static_cast<int>(cadence)};
    auto known = standing_.find(key);
    if (known == standing_.end() && standing_.size() >= kAbsenceCountMax) {
      std::get<2>(key).clear();
      known = standing_.find(key);
    }
    if (known == standing_.end()) known = standing_.emplace(key, Standing{}).first;
    Add(known->second, static_cast<std::uint64_t>(absence.sample_count), {time_us, time_us},
        absence.reason);
    seen.insert(std::move(key));
  }
  for (auto& [key, standing] : standing_) {
    if (std::get<int>(key) != static_cast<int>(cadence)) continue;
    standing.back = HasAnEnd(std::get<AbsenceKind>(key)) && seen.count(key) == 0;
  }
}

void AbsenceLedger::Count(const std::string& metric_group, AbsenceKind kind,
                          std::uint64_t sample_count, AbsenceSpan span, const std::string& reason) {
  if (sample_count > 0) Add(standing_[{metric_group, kind, "", 0}], sample_count, span, reason);
}

void AbsenceLedger::Add(Standing& standing, std::uint64_t sample_count, AbsenceSpan span,
                        const std::string& reason) {
  const bool is_first = standing.sample_count == 0;
  if (is_first && standing.told_time_us == 0) standing.begin_time_us = span.first_time_us;
  // Of several cadences, one of which may tell of what was before another's.
  standing.first_time_us =
      is_first ? span.first_time_us : std::min(standing.first_time_us, span.first_time_us);
  standing.last_time_us =
      is_first ? span.last_time_us : std::max(standing.last_time_us, span.last_time_us);
  standing.sample_count += sample_count;
  standing.reason = reason;
}

ToldAbsence AbsenceLedger::Tell(const Key& key, Standing& standing, std::int64_t now_us) {
  ToldAbsence told;
  told.metric_group = std::get<0>(key);
  told.kind = std::get<AbsenceKind>(key);
  const bool counted = IsCounted(told.kind);
  told.sample_count = counted ? standing.sample_count : 0;
  told.first_time_us = counted ? standing.first_time_us : standing.begin_time_us;
  told.last_time_us = standing.last_time_us;
  told.reason = standing.reason;
  standing.sample_count = 0;
  standing.told_time_us = now_us;
  return told;
}

std::vector<ToldAbsence> AbsenceLedger::TakeDue(std::int64_t now_us) {
  std::vector<ToldAbsence> due;
  for (auto entry = standing_.begin(); entry != standing_.end();) {
    auto& [key, standing] = *entry;
    const bool is_new = standing.told_time_us == 0;
    // A clock that was set back must not silence it.
    const std::int64_t since_us = now_us - standing.told_time_us;
    const bool is_due = since_us >= kToldIntervalUs || since_us < 0;
    const auto kind = std::get<AbsenceKind>(key);
    const bool has_more = IsCounted(kind) && standing.sample_count > 0;
    const bool has_ended = standing.back && (has_more || HasAnEnd(kind));
    if (is_new || has_ended || (has_more && is_due)) due.push_back(Tell(key, standing, now_us));
    entry = standing.back ? standing_.erase(entry) : std::next(entry);
  }
  return due;
}

std::vector<ToldAbsence> AbsenceLedger::TakeAll() {
  for (auto& [key, standing] : standing_) standing.back = true;
  return TakeDue(0);
}

}  // namespace stepwell::agent
