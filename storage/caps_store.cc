#include "storage/caps_store.h"

#include "absl/strings/str_cat.h"

namespace stepwell {

absl::Status CheckTarget(const CapsTarget& target) {
  if (target.project && target.trial) {
    return absl::InvalidArgumentError("place: a project and a trial; allowed is one of both");
  }
  if (target.project && target.project->empty()) {
    return absl::InvalidArgumentError("place.project: empty; give its name, or no project");
  }
  if (target.trial) {
    const TrialSelector& trial = *target.trial;
    if (trial.trial_id < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("place.trial: id ", trial.trial_id, "; allowed are ids from 1 on"));
    }
    if ((trial.trial_id != 0) == !trial.external_id.empty()) {
      return absl::InvalidArgumentError("place.trial: give an id, or a project and a name");
    }
  }
  return CheckCaps({}, {.metric_group = target.metric_group});
}

}  // namespace stepwell
