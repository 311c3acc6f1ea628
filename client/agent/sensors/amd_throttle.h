// AmdThrottle: for which reasons an AMD GPU's clocks are lower, out of its table: older chips say it
// of this moment, newer ones count the cycles in which it was so. Reasons are told under the names
// that NVIDIA's have, where they mean the same. Confined to one thread.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/agent/sensors/amd_table.h"

namespace stepwell::agent {

class AmdThrottle {
 public:
  struct Reason {
    const char* label;
    bool active;
  };

  // Each that the chip can tell; none at the first reading of a chip that counts and while its counts
  // stand still. kUnimplemented: the table does not say.
  absl::StatusOr<std::vector<Reason>> Next(const AmdTable& table);
  void Forget() { last_.reset(); }

 private:
  absl::StatusOr<std::vector<Reason>> NextOf(const AmdTable::Cycles& cycles);

  std::optional<AmdTable::Cycles> last_;
};

}  // namespace stepwell::agent
