// MergeSieve: which traces go into a merge: the first pass over each of them. Where nobody named them, one that cannot be
// unpacked or placed is left out with a note, for it is not what a person asked for; where they were named it fails the merge,
// and so does in any case who sends them. Confined to one thread.
//
//   MergeSieve sieve(MergeSieve::Asked::kAll, alignment);
//   STEPWELL_ASSIGN_OR_RETURN(const std::optional<TraceForm> form, sieve.Scan(source, input));  // nothing: left out
//   STEPWELL_ASSIGN_OR_RETURN(MergePlan plan, std::move(sieve).Plan(inputs));
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/trace/bounded_notes.h"
#include "base/trace/merge_plan.h"
#include "base/trace/trace_reading.h"

namespace stepwell {

class MergeSieve {
 public:
  enum class Asked { kThese, kAll };

  MergeSieve(Asked asked, MergeAlignment alignment) : asked_(asked), alignment_(alignment) {}

  // Gives `input`, whose label is the trace's, its origin. Nothing: it is left out.
  [[nodiscard]] absl::StatusOr<std::optional<TraceForm>> Scan(const TraceSource& source,
                                                              MergeInput& input);
  // Of what was not left out; if that is nothing the first failure. What was left out is told before anything else.
  [[nodiscard]] absl::StatusOr<MergePlan> Plan(const std::vector<MergeInput>& inputs) &&;

 private:
  const Asked asked_;
  const MergeAlignment alignment_;
  absl::Status first_;  // of those left out
  BoundedNotes notes_;
};

}  // namespace stepwell
