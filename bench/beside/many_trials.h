// ManyTrials: short trainings that all merge on one day, so that a leaf has lines of the ledger of each of
// them. Blocking.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace stepwell::bench {

// Trials PREFIX-0, PREFIX-1, ...: one writer each, that sends one chunk with series of the six metric groups
// which a training on a machine has, and closes.
absl::Status FillManyTrials(const std::string& grpc_address, const std::string& prefix, int count);

}  // namespace stepwell::bench
