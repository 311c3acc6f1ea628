#include "server/http/inner_peer.h"

#include "base/uuid.h"
#include "server/token_text.h"

namespace stepwell {
namespace {

const std::string& Word() {
  static const std::string* word = new std::string(Uuid::Random().ToText() + " ");
  return *word;
}

}  // namespace

std::string InnerPeerText(std::string_view address) { return Word() + std::string(address); }

std::optional<std::string> InnerPeerOf(std::string_view text_untrusted) {
  if (!IsSameDigest(text_untrusted.substr(0, Word().size()), Word())) return std::nullopt;
  return std::string(text_untrusted.substr(Word().size()));
}

}  // namespace stepwell
