#include "client/agent/epoch_log.h"

namespace stepwell::agent {

bool EpochLog::Note(std::int64_t first_batch, double value) {
  if (!(value >= 0 && value < 2e9)) return false;
  const auto epoch = static_cast<std::int32_t>(value);
  bool is_new = false;
  while (!changes_.empty() && changes_.back().first_batch >= first_batch) {
    is_new |= changes_.back().first_batch != first_batch || changes_.back().epoch != epoch;
    changes_.pop_back();
  }
  if (!changes_.empty() && changes_.back().epoch == epoch) return is_new;
  changes_.push_back({first_batch, epoch});
  if (changes_.size() > kChangesMax) changes_.pop_front();
  return true;
}

std::int32_t EpochLog::EpochAt(std::int64_t batch) const {
  for (auto change = changes_.rbegin(); change != changes_.rend(); ++change) {
    if (change->first_batch <= batch) return change->epoch;
  }
  return -1;
}

}  // namespace stepwell::agent
