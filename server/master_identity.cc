#include "server/master_identity.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "base/uuid.h"
#include "server/host_port.h"

namespace stepwell {
namespace {

// machine-id(5): the id itself is not for others, who are told of what is made of it for one purpose.
std::string MachineMark(std::string_view machine_id) {
  Sha256 sha;
  sha.Feed("stepwell master\n");
  sha.Feed(machine_id);
  return absl::BytesToHexString(sha.Finish()).substr(0, 32);
}

}  // namespace

absl::StatusOr<std::string> ReadWholeFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const std::string text = absl::StrCat(path, ": ", std::strerror(errno));
    return errno == ENOENT ? absl::NotFoundError(text) : absl::FailedPreconditionError(text);
  }
  std::string text;
  std::array<char, 4096> block{};
  ssize_t count = 0;
  while ((count = read(fd, block.data(), block.size())) > 0 && text.size() < (1U << 20)) {
    text.append(block.data(), static_cast<std::size_t>(count));
  }
  const int error = errno;
  close(fd);
  if (count < 0)
    return absl::FailedPreconditionError(absl::StrCat(path, ": ", std::strerror(error)));
  return text;
}

absl::Status WriteFileAtomically(const std::string& path, const std::string& text) {
  const std::string beside = absl::StrCat(path, ".", getpid(), ".tmp");
  const auto failed = [&](const std::string& where) {
    const int error = errno;
    unlink(beside.c_str());
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write ", where, ": ", std::strerror(error)));
  };
  // The ready file holds a database URL: for its owner only, also where others may write into its directory.
  unlink(beside.c_str());
  const int fd = open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return failed(path);
  const bool whole = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const bool synced = whole && fsync(fd) == 0;
  close(fd);
  if (!synced) return failed(path);
  if (rename(beside.c_str(), path.c_str()) != 0) return failed(path);
  return absl::OkStatus();
}

absl::StatusOr<std::string> MasterIdOf(const std::string& data_directory) {
  const std::string path = data_directory + "/master-id";
  auto text = ReadWholeFile(path);
  if (text.ok()) {
    const std::string id(absl::StripAsciiWhitespace(*text));
    if (!id.empty()) return id;
  } else if (text.status().code() != absl::StatusCode::kNotFound) {
    return text.status();
  }
  const std::string made = Uuid::Random().ToText();
  STEPWELL_RETURN_IF_ERROR(WriteFileAtomically(path, made + "\n"));
  return made;
}

std::string MasterIdOf(const std::string& host, int port, const std::string& machine_id_file) {
  const auto machine = ReadWholeFile(machine_id_file);
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  const std::string id = machine.ok() ? std::string(absl::StripAsciiWhitespace(*machine)) : "";
  return absl::StrCat(id.empty() ? std::string(name.data()) : MachineMark(id), "@",
                      HostPortText(host, port));
}

absl::StatusOr<std::string> DefaultDataDirectory(const HomeFacts& facts) {
  if (facts.is_root) return "/var/lib/stepwell";
  if (absl::StartsWith(facts.xdg_data_home, "/")) {
    return absl::StrCat(facts.xdg_data_home, "/stepwell");
  }
  if (absl::StartsWith(facts.home, "/")) return absl::StrCat(facts.home, "/.local/share/stepwell");
  return absl::FailedPreconditionError(
      "no --data-dir, and neither XDG_DATA_HOME nor HOME says where data may be kept");
}

absl::StatusOr<std::string> DefaultDataDirectory() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
  };
  return DefaultDataDirectory({.is_root = geteuid() == 0,
                               .xdg_data_home = variable("XDG_DATA_HOME"),
                               .home = variable("HOME")});
}

}  // namespace stepwell
