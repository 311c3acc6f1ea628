#include "client/agent/sensors/container_claims.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"

namespace stepwell::agent {
namespace {

// Two checksums of 32 bits, of different texts.
std::string NameOf(const std::string& trial, const std::string& container) {
  const std::string text = absl::StrCat(trial, "\n", container);
  return absl::StrCat("stepwell-container/", absl::Hex(Crc32c(text), absl::kZeroPad8),
                      absl::Hex(Crc32c(text + text), absl::kZeroPad8));
}

}  // namespace

bool ContainerClaims::Hold(const std::string& container, absl::Duration now) {
  absl::MutexLock lock(&mu_);
  Claim& claim = claims_[container];
  if (claim.held || now - claim.tried_at < kTryInterval) return claim.held;
  claim.tried_at = now;
  claim.held = Try(container, claim.socket);
  return claim.held;
}

bool ContainerClaims::Try(const std::string& container, FileDescriptor& socket) const {
  FileDescriptor file(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!file.valid()) return true;
  const std::string name = NameOf(trial_, container);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // A zero first: no file, gone with its last descriptor.
  const std::size_t bytes = std::min(name.size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path + 1, name.data(), bytes);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  if (bind(file.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    return errno != EADDRINUSE;
  }
  socket = std::move(file);
  return true;
}

}  // namespace stepwell::agent
