#include "server/credit_plan.h"

#include <algorithm>

namespace stepwell {

std::int64_t PlanCredit(const CreditLoad& load) {
  if (!load.may_take) return 0;
  if (load.queue_bytes >= load.queue_bytes_max) return 0;
  if (load.unfolded_bytes >= load.unfolded_bytes_max) return 0;
  const double queue_room =
      1.0 - static_cast<double>(load.queue_bytes) / static_cast<double>(load.queue_bytes_max);
  // Heads may fill to a half before anyone is slowed: a fold takes them in one go.
  const double fold_room = std::min(1.0, 2.0 - 2.0 * static_cast<double>(load.unfolded_bytes) /
                                                   static_cast<double>(load.unfolded_bytes_max));
  const double share = static_cast<double>(load.queue_bytes_max) / std::max(1, load.writer_count);
  const auto bytes = static_cast<std::int64_t>(share * std::min(queue_room, fold_room));
  return std::clamp(bytes, kCreditBytesMin, kCreditBytesMax);
}

}  // namespace stepwell
