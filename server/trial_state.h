// TrialStateRule: what the states of a trial's writers say of the trial. Pure.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "storage/model.h"

namespace stepwell {

struct WriterFact {
  WriterState state = WriterState::kOpen;
  // Of an open one: newest chunk, gap, heartbeat or Open, by the master's clock.
  std::int64_t seen_time_us = 0;
};

// running while a writer is open and was heard of in the last 60 s; lost when one is open and not;
// failed when all ended and one of them died; completed when all closed by themselves.
// REQUIRES: at least one writer.
TrialState DeriveTrialState(absl::Span<const WriterFact> writers, std::int64_t now_us);

}  // namespace stepwell
