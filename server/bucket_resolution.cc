#include "server/bucket_resolution.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "storage/rollup.h"

namespace stepwell {
namespace {

constexpr std::int64_t kSecondUs = 1'000'000;

// Whose the line is; null where the answer holds nothing of it.
const AskedGroup* AskedOf(const UsageRecord& line, const BucketPlan& plan,
                          const std::vector<AskedGroup>& asked) {
  if (line.last_time_us < plan.start || line.first_time_us >= plan.end) return nullptr;
  const auto found = std::find_if(asked.begin(), asked.end(), [&](const AskedGroup& group) {
    return group.metric_group == line.metric_group;
  });
  return found == asked.end() ? nullptr : &*found;
}

bool HasRollups(const BucketPlan& plan, const std::vector<UsageRecord>& usage,
                const std::vector<AskedGroup>& asked) {
  return std::all_of(usage.begin(), usage.end(), [&](const UsageRecord& line) {
    return line.has_rollups || AskedOf(line, plan, asked) == nullptr;
  });
}

bool AreSamplesRemoved(const BucketPlan& plan, const std::vector<UsageRecord>& usage,
                       const std::vector<AskedGroup>& asked) {
  return std::any_of(usage.begin(), usage.end(), [&](const UsageRecord& line) {
    return line.removed_sample_count > 0 && AskedOf(line, plan, asked) != nullptr;
  });
}

// How many samples of the series the range holds, as if they came evenly and a group's series had as many
// each.
double SamplesIn(const BucketPlan& plan, const std::vector<UsageRecord>& usage,
                 const std::vector<AskedGroup>& asked) {
  double count = 0;
  for (const UsageRecord& line : usage) {
    const AskedGroup* group = AskedOf(line, plan, asked);
    if (line.sample_count == 0 || group == nullptr) continue;
    const double first =
        std::max(static_cast<double>(line.first_time_us), static_cast<double>(plan.start));
    const double last =
        std::min(static_cast<double>(line.last_time_us), static_cast<double>(plan.end));
    const double span =
        static_cast<double>(line.last_time_us) - static_cast<double>(line.first_time_us);
    const double part = span > 0 ? std::clamp((last - first) / span, 0.0, 1.0) : 1;
    count += static_cast<double>(line.sample_count) * part * std::clamp(group->share, 0.0, 1.0);
  }
  return count;
}

bool IsFarTooMuch(const BucketPlan& plan, const std::vector<UsageRecord>& usage,
                  const std::vector<AskedGroup>& asked) {
  const double excess = SamplesIn(plan, usage, asked) / kSamplesReadMost;
  const double widened_most = kWidenedMost * std::min(excess, kExcessCounted);
  const double finest_us = static_cast<double>(kRollupSteps[0]) * kSecondUs;
  return excess > 1 && finest_us <= widened_most * static_cast<double>(plan.width);
}

std::int32_t StepOf(const BucketPlan& plan, v1::Resolution wanted) {
  if (wanted == v1::RESOLUTION_10_SECONDS) return 10;
  if (wanted == v1::RESOLUTION_60_SECONDS) return 60;
  if (wanted == v1::RESOLUTION_RAW) return 0;
  std::int32_t coarsest = 0;
  for (const std::int32_t step_seconds : kRollupSteps) {
    if (plan.width >= 2 * step_seconds * kSecondUs) coarsest = step_seconds;
  }
  return coarsest;
}

}  // namespace

v1::Resolution BucketResolution::wire() const {
  switch (step_seconds) {
    case 10:
      return v1::RESOLUTION_10_SECONDS;
    case 60:
      return v1::RESOLUTION_60_SECONDS;
    default:
      return v1::RESOLUTION_RAW;
  }
}

BucketResolution ChooseResolution(const BucketPlan& plan, std::int32_t buckets_max,
                                  v1::Resolution wanted, const std::vector<UsageRecord>& usage,
                                  const std::vector<AskedGroup>& asked) {
  const BucketResolution samples = {.step_seconds = 0, .plan = plan};
  if (plan.axis != BucketAxis::kTime || plan.bucket_count == 0) return samples;
  std::int32_t step_seconds = StepOf(plan, wanted);
  // Narrow buckets that samples no longer fill: wider ones are better than none.
  if (step_seconds == 0 && wanted == v1::RESOLUTION_UNSPECIFIED &&
      (AreSamplesRemoved(plan, usage, asked) || IsFarTooMuch(plan, usage, asked))) {
    step_seconds = kRollupSteps[0];
  }
  if (step_seconds == 0) return samples;
  const std::optional<BucketPlan> aligned = Aligned(plan, step_seconds * kSecondUs, buckets_max);
  if (!aligned.has_value() || !HasRollups(*aligned, usage, asked)) return samples;
  return {.step_seconds = step_seconds, .plan = *aligned};
}

absl::Status CheckResolution(v1::Resolution wanted_untrusted, BucketAxis axis) {
  if (!v1::Resolution_IsValid(wanted_untrusted)) {
    return absl::InvalidArgumentError(
        absl::StrCat("resolution is ", static_cast<int>(wanted_untrusted), "; allowed: 0 ... 3"));
  }
  if (axis == BucketAxis::kBatch && wanted_untrusted != v1::RESOLUTION_UNSPECIFIED &&
      wanted_untrusted != v1::RESOLUTION_RAW) {
    return absl::InvalidArgumentError(
        absl::StrCat("resolution is ", v1::Resolution_Name(wanted_untrusted),
                     " with a batch_range: rollups are by time; allowed: UNSPECIFIED, RAW"));
  }
  return absl::OkStatus();
}

}  // namespace stepwell
