#include "storage/pg_merge_copy.h"

#include "base/failpoint.h"
#include "base/status_macros.h"

namespace stepwell {

MergeCopy::Copies& MergeCopy::CopiesOf(const RowPlace& place) {
  const std::pair key(place.keep_class, place.received_day);
  const auto found = copies_.find(key);
  if (found != copies_.end()) return found->second;
  return copies_
      .emplace(key, Copies{RowCopy::ForLeaf(place.keep_class, place.received_day),
                           RollupCopy(RollupHome::kLeaf, place.keep_class, place.received_day),
                           RollupCopy(RollupHome::kRing, place.keep_class, place.received_day)})
      .first->second;
}

UsageKey MergeCopy::KeyOf(const RowPlace& place, SeriesNo series_no) const {
  return {place.trial_id, place.received_day, place.keep_class,
          groups_.GroupOf(place.trial_id, series_no)};
}

void MergeCopy::Add(RowPlace place, std::size_t index, const EncodedTicks& ticks,
                    MergeClasses& classes) {
  for (const EncodedColumn& column : ticks.columns) {
    place.keep_class = classes.ClassOf(column.series_no);
    if (classes.NoteTicks(place.keep_class, index)) AddTicks(place, ticks, classes);
    usage_.Add(KeyOf(place, column.series_no),
               {.row_count = 1,
                .sample_count = column.sample_count,
                .byte_count = CopiesOf(place).rows.AddColumn(place, nullptr, column),
                .first_time_us = column.first_time_us,
                .last_time_us = column.last_time_us});
  }
}

void MergeCopy::AddTicks(const RowPlace& place, const EncodedTicks& ticks,
                         const MergeClasses& classes) {
  const std::vector<std::int32_t>& series_nos = classes.SeriesOf(place.keep_class);
  usage_.Add(KeyOf(place, SeriesNo{series_nos.front()}),
             {.byte_count = CopiesOf(place).rows.AddTicks(place, nullptr, ticks, series_nos)});
}

void MergeCopy::AddRollup(const RowPlace& place, RollupHome home, const EncodedRollup& rollup,
                          bool with_grid, const MergeClasses& classes) {
  Copies& copies = CopiesOf(place);
  RollupCopy& copy = home == RollupHome::kLeaf ? copies.rollups : copies.rollups_that_wait;
  if (with_grid) {
    const SeriesNo first{classes.SeriesOf(place.keep_class).front()};
    usage_.Add(KeyOf(place, first), {.rollup_byte_count = copy.AddTicks(place, rollup, first)});
  }
  for (const EncodedRollupColumn& column : rollup.columns) {
    usage_.Add(KeyOf(place, column.series_no),
               {.rollup_byte_count = copy.AddColumn(place, rollup.step_seconds, column)});
  }
}

std::size_t MergeCopy::bytes() const {
  std::size_t bytes = 0;
  for (const auto& [leaf, copies] : copies_) {
    bytes += copies.rows.bytes() + copies.rollups.bytes() + copies.rollups_that_wait.bytes();
  }
  return bytes;
}

absl::Status MergeCopy::Send(PgConnection& connection) {
  for (auto& [leaf, copies] : copies_) {
    STEPWELL_RETURN_IF_ERROR(copies.rows.Send(connection));
    STEPWELL_FAILPOINT("rollup_before_copy");
    STEPWELL_RETURN_IF_ERROR(copies.rollups.Send(connection));
    STEPWELL_RETURN_IF_ERROR(copies.rollups_that_wait.Send(connection));
  }
  return absl::OkStatus();
}

}  // namespace stepwell
