#include "storage/advance_rules.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace stepwell {
namespace {

std::string NameOf(const WriterAdvance& advance) {
  return absl::StrCat("trial ", Value(advance.trial_id), " writer ", Value(advance.writer_no));
}

absl::Status CheckAdvance(const WriterAdvance& advance) {
  // What only closes begins one behind the last.
  if (advance.first_sequence == 0 || advance.first_sequence - 1 > kSequenceMax ||
      advance.last_sequence > kSequenceMax || advance.generation > kSequenceMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        NameOf(advance), ": sequences ", advance.first_sequence, " to ", advance.last_sequence,
        " of generation ", advance.generation, ": allowed are 1 to 2^63 - 2"));
  }
  if (advance.last_sequence + 1 < advance.first_sequence ||
      (OnlyCloses(advance) && !advance.closing.has_value())) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(advance), ": sequences ", advance.first_sequence, " to ",
                     advance.last_sequence, ": an empty range is for a Close only"));
  }
  for (const Gap& gap : advance.gaps) {
    if (gap.reason.find('\0') != std::string::npos ||
        gap.metric_group.find('\0') != std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat(NameOf(advance), ": a gap's text holds a NUL byte"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckGroup(const CommitGroupRequest& request) {
  std::vector<std::pair<TrialId, WriterNo>> keys;
  for (const WriterAdvance& advance : request.advances) {
    STEPWELL_RETURN_IF_ERROR(CheckAdvance(advance));
    keys.emplace_back(advance.trial_id, advance.writer_no);
  }
  std::sort(keys.begin(), keys.end());
  if (const auto twice = std::adjacent_find(keys.begin(), keys.end()); twice != keys.end()) {
    return absl::InvalidArgumentError(absl::StrCat("trial ", Value(twice->first), " writer ",
                                                   Value(twice->second),
                                                   ": two entries in one commit group"));
  }
  return absl::OkStatus();
}

AdvanceResult JudgeAdvance(const WriterAdvance& advance,
                           const std::optional<WriterProgress>& stored) {
  if (!stored.has_value()) return {AdvanceOutcome::kFenced, 0};
  const std::uint64_t committed = stored->committed_sequence;
  if (stored->generation != advance.generation) return {AdvanceOutcome::kFenced, committed};
  const bool open = stored->state == WriterState::kOpen;
  if (open && committed == advance.first_sequence - 1) {
    return {AdvanceOutcome::kCommitted, advance.last_sequence};
  }
  // A Close says where the writer ends: one that ends elsewhere is no repeat.
  if (OnlyCloses(advance) ? committed == advance.last_sequence
                          : committed >= advance.last_sequence) {
    return {AdvanceOutcome::kRepeat, committed};
  }
  if (!open && committed == advance.first_sequence - 1) return {AdvanceOutcome::kFenced, committed};
  return {AdvanceOutcome::kMismatch, committed};
}

bool RepeatCloses(const WriterAdvance& advance, const WriterProgress& stored) {
  return advance.closing.has_value() && stored.state == WriterState::kOpen &&
         stored.generation == advance.generation &&
         stored.committed_sequence == advance.last_sequence;
}

bool ShowsCommitted(const WriterAdvance& advance, const WriterProgress& stored) {
  if (stored.committed_sequence < advance.last_sequence) return false;
  // Nobody else closes this generation; if another one lives by now, the Close does not matter.
  return !OnlyCloses(advance) || stored.generation != advance.generation ||
         stored.state != WriterState::kOpen;
}

}  // namespace stepwell
