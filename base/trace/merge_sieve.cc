#include "base/trace/merge_sieve.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace stepwell {

absl::StatusOr<std::optional<TraceForm>> MergeSieve::Scan(const TraceSource& source,
                                                          MergeInput& input) {
  bool is_senders = false;
  absl::StatusOr<ScannedTrace> scanned = ScanTrace([&](const TakeBytes& take) {
    absl::Status taken;
    const absl::Status sent = source([&](std::string_view bytes) { return taken = take(bytes); });
    // Bytes that are not those that were uploaded are the trace's failure.
    is_senders = !sent.ok() && taken.ok() && !absl::IsDataLoss(sent);
    return sent;
  });
  absl::Status failed = Annotate(scanned.status(), input.label);
  if (scanned.ok()) {
    input.origin = std::move(scanned->origin);
    failed = CheckMergeInput(input, alignment_);
    if (failed.ok()) return std::move(scanned->form);
  }
  if (asked_ == Asked::kThese || is_senders) return failed;
  notes_.Add(absl::StrCat(failed.message(), "; left out"));
  first_.Update(failed);
  return std::nullopt;
}

absl::StatusOr<MergePlan> MergeSieve::Plan(const std::vector<MergeInput>& inputs) && {
  if (inputs.empty() && !first_.ok()) return first_;
  STEPWELL_ASSIGN_OR_RETURN(MergePlan plan, PlanMerge(inputs, alignment_));
  std::vector<std::string> notes;
  std::move(notes_).MoveTo(notes, "traces are left out likewise");
  plan.notes.insert(plan.notes.begin(), notes.begin(), notes.end());
  return plan;
}

}  // namespace stepwell
