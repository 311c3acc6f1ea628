#include "storage/batches_around.h"

#include "base/check.h"

namespace stepwell {
namespace {

bool IsNearerBefore(const TickBatch& tick, const std::optional<TickBatch>& known) {
  if (!known || tick.time_us > known->time_us) return true;
  return tick.time_us == known->time_us && tick.batch < known->batch;
}

bool IsNearerAfter(const TickBatch& tick, const std::optional<TickBatch>& known) {
  if (!known || tick.time_us < known->time_us) return true;
  return tick.time_us == known->time_us && tick.batch > known->batch;
}

}  // namespace

void NoteTicks(std::span<const std::int64_t> times_us, std::span<const std::int32_t> batches,
               const WriterStretch& stretch, BatchesAround& around) {
  STEPWELL_CHECK(times_us.size() == batches.size());
  for (std::size_t i = 0; i < times_us.size(); ++i) {
    if (batches[i] < 0) continue;
    const TickBatch tick{times_us[i], batches[i]};
    if (tick.time_us <= stretch.first_time_us && IsNearerBefore(tick, around.before)) {
      around.before = tick;
    }
    if (tick.time_us >= stretch.last_time_us && IsNearerAfter(tick, around.after)) {
      around.after = tick;
    }
  }
}

}  // namespace stepwell
