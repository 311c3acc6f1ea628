// Faults: how often what goes wrong in one simulated run. Each run has some kinds and not others: where
// all happen all the time, nothing gets far enough to break. A value.
//
//   const Faults faults = DrawFaults(chance);
#pragma once

#include <string>

#include "tests/simulation/chance.h"

namespace stepwell::simulation {

struct Faults {
  // Per turn of the world.
  double cut = 0;              // a connection ends, what is under way in doubt
  double stall = 0;            // or nothing passes, until somebody gives up
  double master_killed = 0;    // at any moment, also in a COMMIT
  double master_replaced = 0;  // another one takes over while it goes on
  double database_away = 0;
  double agent_killed = 0;
  double agent_killed_in_write = 0;
  double power_lost = 0;
  double spool_set_back = 0;
  double disk_full = 0;
  // Per commit, fold, sync, and chunk on its way.
  double commit_refused = 0;
  double answer_lost = 0;
  double killed_behind_fold = 0;
  double sync_failed = 0;
  double chunk_lost = 0;
  double chunk_repeated = 0;
  double chunks_swapped = 0;
};

Faults DrawFaults(Chance& chance);
// Those that can happen, for the trace.
std::string NamesOf(const Faults& faults);

}  // namespace stepwell::simulation
