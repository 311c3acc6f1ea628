#include "client/agent/sensors/kernel_text.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace stepwell::agent {
namespace {

// A machine of 4096 processors has a /proc/stat of some 300 KiB.
constexpr std::size_t kBytesMax = 4 << 20;
constexpr std::size_t kNameCountMax = 4096;

absl::Status FromErrno(absl::string_view path, int error) {
  const std::string text = absl::StrCat("/", path, ": ", std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ENODEV:
    case ENXIO:
    case ESRCH:
    case EOPNOTSUPP:
      return absl::NotFoundError(text);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(text);
    default:
      return absl::UnavailableError(text);
  }
}

}  // namespace

std::string KernelText::PathOf(absl::string_view path) const {
  return absl::StrCat(root_, root_.empty() || root_.back() == '/' ? "" : "/", path);
}

absl::StatusOr<std::string> KernelText::Read(absl::string_view path) const {
  const int file = open(PathOf(path).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return FromErrno(path, errno);
  const absl::Cleanup closer = [file] { close(file); };
  std::string text;
  // Most files are a page or less; their true size is not to be had from fstat.
  std::size_t size = 0;
  while (size < kBytesMax) {
    text.resize(size + 4096);
    const ssize_t got = read(file, text.data() + size, 4096);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FromErrno(path, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

absl::StatusOr<std::uint64_t> KernelText::ReadNumber(absl::string_view path) const {
  const absl::StatusOr<std::string> text = Read(path);
  if (!text.ok()) return text.status();
  const std::vector<absl::string_view> words = Words(*text);
  const std::optional<std::uint64_t> number = words.size() == 1 ? Number(words[0]) : std::nullopt;
  if (!number) return Unexpected(path, "no number");
  return *number;
}

bool KernelText::Exists(absl::string_view path) const {
  return access(PathOf(path).c_str(), F_OK) == 0;
}

std::vector<std::string> KernelText::List(absl::string_view path) const {
  std::vector<std::string> names;
  DIR* directory = opendir(PathOf(path).c_str());
  if (directory == nullptr) return names;
  while (const dirent* entry = readdir(directory)) {
    if (names.size() == kNameCountMax) break;
    const absl::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<absl::string_view> Words(absl::string_view line) {
  return absl::StrSplit(line, absl::ByAnyChar(" \t\n"), absl::SkipEmpty());
}

std::optional<std::uint64_t> Number(absl::string_view text) {
  std::uint64_t number = 0;
  if (!absl::SimpleAtoi(text, &number)) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> NumberBehind(absl::string_view text, absl::string_view key) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    absl::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.substr(0, key.size()) != key) continue;
    line.remove_prefix(key.size());
    if (line.empty() || (line[0] != ':' && line[0] != ' ' && line[0] != '\t')) continue;
    line.remove_prefix(1);
    const std::vector<absl::string_view> words = Words(line);
    return words.empty() ? std::nullopt : Number(words[0]);
  }
  return std::nullopt;
}

absl::Status Unexpected(absl::string_view path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("/", path, ": ", what));
}

}  // namespace stepwell::agent
