#include "client/agent/sensors/container_claims.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"

namespace stepwell::agent {
namespace {

static_assert(ContainerClaims::kNameBytesMax == sizeof(sockaddr_un::sun_path) - 1);

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
  if (claim.held || now - claim.tried_at < kTryInterval) return claim.held;
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
  FileDescriptor file(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!file.valid()) return true;
  const std::string name = NameOf(trial_, container);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // A zero first: no file, gone with its last descriptor.
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(file.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    return errno != EADDRINUSE;
  }
  socket = std::move(file);
  return true;
}

}  // namespace stepwell::agent
