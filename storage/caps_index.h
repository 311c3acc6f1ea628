// CapsIndex: places by their owner, so that what decides over one trial is found without looking at all
// of them. A core; a value.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "storage/caps.h"

namespace stepwell {

class CapsIndex {
 public:
  explicit CapsIndex(absl::Span<const PlacedCaps> placed);

  // What ResolveCaps needs for this trial; 0 = none.
  std::vector<PlacedCaps> Of(std::int64_t project_id, std::int64_t trial_id) const;
  // Whether some place bounds it, or the product's default does.
  bool AnyBounds(const CapField& field) const;

 private:
  std::vector<PlacedCaps> of_all_;
  absl::flat_hash_map<std::int64_t, std::vector<PlacedCaps>> of_project_;
  absl::flat_hash_map<std::int64_t, std::vector<PlacedCaps>> of_trial_;
  std::vector<const CapField*> bounded_;
};

}  // namespace stepwell
