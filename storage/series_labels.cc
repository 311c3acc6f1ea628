#include "storage/series_labels.h"

#include <openssl/sha.h>

#include <array>
#include <cstdint>

#include "absl/strings/str_format.h"

namespace stepwell {
namespace {

void AppendQuoted(const std::string& text, std::string& out) {
  out.push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned char>(c));
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

}  // namespace

std::string LabelsJson(const Labels& labels) {
  std::string json = "{";
  for (const auto& [name, value] : labels) {
    if (json.size() > 1) json.push_back(',');
    AppendQuoted(name, json);
    json.push_back(':');
    AppendQuoted(value, json);
  }
  json.push_back('}');
  return json;
}

std::string LabelsHash(const Labels& labels) {
  constexpr std::size_t kHashBytes = 16;
  std::string text;
  for (const auto& [name, value] : labels) {
    text.append(name).push_back('\0');
    text.append(value).push_back('\0');
  }
  std::array<std::uint8_t, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const std::uint8_t*>(text.data()), text.size(), digest.data());
  return std::string(reinterpret_cast<const char*>(digest.data()), kHashBytes);
}

}  // namespace stepwell
