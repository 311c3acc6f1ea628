// SampleOptions: the options that choose samples, by their series and their time, as `read` and `export`
// share them.
#pragma once

#include "absl/status/statusor.h"
#include "client/cli/options.h"
#include "stepwell/v1/query.pb.h"

namespace stepwell::cli {

void AddSampleOptions(CommandOptions& options);
// After Parse. kInvalidArgument says which option is wrong.
[[nodiscard]] absl::StatusOr<v1::ReadSamplesRequest> SamplesRequestOf(
    const CommandOptions& options);

}  // namespace stepwell::cli
