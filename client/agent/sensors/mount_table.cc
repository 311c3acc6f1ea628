#include "client/agent/sensors/mount_table.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "client/agent/sensors/kernel_text.h"

namespace stepwell::agent {
namespace {

constexpr char kMountinfo[] = "proc/self/mountinfo";
constexpr std::size_t kMountCountMax = 64;

// "\040" and the like.
std::string Unescape(absl::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](std::size_t at) { return text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && i + 3 < text.size() && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                 (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

template <std::size_t size>
bool IsOneOf(absl::string_view text, const std::array<absl::string_view, size>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

std::optional<Mount::Where> WhereIs(absl::string_view type, absl::string_view source,
                                    absl::string_view path) {
  static constexpr std::array<absl::string_view, 4> kImages = {"squashfs", "iso9660", "udf",
                                                               "erofs"};
  static constexpr std::array<absl::string_view, 9> kServers = {
      "nfs", "nfs4", "lustre", "gpfs", "cifs", "smb3", "ceph", "beegfs", "afs"};
  if (IsOneOf(type, kServers)) return Mount::Where::kServer;
  const bool on_disk = absl::StartsWith(source, "/dev/") && !IsOneOf(type, kImages) &&
                       !absl::StartsWith(type, "fuse");
  if (on_disk || path == "/") return Mount::Where::kLocal;
  return std::nullopt;
}

struct Line {
  std::string device;
  std::optional<Mount::Where> where;
};

}  // namespace

absl::StatusOr<std::vector<Mount>> ParseMounts(absl::string_view mountinfo) {
  // What is mounted over hides what was there before: the last line of a path is the visible one.
  std::map<std::string, Line> line_by_path;
  for (const absl::string_view line : absl::StrSplit(mountinfo, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = Words(line);
    const auto dash = std::find(words.begin(), words.end(), "-");
    // Type, source and options; a source may be empty.
    if (words.size() < 9 || words.end() - dash < 3) {
      return Unexpected(kMountinfo, "a line is too short");
    }
    const std::string path = Unescape(words[4]);
    line_by_path[path] = {std::string(words[2]), WhereIs(dash[1], dash[2], path)};
  }
  // A bind mount shows the same device again.
  std::map<std::string, Mount> mount_by_device;
  for (const auto& [path, line] : line_by_path) {
    if (!line.where) continue;
    const auto [known, is_new] = mount_by_device.try_emplace(line.device, Mount{path, *line.where});
    if (!is_new && path.size() < known->second.path.size()) known->second = {path, *line.where};
  }
  std::vector<Mount> mounts;
  for (const auto& [device, mount] : mount_by_device) mounts.push_back(mount);
  std::sort(mounts.begin(), mounts.end(),
            [](const Mount& a, const Mount& b) { return a.path < b.path; });
  if (mounts.size() > kMountCountMax) mounts.resize(kMountCountMax);
  return mounts;
}

}  // namespace stepwell::agent
