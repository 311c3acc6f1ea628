#include "storage/journal_rows.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

constexpr std::size_t kLengthBytes = 4;

void AppendLength(std::size_t length, std::string& out) {
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    out.push_back(static_cast<char>((length >> (8 * i)) & 0xff));
  }
}

std::size_t ReadLength(std::string_view text) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length |= std::size_t{static_cast<std::uint8_t>(text[i])} << (8 * i);
  }
  return length;
}

}  // namespace

std::vector<JournalRowPlan> PlanJournalRows(absl::Span<const WriterAdvance* const> advances) {
  std::vector<JournalRowPlan> rows;
  std::size_t bytes = 0;
  for (const WriterAdvance* advance : advances) {
    if (advance->last_sequence < advance->first_sequence) continue;
    const std::size_t added = kLengthBytes + advance->payload.size();
    if (rows.empty() || rows.back().trial_id != advance->trial_id ||
        bytes + added > kJournalRowBytes) {
      rows.push_back({.trial_id = advance->trial_id, .advances = {}});
      bytes = 0;
    }
    rows.back().advances.push_back(advance);
    bytes += added;
  }
  return rows;
}

std::string JoinPayloads(const JournalRowPlan& row) {
  std::size_t bytes = 0;
  for (const WriterAdvance* advance : row.advances) bytes += kLengthBytes + advance->payload.size();
  std::string joined;
  joined.reserve(bytes);
  for (const WriterAdvance* advance : row.advances) {
    AppendLength(advance->payload.size(), joined);
    joined.append(advance->payload);
  }
  return joined;
}

absl::StatusOr<std::vector<std::string>> SplitPayloads(std::string_view joined, std::size_t count) {
  std::vector<std::string> payloads;
  while (!joined.empty()) {
    const std::size_t length = joined.size() < kLengthBytes ? joined.size() : ReadLength(joined);
    if (joined.size() < kLengthBytes || joined.size() - kLengthBytes < length) {
      return absl::DataLossError(
          absl::StrCat("journal payload ends within range ", payloads.size(), " of ", count));
    }
    payloads.emplace_back(joined.substr(kLengthBytes, length));
    joined.remove_prefix(kLengthBytes + length);
  }
  if (payloads.size() != count) {
    return absl::DataLossError(
        absl::StrCat("journal payload holds ", payloads.size(), " ranges, not ", count));
  }
  return payloads;
}

}  // namespace stepwell
