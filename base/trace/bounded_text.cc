#include "base/trace/bounded_text.h"

#include "base/sha256.h"

namespace stepwell {
namespace {

constexpr std::string_view kMissing = "...";

}  // namespace

std::string CutText(std::string_view text) {
  if (text.size() <= kTraceTextBytesMax) return std::string(text);
  std::size_t end = kTraceTextBytesMax - kMissing.size();
  const auto is_inside = [&] { return (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U; };
  while (end > 0 && is_inside()) --end;
  return std::string(text.substr(0, end)).append(kMissing);
}

std::string KeyOfText(std::string_view text) {
  if (text.size() <= kTraceTextBytesMax) return std::string(text);
  Sha256 sha;
  sha.Feed(text);
  // Longer than any text that is its own key.
  return std::string(text.substr(0, kTraceTextBytesMax)).append(sha.Finish());
}

}  // namespace stepwell
