// What every bench of a whole path does. Thread-safe but for StayOnTwoCores.
#pragma once

#include <vector>

#include "absl/status/status.h"

namespace stepwell::bench {

// Says why it could not measure and ends the process with 1.
void DieUnless(const absl::Status& status);

// REQUIRES: values is not empty.
double Median(std::vector<double> values);

// The first two cores that this process may use, for client, master and PostgreSQL together: children
// inherit it.
void StayOnTwoCores();

}  // namespace stepwell::bench
