// SelectorOptions: --group, --name and --label, which choose series, as `series` and `read` share
// them.
#pragma once

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "client/cli/master_client.h"
#include "client/cli/options.h"
#include "stepwell/v1/query.pb.h"

namespace stepwell::cli {

void AddSelectorOptions(CommandOptions& options);
// After Parse. kInvalidArgument says which option is wrong.
[[nodiscard]] absl::StatusOr<v1::SeriesSelector> SelectorOf(const CommandOptions& options);

// The trial and the series that the command line names, into a request that has fields for both.
template <typename Request>
[[nodiscard]] absl::Status FillSelection(const CommandOptions& options, Request& request) {
  STEPWELL_ASSIGN_OR_RETURN(*request.mutable_trial(),
                            ParseTrialRef(options.argument(), options.project()));
  STEPWELL_ASSIGN_OR_RETURN(*request.mutable_selector(), SelectorOf(options));
  return absl::OkStatus();
}

}  // namespace stepwell::cli
