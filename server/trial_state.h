// TrialStateRule: what the states of a trial's writers say of the trial. Pure.
#pragma once

#include "absl/types/span.h"
#include "base/steady_time.h"
#include "storage/model.h"

namespace stepwell {

struct WriterFact {
  WriterState state = WriterState::kOpen;
  // Of an open one: newest chunk, gap, heartbeat or Open.
  SteadyTime heard = {};
};

// running while a writer is open and was heard of in the last 60 s; lost when one is open and not;
// failed when all ended and one of them died; completed when all closed by themselves.
// REQUIRES: at least one writer.
TrialState DeriveTrialState(absl::Span<const WriterFact> writers, SteadyTime now);

}  // namespace stepwell
