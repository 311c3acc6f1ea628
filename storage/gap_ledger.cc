#include "storage/gap_ledger.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

namespace stepwell {
namespace {

bool HasSequence(const Gap& gap) { return gap.last_sequence != 0; }

// Zero stands for "not known", so that it never wins.
std::int64_t EarlierKnown(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return a + b;
  return std::min(a, b);
}
std::int64_t LaterKnown(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return a + b;
  return std::max(a, b);
}

// `later` - `earlier`, which may not fit into 63 bits, compared with the limit. Negative is near.
bool Near(std::int64_t earlier, std::int64_t later) {
  if (earlier == 0 || later == 0 || later <= earlier) return true;
  return static_cast<std::uint64_t>(later) - static_cast<std::uint64_t>(earlier) <=
         static_cast<std::uint64_t>(kGapOngoingUs);
}

}  // namespace

bool GapGoesOn(const Gap& known, const Gap& next) {
  if (known.writer_no != next.writer_no || known.cause != next.cause) return false;
  if (known.metric_group != next.metric_group || known.reason != next.reason) return false;
  if (HasSequence(known) != HasSequence(next)) return false;
  if (HasSequence(known)) {
    return next.first_sequence >= known.first_sequence &&
           next.first_sequence <= known.last_sequence + 1;
  }
  return Near(known.last_time_us, next.first_time_us) &&
         Near(next.last_time_us, known.first_time_us);
}

void ExtendGap(Gap& known, const Gap& next) {
  // Counts are the client's word: their sum need not fit.
  if (__builtin_add_overflow(known.sample_count, next.sample_count, &known.sample_count)) {
    known.sample_count = std::numeric_limits<std::int64_t>::max();
  }
  known.first_time_us = EarlierKnown(known.first_time_us, next.first_time_us);
  known.last_time_us = LaterKnown(known.last_time_us, next.last_time_us);
  if (HasSequence(next)) {
    known.first_sequence = HasSequence(known) ? std::min(known.first_sequence, next.first_sequence)
                                              : next.first_sequence;
    known.last_sequence = std::max(known.last_sequence, next.last_sequence);
  }
  if (known.metric_group != next.metric_group) known.metric_group.clear();
}

void GapLedger::AddStored(TrialId trial_id, std::int64_t gap_no, const Gap& gap) {
  Rows& rows = rows_[{trial_id, gap.writer_no, gap.cause}];
  Add(rows, {.gap_no = gap_no, .gap = gap});
  rows.row_count = std::max<std::int64_t>(rows.row_count, rows.rows.size());
}

void GapLedger::SetRowCount(TrialId trial_id, WriterNo writer_no, GapCause cause,
                            std::int64_t row_count) {
  rows_[{trial_id, writer_no, cause}].row_count = row_count;
}

void GapLedger::Add(Rows& rows, Row row) {
  rows.places[{row.gap.metric_group, row.gap.reason}].push_back(rows.rows.size());
  rows.rows.push_back(std::move(row));
}

GapLedger::Row* GapLedger::FindBefore(Rows& rows, const Gap& gap) {
  const auto places = rows.places.find(Words(gap.metric_group, gap.reason));
  if (places == rows.places.end()) return nullptr;
  const auto last =
      std::find_if(places->second.rbegin(), places->second.rend(),
                   [&](std::size_t place) { return GapGoesOn(rows.rows[place].gap, gap); });
  return last == places->second.rend() ? nullptr : &rows.rows[*last];
}

GapLedger::Row& GapLedger::RowFor(Rows& rows, const Gap& gap) {
  if (Row* before = FindBefore(rows, gap); before != nullptr) {
    ExtendGap(before->gap, gap);
    return *before;
  }
  if (rows.row_count >= kGapRowsMax && !rows.rows.empty()) {
    Row& newest = rows.rows.back();
    const bool had_group = !newest.gap.metric_group.empty();
    ExtendGap(newest.gap, gap);
    // It stands for all groups from now on, and is found as such.
    if (had_group && newest.gap.metric_group.empty()) {
      rows.places[{"", newest.gap.reason}].push_back(rows.rows.size() - 1);
    }
    return newest;
  }
  rows.row_count += 1;
  Add(rows, {.gap = gap});
  return rows.rows.back();
}

void GapLedger::Note(TrialId trial_id, const Gap& gap) {
  Row& row = RowFor(rows_[{trial_id, gap.writer_no, gap.cause}], gap);
  if (!row.touched) row.order = touched_count_++;
  row.touched = true;
}

std::vector<GapChange> GapLedger::TakeChanges() {
  std::vector<std::pair<std::int64_t, GapChange>> ordered;
  for (auto& [key, rows] : rows_) {
    for (Row& row : rows.rows) {
      if (!row.touched) continue;
      ordered.push_back({row.order, {std::get<TrialId>(key), row.gap_no, std::move(row.gap)}});
    }
  }
  rows_.clear();
  std::sort(ordered.begin(), ordered.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<GapChange> changes;
  for (auto& [order, change] : ordered) changes.push_back(std::move(change));
  return changes;
}

}  // namespace stepwell
