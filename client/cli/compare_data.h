// CompareData: what `stepwell compare` shows, as the master answered it, and which labels it asks the
// master to keep apart. Values; pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepwell/v1/query.pb.h"

namespace stepwell::cli {

struct CompareData {
  v1::CompareAxis axis = v1::COMPARE_AXIS_BATCH;
  v1::CompareTrialsResponse answer;
  // Of each trial: ranks that recorded steps.
  std::vector<std::int64_t> rank_counts;
};

// Names of labels that tell what a series measures, not where: ranks, machines and devices of one trial
// are others in the next, and are folded together. Sorted, at most as many as a request may have.
std::vector<std::string> LabelsToKeep(const std::vector<v1::Series>& series);
// Values of the label rank among those of the timing `step`.
std::int64_t CountRanks(const std::vector<v1::Series>& series);

}  // namespace stepwell::cli
