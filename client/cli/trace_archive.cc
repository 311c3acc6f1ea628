#include "client/cli/trace_archive.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/trace/perfetto_manifest.h"
#include "base/trace/tar_bytes.h"
#include "client/traces/trace_file.h"

namespace stepwell::cli {
namespace {

absl::Status WriteEntry(const std::string& name, std::int64_t size, const TraceSource& source,
                        const TakeBytes& take) {
  STEPWELL_ASSIGN_OR_RETURN(const std::string header, TarHeader(name, size));
  STEPWELL_RETURN_IF_ERROR(take(header));
  std::int64_t written = 0;
  STEPWELL_RETURN_IF_ERROR(source([&](std::string_view bytes) -> absl::Status {
    written += static_cast<std::int64_t>(bytes.size());
    return written > size ? absl::AbortedError(absl::StrCat(name, " grew while it was read"))
                          : take(bytes);
  }));
  if (written < size) return absl::AbortedError(absl::StrCat(name, " shrank while it was read"));
  return take(TarPadding(size));
}

}  // namespace

absl::Status WriteTraceArchive(const MergePlan& plan, const std::vector<ArchivedTrace>& archived,
                               const TakeBytes& take) {
  STEPWELL_CHECK(archived.size() == plan.inputs.size());
  std::vector<ArchivedFile> files;
  for (const ArchivedTrace& trace : archived) {
    const std::size_t index = files.size();
    files.push_back({.path = ArchivedName(index, trace.name),
                     .machine = plan.inputs[index].machine,
                     .clock = trace.clock});
  }
  const std::string manifest = ManifestOf(plan, files);
  STEPWELL_RETURN_IF_ERROR(WriteEntry(
      kManifestName, std::ssize(manifest), [&](const TakeBytes& taker) { return taker(manifest); },
      take));
  for (std::size_t i = 0; i < files.size(); ++i) {
    STEPWELL_RETURN_IF_ERROR(
        traces::Named(WriteEntry(files[i].path, archived[i].byte_count, archived[i].source, take),
                      archived[i].name));
  }
  return take(TarEnd());
}

}  // namespace stepwell::cli
