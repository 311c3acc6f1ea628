// MergeClocks: by how much the inputs of a merge are shifted, and how far that may be off: the part of MergePlan that thinks
// of clocks (the rules stand there). Pure functions, thread-safe.
//
// Invariant: an input's stated error is never less than the true one at any moment of its window, as long as what its
// barriers and exchanges say is true; where that cannot be said it has none.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "base/trace/merge_plan.h"

namespace stepwell {

// `plan` has the inputs with all that they say of themselves: sets their clocks, shifts and errors, and may add notes.
// kInvalidArgument: a barrier's time is absurd.
[[nodiscard]] absl::Status PlaceClocks(const std::vector<MergeInput>& inputs, MergePlan& plan);

// Which inputs come first where one has to: lower ranks, then earlier ones.
std::vector<std::size_t> InputsInOrder(const MergePlan& plan);

}  // namespace stepwell
