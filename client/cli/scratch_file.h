// ScratchFile: bytes on the disk without a name: nothing is left of them however the process ends. Confined to
// one thread.
//
//   STEPWELL_ASSIGN_OR_RETURN(const auto file, ScratchFile::Make());   // before any thread is started
//   STEPWELL_RETURN_IF_ERROR(file->Write(bytes));
//   pread(file->descriptor(), ...);
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stepwell::cli {

class ScratchFile {
 public:
  // Where temporary files go (TMPDIR, else /tmp). It has a name for a moment, for which this thread takes no signals:
  // another one might.
  static absl::StatusOr<std::unique_ptr<ScratchFile>> Make();
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  // Behind what was written before.
  [[nodiscard]] absl::Status Write(std::string_view bytes);
  // Open for reading, as long as this lives.
  int descriptor() const { return file_; }

 private:
  explicit ScratchFile(int file) : file_(file) {}
  const int file_;
};

}  // namespace stepwell::cli
