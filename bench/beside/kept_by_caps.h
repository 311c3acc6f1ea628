// KeptByCaps: how exactly a sweep keeps what caps say. Blocking.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "bench/beside/admin_client.h"

namespace stepwell::bench {

struct KeptBytes {
  double cap = 0;
  double kept = 0;
};
// Caps the trial's bytes so that half of its samples may stay, sweeps it, and reads its ledger. REQUIRES: it is merged.
absl::StatusOr<KeptBytes> SweepHalfOfBytes(AdminClient& admin, const std::string& trial);

// Caps the samples of each series at half of what the smallest holds, sweeps, and counts: by how many rows
// the worst series is off. REQUIRES: it is merged.
absl::StatusOr<double> SweepHalfOfSamples(AdminClient& admin, const std::string& trial);

}  // namespace stepwell::bench
