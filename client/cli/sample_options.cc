#include "client/cli/sample_options.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/selector_options.h"
#include "client/cli/words.h"

namespace stepwell::cli {

void AddSampleOptions(CommandOptions& options) {
  options.Value("project", "P", "the project of TRIAL (default)");
  AddSelectorOptions(options);
  options.Value("from", "TIME", "samples at or after this time");
  options.Value("to", "TIME", "samples before this time");
}

absl::StatusOr<v1::ReadSamplesRequest> SamplesRequestOf(const CommandOptions& options) {
  v1::ReadSamplesRequest request;
  STEPWELL_RETURN_IF_ERROR(FillSelection(options, request));
  const std::int64_t now_us = absl::ToUnixMicros(absl::Now());
  if (options.Has("from")) {
    STEPWELL_ASSIGN_OR_RETURN(const std::int64_t from,
                              ParseTime("from", options.Text("from"), now_us));
    request.mutable_time_range()->set_start_time_us(from);
  }
  if (options.Has("to")) {
    STEPWELL_ASSIGN_OR_RETURN(const std::int64_t to, ParseTime("to", options.Text("to"), now_us));
    request.mutable_time_range()->set_end_time_us(to);
  }
  const v1::TimeRange& range = request.time_range();
  if (options.Has("from") && options.Has("to") && range.start_time_us() >= range.end_time_us()) {
    return absl::InvalidArgumentError(absl::StrCat("--from is '", options.Text("from"),
                                                   "', --to is '", options.Text("to"),
                                                   "'; allowed: --from before --to"));
  }
  return request;
}

}  // namespace stepwell::cli
