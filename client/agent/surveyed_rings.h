// SurveyedRings: how full the rings of a process or of its forked worker are, read from their headers
// alone. Nothing is opened for writing.
#pragma once

#include <cstdint>

#include "client/agent/checkpoint.h"

namespace stepwell::agent {

struct SurveyedRings {
  bool is_closed = false;  // the process called close()
  std::uint64_t events = 0;
  std::uint64_t events_max = 0;
  std::uint64_t dropped = 0;
  // Rings that were found in `shared`.
  int shared_count = 0;
};

// `directory` holds the header, and the rings that are not in `shared` (-1 = none are). `checkpoint`
// is the spool's: tails that a dead agent did not store.
SurveyedRings SurveyRings(int directory, int shared, const Checkpoint& checkpoint);

}  // namespace stepwell::agent
