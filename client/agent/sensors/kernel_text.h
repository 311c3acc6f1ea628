// KernelText: the small text files by which the kernel shows its counters, below a root that is "/"
// or a fixture's directory. Reading blocks as the file does: those of proc, sys and cgroup do not,
// unless somebody laid another file over one (lxcfs does).
// Thread-compatible.
//
//   const KernelText kernel("/");
//   STEPWELL_ASSIGN_OR_RETURN(const std::string text, kernel.Read("proc/meminfo"));
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace stepwell::agent {

class KernelText {
 public:
  explicit KernelText(std::string root) : root_(std::move(root)) {}

  const std::string& root() const { return root_; }
  std::string PathOf(absl::string_view path) const;

  // Errors name the path without the root: kNotFound where the kernel does not show it (a process
  // that is gone is such a one), kPermissionDenied where it may not be read, kUnavailable else.
  absl::StatusOr<std::string> Read(absl::string_view path) const;
  // A file that holds one number.
  absl::StatusOr<std::uint64_t> ReadNumber(absl::string_view path) const;
  bool Exists(absl::string_view path) const;
  // Names in a directory, sorted, without "." and ".."; empty where there is none.
  std::vector<std::string> List(absl::string_view path) const;

 private:
  const std::string root_;
};

// Separated by blanks.
std::vector<absl::string_view> Words(absl::string_view line);
std::optional<std::uint64_t> Number(absl::string_view text);
// The number behind `key` in lines of "key number ..." or "key: number ...".
std::optional<std::uint64_t> NumberBehind(absl::string_view text, absl::string_view key);
// "path: what", kDataLoss: the text is not as the kernel's documentation has it.
absl::Status Unexpected(absl::string_view path, absl::string_view what);

}  // namespace stepwell::agent
