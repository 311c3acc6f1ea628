// TokenText: tokens as texts: made, taken apart, found in headers, compared. A core.
//
//   const NewToken token = MakeToken();       // token.text is told once, token.digest is kept
//   if (const auto parts = SplitToken(ShownToken(header))) ...
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stepwell {

inline constexpr int kTokenIdDigits = 12;

struct NewToken {
  std::string id;      // 12 digits of 16
  std::string digest;  // SHA-256 of the secret
  std::string text;    // stepwell_<id>_<secret>: 256 bits of chance in 64 digits
};
NewToken MakeToken();
// What makes one nobody else's: 256 bits of chance in 64 digits. And an id alone.
std::string MakeSecret();
std::string MakeTokenId();

// "stepwell_admin_" and 256 bits of chance: what a file is begun with.
std::string MakeFileToken();

// stepwell_<id>_<secret>, as MakeToken makes them; borrowed from the text.
struct TokenParts {
  std::string_view id;
  std::string_view secret;
};
std::optional<TokenParts> SplitToken(std::string_view text);

// What an Authorization header shows: "Bearer TOKEN", or "Basic" with the token as password, as browsers ask
// for it. Empty where it is in no form that is known.
std::string ShownToken(std::string_view authorization);
// As such a header, of bytes that each metadata takes.
std::string HeaderOf(std::string_view token);

std::string TokenDigest(std::string_view text);
// Takes as long wherever they differ; where one is longer, which is no secret, no time.
bool IsSameDigest(std::string_view a, std::string_view b);

}  // namespace stepwell
