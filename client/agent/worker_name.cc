#include "client/agent/worker_name.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {

std::optional<WorkerName> ParseWorkerName(const std::string& text) {
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, spool::kWorkerDirectoryPrefix)) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(rest, absl::MaxSplits('-', 1));
  WorkerName name;
  const bool is_name = absl::SimpleAtoi(parts.first, &name.index) &&
                       absl::SimpleAtoi(parts.second, &name.again) &&
                       name.index < spool::kWorkerCountMax && TextOf(name) == text;
  return is_name ? std::optional<WorkerName>(name) : std::nullopt;
}

std::string TextOf(const WorkerName& name) {
  return absl::StrCat(spool::kWorkerDirectoryPrefix, name.index, "-", name.again);
}

}  // namespace stepwell::agent
