#include "storage/pg_reader_leaves.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/pg_row_copy.h"
#include "storage/rollup_ring.h"

namespace stepwell {
namespace {

// Joins days that lie at most `apart` days from each other.
std::vector<LeafRange> Join(const std::set<std::pair<std::int16_t, std::int32_t>>& days,
                            std::int32_t apart) {
  std::vector<LeafRange> ranges;
  for (const auto& [keep_class, day] : days) {
    if (!ranges.empty() && ranges.back().keep_class == keep_class &&
        day - ranges.back().last_day <= apart) {
      ranges.back().last_day = day;
    } else {
      ranges.push_back({keep_class, day, day});
    }
  }
  return ranges;
}

}  // namespace

std::vector<LeafRange> PickLeaves(const std::vector<UsageRecord>& usage, std::int64_t start_us,
                                  std::int64_t end_us, LeafRows rows) {
  std::set<std::pair<std::int16_t, std::int32_t>> days;
  for (const UsageRecord& line : usage) {
    const bool holds_rows =
        rows == LeafRows::kSamples ? line.row_count > 0 : line.rollup_byte_count > 0;
    if (holds_rows && line.last_time_us >= start_us && line.first_time_us < end_us) {
      days.insert({line.keep_class, line.received_day});
    }
  }
  std::vector<LeafRange> ranges = Join(days, 1);
  if (ranges.size() > kLeafRangesMax) ranges = Join(days, INT32_MAX);
  return ranges;
}

LeafCondition ConditionOf(const std::vector<LeafRange>& leaves, std::size_t first_param) {
  LeafCondition condition;
  std::vector<SqlText> arms;
  for (const LeafRange& range : leaves) {
    arms.push_back(
        SqlCat({"(keep_class = ", SqlParameter(first_param), " and received_day between ",
                SqlParameter(first_param + 1), " and ", SqlParameter(first_param + 2), ")"}));
    condition.params.emplace_back(range.keep_class);
    condition.params.emplace_back(PgDate{range.first_day});
    condition.params.emplace_back(PgDate{range.last_day});
    first_param += 3;
  }
  condition.sql = arms.empty() ? SqlText("false") : SqlCat({"(", SqlJoin(arms, " or "), ")"});
  return condition;
}

bool AreFew(const std::vector<LeafRange>& leaves) {
  std::int64_t count = 0;
  for (const LeafRange& range : leaves) {
    count += std::int64_t{range.last_day} - range.first_day + 1;
  }
  return count <= kLeavesNamedMax;
}

std::vector<SqlText> PlacesOf(std::string_view table, const std::vector<LeafRange>& leaves,
                              LeafPlaces by, std::vector<PgParam>& params) {
  if (by == LeafPlaces::kPruned) {
    LeafCondition condition = ConditionOf(leaves, params.size() + 1);
    params.insert(params.end(), condition.params.begin(), condition.params.end());
    return {SqlCat({"stepwell.", SqlName(table), " where ", condition.sql})};
  }
  std::vector<SqlText> places;
  for (const LeafRange& range : leaves) {
    // Few ranges are of neighbours: the ledger knows every day of them.
    for (std::int32_t day = range.first_day; day <= range.last_day; ++day) {
      places.push_back(SqlCat({LeafTable(table, range.keep_class, day), " where true"}));
    }
  }
  return places;
}

std::vector<SqlText> WaitingPlacesOf(std::string_view table, const std::vector<LeafRange>& leaves,
                                     LeafPlaces by, std::vector<PgParam>& params) {
  if (by == LeafPlaces::kPruned) {
    return PlacesOf(absl::StrCat("recent_", std::string(table)), leaves, by, params);
  }
  std::vector<SqlText> places;
  for (const LeafRange& range : leaves) {
    for (std::int32_t day = range.first_day; day <= range.last_day; ++day) {
      places.push_back(SqlCat({RollupSegment(table, RollupSegmentOf(day)),
                               " where keep_class = ", SqlInteger(range.keep_class),
                               " and received_day = date ", SqlDay(day)}));
    }
  }
  return places;
}

SqlText FirstTimeOf(const SqlText& place, const SqlText& condition, const TickTimes& times) {
  return SqlCat({"coalesce((select min(first_time_us) from ", place, " and ", condition,
                 " and first_time_us >= ", times.earliest, " and first_time_us < ", times.end,
                 " and last_time_us >= ", times.start, "), ", times.end, ")"});
}

std::int64_t TimeBefore(std::int64_t time_us, std::int64_t span_us) {
  return time_us > INT64_MIN + span_us ? time_us - span_us : INT64_MIN;
}

}  // namespace stepwell
