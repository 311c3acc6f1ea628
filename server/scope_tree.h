// ScopeTree: which scope lies inside which, from their paths: "train_batch/forward" lies in
// "train_batch". A core; pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "storage/model.h"

namespace stepwell {

struct ScopeKey {
  std::string path;  // names joined by "/"
  Labels labels;
};

// For each scope the one that it lies directly in: the nearest path above it that exists, with the
// same labels where there is such a one, else without labels, else the first. None = directly in
// the step. Each path has one place in the tree, so totals minus those directly inside add up to
// the totals at its top.
std::vector<std::optional<std::size_t>> FindParents(const std::vector<ScopeKey>& scopes);

}  // namespace stepwell
