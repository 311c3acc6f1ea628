// Leaves: which partitions of metrics and ticks a read must look into, taken from the ledger, as a
// condition that PostgreSQL prunes by when it plans. A core: no connection.
//
//   const LeafCondition leaves = ConditionOf(PickLeaves(usage, start_us, end_us), 4);
//   leaves.sql    // (keep_class = $4 and received_day between $5 and $6), for a statement's "and"
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "storage/pg_param.h"
#include "storage/read_store.h"
#include "storage/sql_text.h"

namespace stepwell {

// Consecutive days of one keep class.
struct LeafRange {
  std::int16_t keep_class = 0;
  std::int32_t first_day = 0;  // days since 1970
  std::int32_t last_day = 0;

  bool operator==(const LeafRange&) const = default;
};

// More ranges would make long plans; beyond this many, those of a class become one.
inline constexpr std::size_t kLeafRangesMax = 32;

enum class LeafRows { kSamples, kRollups };

// Days of the ledger that hold samples, or rollups, of [start_us, end_us), sorted, neighbours joined.
std::vector<LeafRange> PickLeaves(const std::vector<UsageRecord>& usage, std::int64_t start_us,
                                  std::int64_t end_us, LeafRows rows = LeafRows::kSamples);

struct LeafCondition {
  SqlText sql;  // "false" where there are no leaves
  std::vector<PgParam> params;
};

// Placeholders are numbered from `first_param`.
LeafCondition ConditionOf(const std::vector<LeafRange>& leaves, std::size_t first_param);

// How a statement finds the rows of leaves: each leaf by its own name, so that it can be planned once and
// locks no others, or all by a condition on the table. Places are "stepwell.NAME where CONDITION", to which
// conditions may be added.
enum class LeafPlaces { kNamed, kPruned };

// More leaves than this would make long statements: PostgreSQL finds them by their condition.
inline constexpr std::int32_t kLeavesNamedMax = 4;

// How a read finds rows that begin before its range and reach into it: it looks at all rows of its series
// that begin a day before or later, or asks the ticks of the trial first, which are fewer than rows are
// where many series are asked, where the first of them begins.
enum class LookBack { kRows, kTicks };

bool AreFew(const std::vector<LeafRange>& leaves);
// Of `table`. What is bound is added to `params`.
std::vector<SqlText> PlacesOf(std::string_view table, const std::vector<LeafRange>& leaves,
                              LeafPlaces by, std::vector<PgParam>& params);

// Likewise where rows of `table` ("rollups" or "rollup_ticks") of these leaves wait to be joined.
std::vector<SqlText> WaitingPlacesOf(std::string_view table, const std::vector<LeafRange>& leaves,
                                     LeafPlaces by, std::vector<PgParam>& params);

// The first time of the ticks at `place` that lie in [start, end), or the end: no row on them begins
// before. `condition` chooses ticks. All are placeholders; no ticks that lie there begin before `earliest`.
struct TickTimes {
  SqlText start = {};
  SqlText end = {};
  SqlText earliest = {};
};
SqlText FirstTimeOf(const SqlText& place, const SqlText& condition, const TickTimes& times);
// `time_us` - `span_us`, or as early as there is.
std::int64_t TimeBefore(std::int64_t time_us, std::int64_t span_us);

}  // namespace stepwell
