// FoldSplit: what becomes of folds that the database refuses: they are halved until the chunk that
// it refuses stands alone, and that one is given up. A core; PgFolder asks it. Pure functions.
//
//   if (const auto halves = HalveFolds(folds)) ... else fold GiveUp(folds[0]) instead
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "storage/fold_store.h"

namespace stepwell {

// The first half continues where the writers stand, the second where the first ends: first by
// writers, those of a single one by its parts. No value: it is one part of one writer, or parts
// whose last sequences are not known.
std::optional<std::pair<std::vector<WriterFold>, std::vector<WriterFold>>> HalveFolds(
    const std::vector<WriterFold>& folds);

// The same sequences without their samples, and the gap that says so.
WriterFold GiveUp(const WriterFold& fold);

}  // namespace stepwell
