// ExportOutput: where an export goes: a stream, or a file that has its name only once it is whole.
// Confined to one thread.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto output, ExportOutput::ToFile("run.csv"));
//   STEPWELL_RETURN_IF_ERROR(output->Write(text));
//   STEPWELL_RETURN_IF_ERROR(output->Finish());   // run.csv is there now
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stepwell::cli {

class ExportOutput {
 public:
  // `out` outlives it.
  static std::unique_ptr<ExportOutput> ToStream(std::ostream& out);
  // Writes beside `path`, which is replaced at the end; through a link where it is one. Fails where
  // `path` is there and no file.
  static absl::StatusOr<std::unique_ptr<ExportOutput>> ToFile(const std::string& path);

  // Without Finish nothing is left of a file.
  virtual ~ExportOutput() = default;

  // kOutOfRange: nobody reads any more (a closed pipe). REQUIRES: SIGPIPE is ignored.
  [[nodiscard]] virtual absl::Status Write(std::string_view text) = 0;
  // All is on the disk, under its name.
  [[nodiscard]] virtual absl::Status Finish() = 0;
};

}  // namespace stepwell::cli
