// TraceMergeOutput: where what was placed here is written, and what is told of it: the half of `stepwell trace merge` that
// its files and an archive of stored traces share.
#pragma once

#include <functional>
#include <string>

#include "base/trace/merge_plan.h"
#include "base/trace/trace_reading.h"
#include "client/cli/command.h"

namespace stepwell::cli {

struct MergeOutput {
  std::string path;  // empty: standard output
  bool is_json = false;
  bool is_archive = false;
  std::string noun = "file";  // what inputs are
};

using WriteMerge = std::function<absl::StatusOr<MergeCounts>(const TakeBytes& take)>;

// Packed where the path ends in .gz. Returns the exit code.
int WriteMergeTo(const MergeOutput& output, const MergePlan& plan, const WriteMerge& write,
                 Streams streams);

// Says why not, and returns the exit code.
int MergeFailed(const absl::Status& status, Streams streams);

}  // namespace stepwell::cli
