#include "client/cli/sample_options.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/selector_options.h"
#include "client/cli/words.h"

namespace stepwell::cli {

namespace {

// 0 is no bound on the wire, and no other number says the same: samples may be of any microsecond.
absl::StatusOr<std::int64_t> BoundOf(const CommandOptions& options, const std::string& option,
                                     std::int64_t now_us) {
  STEPWELL_ASSIGN_OR_RETURN(const std::int64_t time_us,
                            ParseTime(option, options.Text(option), now_us));
  if (time_us != 0) return time_us;
  return absl::InvalidArgumentError(absl::StrCat(
      "--", option, " is '", options.Text(option),
      "', the time 0, which stands for no bound; allowed: a microsecond before or after it, or no "
      "--",
      option));
}

}  // namespace

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
    STEPWELL_ASSIGN_OR_RETURN(const std::int64_t from, BoundOf(options, "from", now_us));
    request.mutable_time_range()->set_start_time_us(from);
  }
  if (options.Has("to")) {
    STEPWELL_ASSIGN_OR_RETURN(const std::int64_t to, BoundOf(options, "to", now_us));
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
