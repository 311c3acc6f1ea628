// GapPlaces: between which training batches the declared gaps of an answer over batches lie, as far as their
// writers' ticks tell, stored ones and those in heads. The choice is a core; PlaceGaps asks the database once
// where there is something to place.
//
//   STEPWELL_RETURN_IF_ERROR(PlaceGaps(view, attempts, *response.mutable_completeness()));
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "server/batch_attempts.h"
#include "server/trial_view.h"
#include "storage/batches_around.h"

namespace stepwell {

// Where the gaps are whose place can be asked for, each stretch once: those of a writer that tell their times.
// Of more than `stretches_max` those that were declared last; the answer lists the gaps that were declared first.
std::vector<WriterStretch> StretchesOf(const v1::Completeness& completeness,
                                       std::size_t stretches_max);

// Sets the gap's batches. Nothing where a newer attempt did these batches over, and has them now, or where they
// run against time. `attempt` is its writer's.
void SetPlace(const BatchesAround& around, const BatchAttempts& attempts, std::int32_t attempt,
              v1::Gap& gap);

[[nodiscard]] absl::Status PlaceGaps(TrialView& view, const BatchAttempts& attempts,
                                     v1::Completeness& completeness);

}  // namespace stepwell
