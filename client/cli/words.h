// Words: the wire contract's values in people's words. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/terminal.h"
#include "google/protobuf/map.h"
#include "stepwell/v1/model.pb.h"
#include "stepwell/v1/query.pb.h"

namespace stepwell::cli {

// "running", coloured by how well it is.
std::string StateText(v1::TrialState state, const Paint& paint);
Tone StateTone(v1::TrialState state);
const char* StateWord(v1::TrialState state);
const char* KindWord(v1::SeriesKind kind);
// "ring full", "spool lost", ...
const char* CauseWords(v1::GapCause cause);
// What a machine does, rather than what a training run says of itself.
bool IsSystemGroup(const std::string& metric_group);
// "default/my-run", "my-run", or "trial 7" where it has no name.
std::string TrialName(const v1::Trial& trial);
// "device=GPU-1 worker=2", sorted; `hide` names labels that are shown elsewhere.
std::string LabelsText(const google::protobuf::Map<std::string, std::string>& labels,
                       const std::map<std::string, std::string>& hide = {});

// "recording is off", "recording is on, every 100 ms, groups gpu, cpu".
std::string ProfilingWords(const v1::TrialProfiling& profiling);
// Of a trial of which nobody asked anything.
v1::TrialProfiling Unrestrained();
// False: the trial records what it chose itself.
bool IsRestrained(const v1::TrialProfiling& profiling);

// running, completed, failed or lost; kInvalidArgument names them.
[[nodiscard]] absl::StatusOr<v1::TrialState> ParseState(const std::string& text);
// RFC 3339, a day or a time of a day (UTC), or a duration such as 10m: that long before `now_us`.
// Microseconds since 1970.
[[nodiscard]] absl::StatusOr<std::int64_t> ParseTime(const std::string& option,
                                                     const std::string& text, std::int64_t now_us);
// name=value.
[[nodiscard]] absl::Status ParseLabel(const std::string& text, v1::SeriesSelector& selector);

}  // namespace stepwell::cli
