// SelectorOptions: --group, --name and --label, which choose series, as `series` and `read` share
// them.
#pragma once

#include "absl/status/statusor.h"
#include "client/cli/options.h"
#include "stepwell/v1/query.pb.h"

namespace stepwell::cli {

void AddSelectorOptions(CommandOptions& options);
// After Parse. kInvalidArgument says which option is wrong.
[[nodiscard]] absl::StatusOr<v1::SeriesSelector> SelectorOf(const CommandOptions& options);

}  // namespace stepwell::cli
