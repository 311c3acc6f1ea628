#include "server/page_token.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/crc32c.h"

namespace stepwell {
namespace {

constexpr char kVersion = 1;
// Version, fingerprint, checksum.
constexpr std::size_t kFrameBytes = 1 + 4 + 4;

void AppendInt(std::uint64_t value, int bytes, std::string& out) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

std::uint64_t ReadInt(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

absl::Status Refuse(const std::string& field, const char* why) {
  return absl::InvalidArgumentError(absl::StrCat(
      field, ": ", why, "; allowed: empty, or what the answer before gave, with the same query"));
}

}  // namespace

std::uint32_t QueryFingerprint(std::initializer_list<std::string> fields) {
  std::string all;
  for (const std::string& field : fields) absl::StrAppend(&all, field.size(), ":", field);
  return Crc32c(all);
}

std::string MakePageToken(std::uint32_t fingerprint, std::initializer_list<std::int64_t> place) {
  std::string bytes(1, kVersion);
  AppendInt(fingerprint, 4, bytes);
  for (const std::int64_t number : place) AppendInt(static_cast<std::uint64_t>(number), 8, bytes);
  AppendInt(Crc32c(bytes), 4, bytes);
  return absl::WebSafeBase64Escape(bytes);
}

absl::StatusOr<std::vector<std::int64_t>> ReadPageToken(const std::string& field,
                                                        const std::string& token,
                                                        std::uint32_t fingerprint,
                                                        std::size_t number_count) {
  std::string bytes;
  if (token.size() > 1000 || !absl::WebSafeBase64Unescape(token, &bytes) ||
      bytes.size() < kFrameBytes) {
    return Refuse(field, "this is no token of ours");
  }
  const std::string_view all(bytes);
  const std::string_view checked = all.substr(0, all.size() - 4);
  if (ReadInt(all.substr(checked.size())) != Crc32c(checked) || all[0] != kVersion) {
    return Refuse(field, "this is no token of ours");
  }
  if (ReadInt(all.substr(1, 4)) != fingerprint || bytes.size() != kFrameBytes + 8 * number_count) {
    return Refuse(field, "this token belongs to another query");
  }
  std::vector<std::int64_t> place;
  for (std::size_t i = 0; i < number_count; ++i) {
    place.push_back(static_cast<std::int64_t>(ReadInt(all.substr(5 + 8 * i, 8))));
  }
  return place;
}

}  // namespace stepwell
