#include "client/agent/sensors/container_claims.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"

namespace stepwell::agent {
namespace {

static_assert(ContainerClaims::kNameBytesMax == sizeof(sockaddr_un::sun_path) - 1);

// Agents that wait for one name.
constexpr int kAskersMax = 128;

bool IsConnected(const FileDescriptor& socket) {
  char byte = 0;
  return recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

// Of root's or of one's own user's; the kernel tells who listens. Any other user would keep a container from being measured
// by taking its name.
bool IsAnAgents(const FileDescriptor& socket) {
  ucred holder{};
  socklen_t size = sizeof(holder);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &holder, &size) != 0) return false;
  return holder.uid == 0 || holder.uid == geteuid();
}

// FNV-1a with 128 bits: no two texts meet by chance.
absl::uint128 HashOf(const std::string& text) {
  constexpr absl::uint128 kPrime = absl::MakeUint128(1ULL << 24, 0x13b);
  absl::uint128 hash = absl::MakeUint128(0x6c62272e07bb0142, 0x62b821756295c58d);
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= kPrime;
  }
  return hash;
}

}  // namespace

std::string ContainerClaims::NameOf(const std::string& trial, const std::string& container) {
  const std::string text = absl::StrCat(trial, "\n", container);
  const std::string plain = absl::StrCat("stepwell-container/", text);
  if (plain.size() <= kNameBytesMax) return plain;
  const absl::uint128 hash = HashOf(text);
  return absl::StrCat("stepwell-container-hash/",
                      absl::Hex(absl::Uint128High64(hash), absl::kZeroPad16),
                      absl::Hex(absl::Uint128Low64(hash), absl::kZeroPad16));
}

bool ContainerClaims::Hold(const std::string& container, absl::Duration now) {
  absl::MutexLock lock(&mu_);
  if (claims_.size() >= kCountMax && !claims_.contains(container)) return false;
  Claim& claim = claims_[container];
  claim.asked_at = now;
  const bool has_name = claim.held && claim.socket.valid();
  if (has_name || now - claim.tried_at < kTryInterval) return claim.held;
  claim.tried_at = now;
  claim.held = Try(container, claim.socket);
  return claim.held;
}

void ContainerClaims::GiveBack(absl::Duration now) {
  absl::MutexLock lock(&mu_);
  std::erase_if(claims_, [&](const auto& entry) { return now - entry.second.asked_at > kKeptFor; });
}

std::size_t ContainerClaims::count() const {
  absl::MutexLock lock(&mu_);
  return claims_.size();
}

bool ContainerClaims::Try(const std::string& container, FileDescriptor& socket) const {
  // It ends with who has the name.
  if (socket.valid() && IsConnected(socket)) return false;
  socket = FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return true;
  const std::string name = NameOf(trial_, container);
  sockaddr_un named{};
  named.sun_family = AF_UNIX;
  // A zero first: no file, gone with its last descriptor.
  std::memcpy(named.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const auto* address = reinterpret_cast<const sockaddr*>(&named);
  if (bind(socket.get(), address, size) == 0 && listen(socket.get(), kAskersMax) == 0) return true;
  // Never accepted: that one agent asks it once.
  if (connect(socket.get(), address, size) == 0 && IsAnAgents(socket)) return false;
  socket.Close();
  return true;
}

}  // namespace stepwell::agent
