#include "server/token_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/token_text.h"

namespace stepwell {
namespace {

constexpr std::size_t kTokenBytesMin = 32;
constexpr std::size_t kTokenBytesMax = 512;

// errno, or 0.
int WriteWhole(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return errno;
  const bool is_whole =
      write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(fd) == 0;
  const int error = errno;
  close(fd);
  return is_whole ? 0 : error;
}

// Of an open(2) that failed.
absl::Status NotOpened(int error, const std::string& path) {
  const std::string text = absl::StrCat(path, ": ", std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENXIO:
    // Somebody gave it to another user.
    case EACCES:
    case EPERM:
      return absl::NotFoundError(text);
    default:
      return absl::UnavailableError(text);
  }
}

// Up to what is one byte too many.
absl::StatusOr<std::string> ReadStart(int fd, const std::string& path) {
  std::array<char, kTokenBytesMax + 2> text{};
  ssize_t count = 0;
  do {
    count = read(fd, text.data(), text.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) return absl::UnavailableError(absl::StrCat(path, ": ", std::strerror(errno)));
  return std::string(text.data(), static_cast<std::size_t>(count));
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

absl::StatusOr<std::string> DirectoryOf(const ServeOptions& options, const TokenHome& home) {
  if (!options.data_dir.empty()) return options.data_dir;
  const std::string state = home.state_directories.substr(0, home.state_directories.find(':'));
  if (!options.database_url.empty() && absl::StartsWith(state, "/")) return state;
  return DefaultDataDirectory(home.facts);
}

}  // namespace

TokenHome HomeOfProcess() {
  return {.state_directories = Variable("STATE_DIRECTORY"),
          .facts = {.is_root = geteuid() == 0,
                    .xdg_data_home = Variable("XDG_DATA_HOME"),
                    .home = Variable("HOME")}};
}

absl::StatusOr<std::string> ChooseTokenFile(const ServeOptions& options, const TokenHome& home) {
  if (options.token_file == kNoTokenFile) return "";
  if (!options.token_file.empty()) return options.token_file;
  const bool asks_otherwise =
      options.tls_cert.empty() || !options.tls_client_ca.empty() || options.insecure_allow_remote;
  if (asks_otherwise) return "";
  const auto directory = DirectoryOf(options, home);
  if (!directory.ok()) {
    return absl::FailedPreconditionError(
        "no --token-file, and neither XDG_DATA_HOME nor HOME says where a token may be kept");
  }
  std::error_code error;
  return std::filesystem::absolute(*directory + "/token", error).string();
}

absl::Status MakeDirectoryOf(const std::string& token_file) {
  if (token_file.empty() || access(token_file.c_str(), F_OK) == 0) return absl::OkStatus();
  const std::string directory = std::filesystem::path(token_file).parent_path().string();
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (!error) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(directory, ": ", error.message(),
                   "; the token of this master is to be kept there, which user id ", geteuid(),
                   " may not make: give --token-file"));
}

absl::StatusOr<bool> MakeTokenFile(const std::string& path) {
  if (access(path.c_str(), F_OK) == 0) return false;
  const std::string draft = absl::StrCat(path, ".new-", getpid());
  unlink(draft.c_str());  // of one that was killed, and had our number
  const absl::Cleanup remover = [&draft] { unlink(draft.c_str()); };
  if (const int error = WriteWhole(draft, MakeFileToken() + "\n"); error != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": there is none, and none can be made: ", std::strerror(error),
        "; allowed is a file in a directory that user id ", geteuid(), " may write to"));
  }
  if (link(draft.c_str(), path.c_str()) != 0) {
    if (errno == EEXIST) return false;
    return absl::ErrnoToStatus(errno, path);
  }
  log::Info("token_made", {{"file", path}});
  return true;
}

absl::StatusOr<StoredToken> ReadTokenFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return NotOpened(errno, path);
  const absl::Cleanup closer = [fd] { close(fd); };
  struct stat found {};
  if (fstat(fd, &found) != 0) {
    return absl::UnavailableError(absl::StrCat(path, ": ", std::strerror(errno)));
  }
  if (!S_ISREG(found.st_mode) || (found.st_mode & 0077) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": others than its owner may read it; mode 0600 is expected"));
  }
  STEPWELL_ASSIGN_OR_RETURN(const std::string text, ReadStart(fd, path));
  const absl::string_view token = absl::StripAsciiWhitespace(text);
  if (token.size() < kTokenBytesMin || token.size() > kTokenBytesMax) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": a token of ", kTokenBytesMin, " to ",
                                                      kTokenBytesMax, " bytes is expected"));
  }
  return StoredToken{TokenDigest({token.data(), token.size()}),
                     absl::StrCat(found.st_ino, " ", found.st_size, " ", found.st_mtim.tv_sec, ".",
                                  found.st_mtim.tv_nsec)};
}

}  // namespace stepwell
