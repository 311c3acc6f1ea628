#include "server/token_guard.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <random>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/status_macros.h"

namespace stepwell {
namespace {

constexpr absl::Duration kLookEach = absl::Seconds(1);
constexpr std::size_t kTokenBytesMin = 32;
constexpr std::size_t kTokenBytesMax = 512;

std::string DigestOf(std::string_view text) {
  Sha256 sha;
  sha.Feed(text);
  return sha.Finish();
}

// Takes as long wherever they differ.
bool IsSame(const std::string& a, const std::string& b) {
  unsigned char differs = a.size() == b.size() ? 0 : 1;
  for (std::size_t at = 0; at < a.size() && at < b.size(); ++at) {
    differs = static_cast<unsigned char>(differs | (a[at] ^ b[at]));
  }
  return differs == 0;
}

absl::Status MakeFile(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return errno == EEXIST ? absl::OkStatus() : absl::ErrnoToStatus(errno, path);
  const std::string text = MakeToken() + "\n";
  const bool is_whole =
      write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(fd) == 0;
  const int error = errno;
  close(fd);
  if (!is_whole) {
    unlink(path.c_str());
    return absl::ErrnoToStatus(error, path);
  }
  log::Info("token_made", {{"file", path}});
  return absl::OkStatus();
}

}  // namespace

std::string MakeToken() {
  // getrandom(2) below, not a generator that somebody seeds.
  std::random_device chance("/dev/urandom");
  std::string bytes;
  while (bytes.size() < 32) {
    const unsigned word = chance();
    bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  return absl::StrCat("stepwell_admin_", absl::BytesToHexString(bytes));
}

std::string ShownToken(std::string_view authorization) {
  absl::string_view text(authorization.data(), authorization.size());
  const auto space = text.find(' ');
  if (space == absl::string_view::npos) return "";
  const absl::string_view form = text.substr(0, space);
  text = absl::StripAsciiWhitespace(text.substr(space));
  if (absl::EqualsIgnoreCase(form, "bearer")) return std::string(text);
  std::string plain;
  if (!absl::EqualsIgnoreCase(form, "basic") || !absl::Base64Unescape(text, &plain)) return "";
  const auto colon = plain.find(':');
  return colon == std::string::npos ? "" : plain.substr(colon + 1);
}

absl::StatusOr<std::shared_ptr<TokenGuard>> TokenGuard::Open(const std::string& path,
                                                             const Clock& clock) {
  STEPWELL_RETURN_IF_ERROR(MakeFile(path));
  std::shared_ptr<TokenGuard> guard(new TokenGuard(path, clock));
  const absl::MutexLock lock(&guard->mu_);
  STEPWELL_ASSIGN_OR_RETURN(guard->stored_, guard->Read());
  guard->looked_ = clock.Monotonic();
  return guard;
}

absl::StatusOr<TokenGuard::Stored> TokenGuard::Read() const {
  const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, path_);
  const absl::Cleanup closer = [fd] { close(fd); };
  struct stat found {};
  if (fstat(fd, &found) != 0) return absl::ErrnoToStatus(errno, path_);
  if (!S_ISREG(found.st_mode) || (found.st_mode & 0077) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": others than its owner may read it; mode 0600 is expected"));
  }
  std::array<char, kTokenBytesMax + 2> text{};
  const ssize_t count = read(fd, text.data(), text.size());
  if (count < 0) return absl::ErrnoToStatus(errno, path_);
  const absl::string_view token =
      absl::StripAsciiWhitespace(absl::string_view(text.data(), static_cast<std::size_t>(count)));
  if (token.size() < kTokenBytesMin || token.size() > kTokenBytesMax) {
    return absl::FailedPreconditionError(absl::StrCat(
        path_, ": a token of ", kTokenBytesMin, " to ", kTokenBytesMax, " bytes is expected"));
  }
  return Stored{DigestOf({token.data(), token.size()}),
                absl::StrCat(found.st_ino, " ", found.st_size, " ", found.st_mtim.tv_sec, ".",
                             found.st_mtim.tv_nsec)};
}

bool TokenGuard::Allows(std::string_view authorization) {
  const std::string shown = ShownToken(authorization);
  const absl::MutexLock lock(&mu_);
  LookAgain();
  return !shown.empty() && !stored_.digest.empty() && IsSame(DigestOf(shown), stored_.digest);
}

void TokenGuard::LookAgain() {
  if (clock_.Monotonic() - looked_ < kLookEach) return;
  looked_ = clock_.Monotonic();
  absl::StatusOr<Stored> read = Read();
  if (read.ok()) {
    if (read->stamp != stored_.stamp) log::Info("token_taken", {{"file", path_}});
    stored_ = *std::move(read);
    is_gone_ = false;
    return;
  }
  // Who takes the file away, or spoils it, means it: nobody has the token of before any more.
  if (!is_gone_) log::Error("token_gone", {{"why", read.status().message()}});
  is_gone_ = true;
  stored_ = {};
}

}  // namespace stepwell
