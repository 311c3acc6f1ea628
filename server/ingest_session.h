// IngestSession: one writer as one stream holds it: which sequence comes next, what is on its way
// to the database, whether it may go on. Step 6 of a sample's line. Confined: IngestStream locks.
//
//   switch (session.Offer(chunk.sequence(), chunk.sequence()).kind) { case Offered::kTake: ... }
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "base/uuid.h"
#include "server/caller.h"
#include "server/complaint.h"
#include "server/ref_table.h"
#include "storage/ingest_store.h"

namespace stepwell {

struct Offered {
  enum Kind {
    kTake,    // the next sequence: store first..last
    kRepeat,  // already taken; acked when it is committed
    kHole,    // something before it is missing
    kEnded,   // this session takes nothing any more
  };
  Kind kind = kEnded;
  // For kTake: from here on; a range may overlap what was taken.
  std::uint64_t first_sequence = 0;
};

class IngestSession {
 public:
  enum class State { kOpen, kClosing, kClosed, kFenced };

  // As the database answered; `labels` are those of all its series, `asked` the trial as the client
  // named it.
  // `caller`: by whose token.
  IngestSession(const OpenedWriter& opened, Labels labels, TrialSelector asked = {},
                Caller caller = nullptr);

  // Whether an Open that names `trial` means another trial than this session's, as far as names tell.
  bool IsOtherTrial(const TrialSelector& trial) const;

  // REQUIRES: 1 <= first <= last. Moves the next sequence on kTake.
  Offered Offer(std::uint64_t first_sequence, std::uint64_t last_sequence);
  // Counts what kTake put on its way; Committed takes it off.
  void Queued(std::int64_t bytes) { inflight_bytes_ += bytes; }
  void Committed(std::uint64_t committed_sequence, std::int64_t bytes);
  // After a Close was queued, nothing more is taken.
  MaybeComplaint OfferClose(std::uint64_t final_sequence);
  void CloseCommitted() { state_ = State::kClosed; }
  void Fenced() { state_ = State::kFenced; }
  // Its trial takes nothing any more; `why` is what its client is told from now on.
  void Refuse(Complaint why);
  const MaybeComplaint& refused() const { return refused_; }

  State state() const { return state_; }
  TrialId trial_id() const { return opened_.trial_id; }
  WriterNo writer_no() const { return opened_.writer_no; }
  std::int32_t attempt() const { return opened_.attempt; }
  std::uint64_t generation() const { return opened_.generation; }
  const Labels& labels() const { return labels_; }
  const Caller& caller() const { return caller_; }
  void SetCaller(Caller caller) { caller_ = std::move(caller); }
  const TrialSelector& asked() const { return asked_; }
  std::uint64_t next_sequence() const { return next_sequence_; }
  std::uint64_t committed_sequence() const { return committed_sequence_; }
  std::int64_t inflight_bytes() const { return inflight_bytes_; }
  RefTable& refs() { return refs_; }
  const RefTable& refs() const { return refs_; }

 private:
  const OpenedWriter opened_;
  const Labels labels_;
  const TrialSelector asked_;
  Caller caller_;
  State state_ = State::kOpen;
  std::uint64_t next_sequence_;
  std::uint64_t committed_sequence_;
  std::int64_t inflight_bytes_ = 0;
  MaybeComplaint refused_;
  RefTable refs_;
};

}  // namespace stepwell
