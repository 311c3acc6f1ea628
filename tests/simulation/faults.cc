#include "tests/simulation/faults.h"

#include "absl/strings/str_cat.h"

namespace stepwell::simulation {
namespace {

struct Kind {
  const char* name;
  double Faults::*rate;
  double most;
};

constexpr Kind kKinds[] = {
    {"cut", &Faults::cut, 0.03},
    {"stall", &Faults::stall, 0.01},
    {"master_killed", &Faults::master_killed, 0.02},
    {"master_replaced", &Faults::master_replaced, 0.01},
    {"database_away", &Faults::database_away, 0.02},
    {"agent_killed", &Faults::agent_killed, 0.01},
    {"agent_killed_in_write", &Faults::agent_killed_in_write, 0.01},
    {"power_lost", &Faults::power_lost, 0.004},
    {"spool_set_back", &Faults::spool_set_back, 0.02},
    {"disk_full", &Faults::disk_full, 0.01},
    {"commit_refused", &Faults::commit_refused, 0.2},
    {"answer_lost", &Faults::answer_lost, 0.2},
    {"killed_behind_fold", &Faults::killed_behind_fold, 0.2},
    {"sync_failed", &Faults::sync_failed, 0.1},
    {"chunk_lost", &Faults::chunk_lost, 0.05},
    {"chunk_repeated", &Faults::chunk_repeated, 0.05},
    {"chunks_swapped", &Faults::chunks_swapped, 0.05},
};

}  // namespace

Faults DrawFaults(Chance& chance) {
  Faults faults;
  for (const Kind& kind : kKinds) {
    if (chance.Of(0.4))
      faults.*kind.rate = kind.most * static_cast<double>(chance.Between(1, 8)) / 8;
  }
  return faults;
}

std::string NamesOf(const Faults& faults) {
  std::string names;
  for (const Kind& kind : kKinds) {
    if (faults.*kind.rate > 0) absl::StrAppend(&names, names.empty() ? "" : " ", kind.name);
  }
  return names;
}

}  // namespace stepwell::simulation
