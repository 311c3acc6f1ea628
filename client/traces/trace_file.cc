#include "client/traces/trace_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace stepwell::traces {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

absl::Status Unread(const std::string& path) {
  if (errno == EISDIR) {
    return absl::NotFoundError(absl::StrCat(path, " is a directory: name the traces in it"));
  }
  return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
}

}  // namespace

TraceSource SourceOfFile(std::string path) {
  return [path = std::move(path)](const TakeBytes& take) -> absl::Status {
    const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "re"));
    if (file == nullptr) return Unread(path);
    std::vector<char> piece(kPieceBytes);
    while (true) {
      const std::size_t count = std::fread(piece.data(), 1, piece.size(), file.get());
      if (count < piece.size() && std::ferror(file.get()) != 0) return Unread(path);
      if (count > 0) {
        STEPWELL_RETURN_IF_ERROR(Annotate(take(std::string_view(piece.data(), count)), path));
      }
      if (count < piece.size()) return absl::OkStatus();
    }
  };
}

absl::Status Named(const absl::Status& status, const std::string& path) {
  // What the source says names it already.
  if (status.ok() || absl::StartsWith(status.message(), path)) return status;
  return Annotate(status, path);
}

absl::StatusOr<TraceForm> ReadTraceFile(const std::string& path, TraceSplitter::Takers takers) {
  absl::StatusOr<TraceForm> form = ReadTrace(SourceOfFile(path), std::move(takers));
  if (!form.ok()) return Named(form.status(), path);
  return form;
}

}  // namespace stepwell::traces
