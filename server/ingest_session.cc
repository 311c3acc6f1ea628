#include "server/ingest_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace stepwell {

IngestSession::IngestSession(const OpenedWriter& opened, Labels labels, TrialSelector asked,
                             Caller caller)
    : opened_(opened),
      labels_(std::move(labels)),
      asked_(std::move(asked)),
      caller_(std::move(caller)),
      next_sequence_(opened.committed_sequence + 1),
      committed_sequence_(opened.committed_sequence) {}

bool IngestSession::IsOtherTrial(const TrialSelector& trial) const {
  if (trial.trial_id != 0) return trial.trial_id != Value(opened_.trial_id);
  const bool asked_by_name = asked_.trial_id == 0 && !asked_.external_id.empty();
  return asked_by_name &&
         (trial.project != asked_.project || trial.external_id != asked_.external_id);
}

Offered IngestSession::Offer(std::uint64_t first_sequence, std::uint64_t last_sequence) {
  STEPWELL_CHECK(first_sequence >= 1 && first_sequence <= last_sequence);
  switch (state_) {
    case State::kFenced:
      return {Offered::kEnded, 0};
    case State::kClosing:
    case State::kClosed:
      // What was taken before the Close may still be repeated.
      return {last_sequence < next_sequence_ ? Offered::kRepeat : Offered::kEnded, 0};
    case State::kOpen:
      break;
  }
  if (last_sequence < next_sequence_) return {Offered::kRepeat, 0};
  if (first_sequence > next_sequence_) return {Offered::kHole, 0};
  const Offered taken{Offered::kTake, next_sequence_};
  next_sequence_ = last_sequence + 1;
  return taken;
}

void IngestSession::Committed(std::uint64_t committed_sequence, std::int64_t bytes) {
  committed_sequence_ = std::max(committed_sequence_, committed_sequence);
  next_sequence_ = std::max(next_sequence_, committed_sequence_ + 1);
  inflight_bytes_ -= bytes;
  STEPWELL_CHECK(inflight_bytes_ >= 0);
}

void IngestSession::Refuse(Complaint why) {
  state_ = State::kFenced;
  refused_ = std::move(why);
}

MaybeComplaint IngestSession::OfferClose(std::uint64_t final_sequence) {
  if (final_sequence >= next_sequence_) {
    return Complaint{
        absl::StatusCode::kFailedPrecondition, "SEQUENCE_HOLE",
        absl::StrCat("close.final_sequence is ", final_sequence, ", the next sequence to come is ",
                     next_sequence_, "; send what is missing, then Close again")};
  }
  if (final_sequence + 1 < next_sequence_) {
    return Invalid("FINAL_SEQUENCE",
                   absl::StrCat("close.final_sequence is ", final_sequence, ", but sequence ",
                                next_sequence_ - 1, " was sent; allowed is the last one sent"));
  }
  if (state_ == State::kOpen) state_ = State::kClosing;
  return std::nullopt;
}

}  // namespace stepwell
