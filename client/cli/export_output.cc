#include "client/cli/export_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace stepwell::cli {
namespace {

class StreamOutput final : public ExportOutput {
 public:
  explicit StreamOutput(std::ostream& out) : out_(out) {}

  absl::Status Write(std::string_view text) override {
    errno = 0;
    out_.write(text.data(), static_cast<std::streamsize>(text.size()));
    out_.flush();
    if (out_.good()) return absl::OkStatus();
    if (errno == EPIPE) return absl::OutOfRangeError("nobody reads what is written");
    return absl::ErrnoToStatus(errno == 0 ? EIO : errno, "standard output");
  }
  absl::Status Finish() override { return absl::OkStatus(); }

 private:
  std::ostream& out_;
};

class FileOutput final : public ExportOutput {
 public:
  FileOutput(std::string path, std::string part, int file)
      : path_(std::move(path)), part_(std::move(part)), file_(file) {}
  ~FileOutput() override {
    if (file_ >= 0) close(file_);
    if (!part_.empty()) unlink(part_.c_str());
  }

  absl::Status Write(std::string_view text) override {
    while (!text.empty()) {
      const ssize_t written = write(file_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return absl::ErrnoToStatus(errno, part_);
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    // Some file systems tell only now that there was no room.
    if (fsync(file_) != 0) return absl::ErrnoToStatus(errno, part_);
    if (close(std::exchange(file_, -1)) != 0) return absl::ErrnoToStatus(errno, part_);
    if (rename(part_.c_str(), path_.c_str()) != 0) return absl::ErrnoToStatus(errno, path_);
    part_.clear();
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  std::string part_;  // empty once it has its name
  int file_;
};

// As open(2) would give it.
mode_t ModeOfNewFiles() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

// What `path` names, behind links. kInvalidArgument where that is no file.
absl::StatusOr<std::string> TargetOf(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) return path;
    return absl::ErrnoToStatus(errno, path);
  }
  if (!S_ISREG(found.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is no file: name another for --output"));
  }
  char target[PATH_MAX];
  if (realpath(path.c_str(), target) == nullptr) return absl::ErrnoToStatus(errno, path);
  return std::string(target);
}

}  // namespace

std::unique_ptr<ExportOutput> ExportOutput::ToStream(std::ostream& out) {
  return std::make_unique<StreamOutput>(out);
}

absl::StatusOr<std::unique_ptr<ExportOutput>> ExportOutput::ToFile(const std::string& path) {
  STEPWELL_ASSIGN_OR_RETURN(std::string target, TargetOf(path));
  // Beside it, so that it can be renamed.
  std::string part = target + ".part-XXXXXX";
  const int file = mkostemp(part.data(), O_CLOEXEC);
  if (file < 0) return absl::ErrnoToStatus(errno, path);
  auto output = std::make_unique<FileOutput>(std::move(target), part, file);
  if (fchmod(file, ModeOfNewFiles()) != 0) return absl::ErrnoToStatus(errno, part);
  return output;
}

}  // namespace stepwell::cli
