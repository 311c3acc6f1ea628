#include "storage/merge_plan.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/presence.h"
#include "storage/stretch.h"
#include "storage/tick_join.h"
#include "storage/vector_codec.h"

namespace stepwell {
namespace {

// The first microsecond of timestamptz; its last is that of an int64.
constexpr std::int64_t kTimeMinUs = -210866803200000000;

absl::Status DecodeTicks(const EncodedTicks& ticks, TickTable& table) {
  const auto tick_count = static_cast<std::size_t>(ticks.tick_count);
  table.tick_group = ticks.tick_group;
  STEPWELL_ASSIGN_OR_RETURN(table.times_us, DecodeIntegers(ticks.times, tick_count));
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<std::int64_t> batches,
                            DecodeIntegers(ticks.batches, tick_count));
  // What no fold wrote, a merge must not write on: nobody could read its rollups.
  for (const std::int64_t time_us : table.times_us) {
    if (time_us < kTimeMinUs) return absl::DataLossError("a time before all of timestamptz");
  }
  table.batches.clear();
  table.batches.reserve(batches.size());
  for (const std::int64_t batch : batches) {
    if (batch < -1 || batch > INT32_MAX) return absl::DataLossError("a batch out of range");
    table.batches.push_back(static_cast<std::int32_t>(batch));
  }
  return absl::OkStatus();
}

absl::Status DecodeColumn(const EncodedColumn& encoded, TickColumn& column) {
  if (encoded.sample_count < 0 ||
      static_cast<std::size_t>(encoded.sample_count) > kVectorSamplesMax) {
    return absl::DataLossError("a count of samples out of range");
  }
  column.series_no = encoded.series_no;
  column.values.resize(static_cast<std::size_t>(encoded.sample_count));
  column.presence = UnpackPresence(encoded.presence);
  return DecodeValuesInto(encoded.values, column.values);
}

// What a row says that it holds, which may be damaged: never more than a fold puts into one.
std::size_t ClaimedCount(std::int32_t count) {
  return std::min(static_cast<std::size_t>(std::max(count, 0)), kStretchTicksMax);
}

absl::StatusOr<TickTable> JoinTable(absl::Span<const RecentTicksRow> ticks,
                                    absl::Span<const RecentColumnRow> columns) {
  std::map<std::int64_t, std::vector<const RecentColumnRow*>> columns_of;
  std::size_t value_count = 0;
  for (const RecentColumnRow& column : columns) {
    columns_of[column.place.tick_no].push_back(&column);
    value_count += ClaimedCount(column.column.sample_count);
  }
  std::size_t tick_count = 0;
  for (const RecentTicksRow& row : ticks) tick_count += ClaimedCount(row.ticks.tick_count);
  TickJoin join;
  join.Expect(tick_count, value_count);
  TickTable table;  // one after the other in the same memory
  for (const RecentTicksRow& row : ticks) {
    if (row.ticks.tick_count < 0) return absl::DataLossError("a row of ticks has a negative count");
    STEPWELL_RETURN_IF_ERROR(DecodeTicks(row.ticks, table));
    const std::vector<const RecentColumnRow*>& on_ticks = columns_of[row.place.tick_no];
    table.columns.resize(on_ticks.size());
    for (std::size_t i = 0; i < on_ticks.size(); ++i) {
      STEPWELL_RETURN_IF_ERROR(DecodeColumn(on_ticks[i]->column, table.columns[i]));
    }
    if (const absl::Status added = join.Add(table); !added.ok()) {
      return absl::DataLossError(absl::StrCat("tick ", row.place.tick_no, ": ", added.message()));
    }
  }
  return join.Take();
}

}  // namespace

std::vector<MergedStretch> EncodeMerged(const TickTable& table) {
  std::vector<MergedStretch> stretches;
  ColumnRoom room(table);
  WalkTable(
      table,
      [&](const StretchSlice& stretch) {
        const std::size_t columns = room.Next();
        stretches.push_back(
            {EncodeTimes(table.tick_group, stretch), RollUpTimes(stretch, columns)});
        stretches.back().ticks.columns.reserve(columns);
      },
      [&](const StretchSlice& stretch, const ColumnSlice& column) {
        AddColumn(stretch, column, stretches.back().ticks);
        AddColumn(stretch, column, stretches.back().rollups);
      });
  return stretches;
}

absl::StatusOr<std::vector<MergedStretch>> JoinRecent(absl::Span<const RecentTicksRow> ticks,
                                                      absl::Span<const RecentColumnRow> columns) {
  STEPWELL_ASSIGN_OR_RETURN(const TickTable table, JoinTable(ticks, columns));
  return EncodeMerged(table);
}

absl::StatusOr<std::vector<StretchRollups>> RollUpRecent(absl::Span<const RecentTicksRow> ticks) {
  STEPWELL_ASSIGN_OR_RETURN(const TickTable table, JoinTable(ticks, {}));
  return RollUpStretches(table);
}

std::vector<SeriesNo> SeriesOn(absl::Span<const RecentTicksRow> ticks) {
  std::vector<SeriesNo> series;
  for (const RecentTicksRow& row : ticks) {
    for (const EncodedColumn& column : row.ticks.columns) series.push_back(column.series_no);
  }
  std::sort(series.begin(), series.end());
  series.erase(std::unique(series.begin(), series.end()), series.end());
  return series;
}

}  // namespace stepwell
