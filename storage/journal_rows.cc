#include "storage/journal_rows.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

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

// A row's header, its two numbers, the headers of four lists (20 to 24 bytes each) and of the payload, aligned.
constexpr std::size_t kRowHeadBytes = 176;
// Of a range: its place in the four lists, and the length before its payload.
constexpr std::size_t kRangeHeadBytes =
    sizeof(std::int32_t) + 3 * sizeof(std::int64_t) + kLengthBytes;

std::size_t BytesOf(std::size_t payload_bytes) { return kRangeHeadBytes + payload_bytes; }

// Rows while they fill.
class RowPlanner {
 public:
  // Whether a range of so many bytes still goes into the last row of this trial.
  bool HasRoom(TrialId trial_id, std::size_t payload_bytes) const {
    return !rows_.empty() && rows_.back().trial_id == trial_id &&
           bytes_ + BytesOf(payload_bytes) <= kJournalRowBytes;
  }
  void BeginRow(TrialId trial_id) {
    rows_.push_back({.trial_id = trial_id, .ranges = {}});
    bytes_ = kRowHeadBytes;
  }
  bool HasEmptyRow() const { return !rows_.empty() && rows_.back().ranges.empty(); }
  void Add(const JournalRange& range) {
    bytes_ += BytesOf(range.payload.size());
    rows_.back().ranges.push_back(range);
  }
  std::vector<JournalRowPlan> TakeRows() { return std::move(rows_); }

 private:
  std::vector<JournalRowPlan> rows_;
  std::size_t bytes_ = 0;  // of the last row
};

// As many of its chunks as fit go into the row that is under way, the others into rows of their own.
void AddRanges(const WriterAdvance& advance, RowPlanner& planner) {
  const JournalCut whole = {advance.last_sequence, advance.payload.size()};
  const absl::Span<const JournalCut> cuts =
      advance.cuts.empty() ? absl::MakeConstSpan(&whole, 1) : absl::MakeConstSpan(advance.cuts);
  STEPWELL_CHECK(cuts.back().last_sequence == whole.last_sequence &&
                 cuts.back().payload_end == whole.payload_end);
  std::uint64_t first_sequence = advance.first_sequence;
  std::size_t begin = 0;
  for (std::size_t next = 0; next < cuts.size();) {
    std::size_t end = next;
    while (end < cuts.size() && planner.HasRoom(advance.trial_id, cuts[end].payload_end - begin)) {
      ++end;
    }
    // A chunk that is longer than any row stands alone.
    if (end == next && planner.HasEmptyRow()) ++end;
    if (end > next) {
      const JournalCut& cut = cuts[end - 1];
      const std::string_view payload = advance.payload;
      planner.Add({.advance = &advance,
                   .first_sequence = first_sequence,
                   .last_sequence = cut.last_sequence,
                   .payload = payload.substr(begin, cut.payload_end - begin)});
      first_sequence = cut.last_sequence + 1;
      begin = cut.payload_end;
      next = end;
    }
    if (next < cuts.size()) planner.BeginRow(advance.trial_id);
  }
}

}  // namespace

std::vector<JournalRowPlan> PlanJournalRows(absl::Span<const WriterAdvance* const> advances) {
  RowPlanner planner;
  for (const WriterAdvance* advance : advances) {
    if (advance->last_sequence >= advance->first_sequence) AddRanges(*advance, planner);
  }
  return planner.TakeRows();
}

std::string JoinPayloads(const JournalRowPlan& row) {
  std::size_t bytes = 0;
  for (const JournalRange& range : row.ranges) bytes += kLengthBytes + range.payload.size();
  std::string joined;
  joined.reserve(bytes);
  for (const JournalRange& range : row.ranges) {
    AppendLength(range.payload.size(), joined);
    joined.append(range.payload);
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
