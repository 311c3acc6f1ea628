// KernelChance: getrandom(2) of this program, given by a run's chance: ids and jitter repeat with its
// seed. One at a time.
#pragma once

#include "tests/simulation/chance.h"

namespace stepwell::simulation {

class KernelChance {
 public:
  // `chance` outlives this.
  explicit KernelChance(Chance& chance);
  ~KernelChance();
  KernelChance(const KernelChance&) = delete;
  KernelChance& operator=(const KernelChance&) = delete;
};

}  // namespace stepwell::simulation
