// TraceArchive: traces as they are, in a tar archive behind Perfetto's manifest of where each belongs: streamed, none is ever
// whole in memory. A function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/trace/merge_plan.h"
#include "base/trace/trace_reading.h"

namespace stepwell::cli {

struct ArchivedTrace {
  std::string name;   // its file's; the end tells the form
  std::string clock;  // TraceForm's
  std::int64_t byte_count = 0;
  TraceSource source = {};
};

// `archived` are the inputs of `plan`, in its order. kAborted: one has other bytes than so many.
[[nodiscard]] absl::Status WriteTraceArchive(const MergePlan& plan,
                                             const std::vector<ArchivedTrace>& archived,
                                             const TakeBytes& take);

}  // namespace stepwell::cli
