// CreditPlan: how many bytes a writer may send before it must wait for acks. Pure.
#pragma once

#include <cstdint>

namespace stepwell {

struct CreditLoad {
  // The database answers and its disk has room.
  bool may_take = true;
  // Checked chunks that wait for their commit, all writers.
  std::int64_t queue_bytes = 0;
  std::int64_t queue_bytes_max = 64 << 20;
  // Committed and not yet folded.
  std::int64_t unfolded_bytes = 0;
  std::int64_t unfolded_bytes_max = 256 << 20;
  int writer_count = 1;
};

inline constexpr std::int64_t kCreditBytesMin = 1 << 20;
inline constexpr std::int64_t kCreditBytesMax = 8 << 20;

// Between kCreditBytesMin and kCreditBytesMax while there is room: an equal share of the queue,
// which shrinks as the queue and the heads fill up. 0 while nothing may be taken or either is full.
std::int64_t PlanCredit(const CreditLoad& load);

}  // namespace stepwell
