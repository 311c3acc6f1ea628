#include "storage/token_store.h"

#include "absl/strings/str_cat.h"

namespace stepwell {

absl::Status NoSuchTrial(const TrialSelector& trial) {
  if (trial.trial_id != 0) {
    return absl::NotFoundError(absl::StrCat("there is no trial with the id ", trial.trial_id));
  }
  return absl::NotFoundError(
      absl::StrCat("there is no trial '", trial.external_id, "' in project '", trial.project, "'"));
}

}  // namespace stepwell
