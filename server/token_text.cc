#include "server/token_text.h"

#include <openssl/crypto.h>
#include <sys/random.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "base/sha256.h"

namespace stepwell {
namespace {

constexpr std::size_t kSecretDigits = 64;

// In digits of 16. Of the kernel, not of a generator that somebody seeds; and of no file: a process that has run out
// of descriptors makes tokens all the same.
std::string Chance(std::size_t byte_count) {
  std::string bytes(byte_count, '\0');
  std::size_t filled = 0;
  while (filled < byte_count) {
    const ssize_t count = getrandom(bytes.data() + filled, byte_count - filled, 0);
    STEPWELL_CHECK(count > 0 || errno == EINTR);
    if (count > 0) filled += static_cast<std::size_t>(count);
  }
  return absl::BytesToHexString(bytes);
}

bool IsDigits(absl::string_view text, std::size_t count) {
  return text.size() == count && std::all_of(text.begin(), text.end(), [](unsigned char byte) {
           return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
         });
}

}  // namespace

NewToken MakeToken() {
  NewToken token;
  token.id = MakeTokenId();
  const std::string secret = MakeSecret();
  token.digest = TokenDigest(secret);
  token.text = absl::StrCat("stepwell_", token.id, "_", secret);
  return token;
}

std::string MakeSecret() { return Chance(kSecretDigits / 2); }
std::string MakeTokenId() { return Chance(kTokenIdDigits / 2); }

std::string MakeFileToken() { return absl::StrCat("stepwell_admin_", MakeSecret()); }

std::optional<TokenParts> SplitToken(std::string_view text_untrusted) {
  absl::string_view text(text_untrusted.data(), text_untrusted.size());
  if (!absl::ConsumePrefix(&text, "stepwell_") || text.size() < kTokenIdDigits + 1) {
    return std::nullopt;
  }
  const absl::string_view id = text.substr(0, kTokenIdDigits);
  const absl::string_view secret = text.substr(kTokenIdDigits + 1);
  if (!IsDigits(id, kTokenIdDigits) || text[kTokenIdDigits] != '_' ||
      !IsDigits(secret, kSecretDigits)) {
    return std::nullopt;
  }
  return TokenParts{{id.data(), id.size()}, {secret.data(), secret.size()}};
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

std::string HeaderOf(std::string_view token) {
  return absl::StrCat("Basic ", absl::Base64Escape(absl::StrCat(
                                    ":", absl::string_view(token.data(), token.size()))));
}

std::string TokenDigest(std::string_view text) {
  Sha256 sha;
  sha.Feed(text);
  return sha.Finish();
}

bool IsSameDigest(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace stepwell
