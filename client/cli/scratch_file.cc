#include "client/cli/scratch_file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"

namespace stepwell::cli {

absl::StatusOr<std::unique_ptr<ScratchFile>> ScratchFile::Make() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) return absl::NotFoundError(absl::StrCat("temporary files: ", error.message()));
  std::string name = (folder / "stepwell-XXXXXX").string();
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int file = mkostemp(name.data(), O_CLOEXEC);
  const int why = errno;
  if (file >= 0) unlink(name.c_str());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (file < 0) return absl::ErrnoToStatus(why, folder.string());
  return std::unique_ptr<ScratchFile>(new ScratchFile(file));
}

ScratchFile::~ScratchFile() { close(file_); }

absl::Status ScratchFile::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return absl::ErrnoToStatus(errno, "a temporary file");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace stepwell::cli
