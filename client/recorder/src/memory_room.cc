#include "client/recorder/src/memory_room.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "client/recorder/src/unique_fd.h"

namespace stepwell::recorder {
namespace {

// What version 1 says instead is just below 2^63.
constexpr std::uint64_t kLimitMax = std::uint64_t{1} << 60;

struct Version {
  const char* folder;  // below the mount
  const char* limit;
  const char* usage;
  // Of memory.stat: pages of files that are no tmpfs's.
  std::string_view cached[2];
};
constexpr Version kOne = {"/memory",
                          "/memory.limit_in_bytes",
                          "/memory.usage_in_bytes",
                          {"total_inactive_file ", "total_active_file "}};
constexpr Version kTwo = {"", "/memory.max", "/memory.current", {"inactive_file ", "active_file "}};

std::string ReadText(const std::string& path) {
  char text[8192];  // memory.stat has 2 to 3 KiB
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t bytes = file.get() < 0 ? 0 : read(file.get(), text, sizeof(text));
  return {text, static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))};
}

// The number that `text` begins with; none for "max".
std::optional<std::uint64_t> NumberOf(std::string_view text) {
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

std::uint64_t ValueOf(std::string_view lines, std::string_view key) {
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    if (lines.starts_with(key)) return NumberOf(lines.substr(key.size())).value_or(0);
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
  }
  return 0;
}

std::uint64_t RoomOf(const std::string& folder, const Version& version) {
  const auto limit = NumberOf(ReadText(folder + version.limit));
  const auto usage = NumberOf(ReadText(folder + version.usage));
  if (!limit || !usage || *limit >= kLimitMax) return MemoryRoom::kUnlimited;
  const std::string stat = ReadText(folder + "/memory.stat");
  const std::uint64_t cached = ValueOf(stat, version.cached[0]) + ValueOf(stat, version.cached[1]);
  const std::uint64_t taken = *usage - std::min(*usage, cached);
  return *limit - std::min(*limit, taken);
}

// Of the process's own cgroup and of all around it, as far as they are seen: a container's mount often
// begins at its own.
std::uint64_t LeastRoom(const std::string& mount, std::string path, const Version& version) {
  if (path == "/" || path.find("/..") != std::string::npos) path.clear();
  std::uint64_t least = MemoryRoom::kUnlimited;
  for (;;) {
    least = std::min(least, RoomOf(mount + version.folder + path, version));
    const std::size_t parent = path.rfind('/');
    if (parent == std::string::npos) return least;
    path.resize(parent);
  }
}

bool HasMemory(std::string_view controllers) {
  while (!controllers.empty()) {
    const std::size_t end = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, end) == "memory") return true;
    controllers.remove_prefix(std::min(end + 1, controllers.size()));
  }
  return false;
}

}  // namespace

std::uint64_t MemoryRoom::Bytes() const {
  const std::string text = ReadText(cgroups_of_process_);
  std::uint64_t least = MemoryRoom::kUnlimited;
  // Lines are "4:memory:/path" of version 1, "0::/path" of version 2.
  for (std::string_view lines = text; !lines.empty();) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (HasMemory(controllers)) least = std::min(least, LeastRoom(mount_, path, kOne));
    if (controllers.empty()) least = std::min(least, LeastRoom(mount_, path, kTwo));
  }
  return least;
}

}  // namespace stepwell::recorder
