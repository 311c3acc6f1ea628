#include "server/timing_removals.h"

#include <gtest/gtest.h>

#include "server/limits.h"

namespace stepwell {
namespace {

constexpr std::int64_t kMinuteUs = 60'000'000;
constexpr std::int64_t kCreatedUs = 20'010 * kDayUs + kDayUs / 2;

UsageRecord Removed(std::int32_t day, std::int64_t removed, std::int64_t held,
                    const char* group = "timing") {
  UsageRecord line;
  line.received_day = day;
  line.metric_group = group;
  line.sample_count = held;
  line.removed_sample_count = removed;
  return line;
}

TEST(TimingRemovals, ACapThatTookWhatCameBeforeTheAttemptTookNoneOfIt) {
  const AttemptBegin ordinary{kCreatedUs, kCreatedUs - kMinuteUs};
  struct Row {
    const char* name;
    std::int64_t last_time_us;
    AttemptBegin begin;
    std::vector<UsageRecord> usage;
    bool may_be;
  };
  const std::int64_t a_day_before = kCreatedUs - kDayUs;
  for (const Row& row : {
           Row{"before it", a_day_before, ordinary, {}, false},
           Row{"just before it", kCreatedUs - kMinuteUs, ordinary, {}, true},
           Row{"since", kCreatedUs + kDayUs, ordinary, {}, true},
           Row{"nobody knows when", 0, ordinary, {}, true},
           Row{"nobody knows the attempt", a_day_before, {{}, kCreatedUs}, {}, true},
           Row{"none of it is held", a_day_before, {kCreatedUs, {}}, {}, true},
           Row{"made before the master heard",
               a_day_before,
               {kCreatedUs, a_day_before + 1},
               {},
               true},
           Row{"by the ledger before it", a_day_before, ordinary, {Removed(20'009, 5, 5)}, false},
           Row{"of others, on its day", a_day_before, ordinary, {Removed(20'010, 5, 5)}, false},
           Row{"its first day went", a_day_before, ordinary, {Removed(20'010, 5, 0)}, true},
           Row{"of a day after", a_day_before, ordinary, {Removed(20'011, 5, 5)}, true},
           Row{"of another group", a_day_before, ordinary, {Removed(20'011, 5, 0, "gpu")}, false},
           Row{"nothing of a day after", a_day_before, ordinary, {Removed(20'011, 0, 5)}, false},
       }) {
    EXPECT_EQ(MayBeOfAttempt(row.last_time_us, row.usage, "timing", row.begin), row.may_be)
        << row.name;
  }
}

}  // namespace
}  // namespace stepwell
