#include "server/follow_place.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/status_macros.h"

namespace stepwell {
namespace {

constexpr char kVersion = 1;
// Version; database; trial, log, index, time; checksum.
constexpr std::size_t kFrameBytes = 1 + 16 + 4 * 8 + 4;
constexpr std::size_t kVarintBytesMax = 10;
constexpr std::size_t kCursorBytesMax =
    (kFrameBytes + (kFollowWritersMax + 1) * kVarintBytesMax) / 3 * 4 + 4;

void AppendFixed(std::uint64_t value, int bytes, std::string& out) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

void AppendVarint(std::uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

std::uint64_t TakeFixed(std::string_view& in, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(in[i]);
  in.remove_prefix(bytes);
  return value;
}

bool TakeVarint(std::string_view& in, std::uint64_t& value) {
  value = 0;
  for (std::size_t i = 0; i < kVarintBytesMax && i < in.size(); ++i) {
    const auto byte = static_cast<unsigned char>(in[i]);
    value |= std::uint64_t{byte & 0x7Fu} << (7 * i);
    if (byte >= 0x80) continue;
    in.remove_prefix(i + 1);
    return true;
  }
  return false;
}

absl::Status Refuse(const char* why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "cursor: ", why, "; allowed: empty, or what a message of FollowSamples gave for this trial"));
}

// The bytes without their checksum.
absl::StatusOr<std::string> Unwrap(const std::string& text) {
  std::string bytes;
  if (text.size() > kCursorBytesMax || !absl::WebSafeBase64Unescape(text, &bytes) ||
      bytes.size() < kFrameBytes) {
    return Refuse("this is no cursor of ours");
  }
  std::string_view checksum = std::string_view(bytes).substr(bytes.size() - 4);
  if (TakeFixed(checksum, 4) != Crc32c(std::string_view(bytes).substr(0, bytes.size() - 4))) {
    return Refuse("this is no cursor of ours");
  }
  bytes.resize(bytes.size() - 4);
  if (bytes[0] != kVersion) return Refuse("this cursor is of another version of the master");
  return bytes;
}

}  // namespace

std::uint64_t FollowPlace::SequenceOf(WriterNo writer_no) const {
  const auto at = static_cast<std::size_t>(Value(writer_no)) - 1;
  return at < sequences_.size() ? sequences_[at] : 0;
}

bool FollowPlace::Pass(WriterNo writer_no, std::uint64_t sequence) {
  if (Value(writer_no) < 1 || Value(writer_no) > kFollowWritersMax) return false;
  const auto at = static_cast<std::size_t>(Value(writer_no)) - 1;
  if (at >= sequences_.size()) sequences_.resize(at + 1);
  sequences_[at] = std::max(sequences_[at], sequence);
  return true;
}

std::string FollowPlace::ToCursor(const Uuid& database, TrialId trial_id) const {
  std::string bytes(1, kVersion);
  bytes.reserve(kFrameBytes + 10 + 4 * sequences_.size());
  bytes += database.ToBytes();
  AppendFixed(static_cast<std::uint64_t>(Value(trial_id)), 8, bytes);
  AppendFixed(log_id, 8, bytes);
  AppendFixed(log_index, 8, bytes);
  AppendFixed(static_cast<std::uint64_t>(received_time_us), 8, bytes);
  AppendVarint(sequences_.size(), bytes);
  for (const std::uint64_t sequence : sequences_) AppendVarint(sequence, bytes);
  AppendFixed(Crc32c(bytes), 4, bytes);
  return absl::WebSafeBase64Escape(bytes);
}

absl::StatusOr<FollowPlace> FollowPlace::FromCursor(const std::string& text_untrusted,
                                                    const Uuid& database, TrialId trial_id) {
  STEPWELL_ASSIGN_OR_RETURN(const std::string bytes, Unwrap(text_untrusted));
  std::string_view rest(bytes);
  rest.remove_prefix(1);
  FollowPlace place;
  place.is_of_another_database = rest.substr(0, 16) != database.ToBytes();
  rest.remove_prefix(16);
  if (TakeFixed(rest, 8) != static_cast<std::uint64_t>(Value(trial_id))) {
    return Refuse("this cursor belongs to another trial");
  }
  place.log_id = TakeFixed(rest, 8);
  place.log_index = TakeFixed(rest, 8);
  place.received_time_us = static_cast<std::int64_t>(TakeFixed(rest, 8));
  std::uint64_t count = 0;
  if (!TakeVarint(rest, count) || count > kFollowWritersMax) {
    return Refuse("this is no cursor of ours");
  }
  place.sequences_.resize(count);
  for (std::uint64_t& sequence : place.sequences_) {
    if (!TakeVarint(rest, sequence)) return Refuse("this is no cursor of ours");
  }
  if (!rest.empty()) return Refuse("this is no cursor of ours");
  return place;
}

}  // namespace stepwell
