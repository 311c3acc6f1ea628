// Spool: a writer's sealed frames on disk, the queue between the rings and the stream. It gives
// the sequences, keeps what is not acked within a bound, and keeps the newest acked part so that a
// restored master can be told again. Format and rules: docs/spool.md.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto spool, Spool::Open(std::move(directory), options, clock));
//   STEPWELL_RETURN_IF_ERROR(spool->AppendFrames(sealed, checkpoint));
//   STEPWELL_ASSIGN_OR_RETURN(SpoolItem item, spool->Read(sequence));   // sender thread
//
// Thread-safe, with one caller of Append*, Sync and Trim at a time (the agent's loop). No lock is
// held while a file is read or written.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "client/agent/file_descriptor.h"
#include "client/agent/ready_set.h"
#include "client/agent/segment_budget.h"
#include "client/agent/spool_record.h"
#include "client/agent/spool_shares.h"

namespace stepwell::agent {

// What a sequence holds.
using SpoolItem = std::variant<Frame, GapSpan>;

class Spool {
 public:
  // What is taken over, whoever wrote it. Of segments, more than the bound has of the smallest that are filled, as a rule.
  static constexpr std::size_t kSegmentCountMax = 4096;
  // More than an agent makes (SeriesCatalog).
  static constexpr std::size_t kDefinitionCountMax = 10'000;
  static constexpr std::size_t kDefinitionsBytesMax = 16 << 20;
  // Of what claims to be a record and is none: of all segments together, for each may be made of that.
  static constexpr std::size_t kFalseBytesMax = 64 << 20;
  // More than damage makes. Beyond, neighbours become one, with what lies between them.
  static constexpr std::size_t kGapCountMax = 10'000;

  struct Options {
    Uuid writer;
    // All segments together. Past it the oldest whole segment goes, as a gap SPOOL_FULL. Until
    // SetBounds says otherwise.
    std::int64_t bytes_max = std::int64_t{1} << 30;
    std::int64_t segment_bytes_max = 16 << 20;
    // Segments that nobody acked go, too, as a gap SPOOL_FULL, once nothing was written to them for so
    // long: those of earlier agents by the wall clock, which goes on where no agent runs. Not before
    // `patience` has passed since Open, for a machine that has just started may not know the time
    // yet, and since the last ack of anything: a master takes what it can first.
    absl::Duration unacked_age_max = absl::InfiniteDuration();
    absl::Duration unacked_patience = absl::Minutes(10);
    // Acked frames are kept so long, and so many, for a master that comes back older.
    absl::Duration acked_age_max = absl::Minutes(5);
    std::int64_t acked_bytes_max = 64 << 20;
    // Nothing is sent before it is on the disk: a power loss then never shows the master more than
    // the spool still has.
    bool sync_before_send = false;
    // Of all spools of a user together; null = of this one alone, kSegmentCountMax.
    std::shared_ptr<SegmentBudget> segments = nullptr;
  };
  // Of Open: its work, and what it left out of what it found, which was logged. Sequences of what was left out read
  // as gaps.
  struct Recovery {
    // Checksums of records were computed of so many.
    std::uint64_t checked_bytes = 0;
    std::uint64_t segments_left_out = 0;
    // Beyond their bounds; samples of theirs are refused by the master, which tells them as lost.
    std::uint64_t definitions_left_out = 0;
  };
  struct Sealed {
    std::int64_t sealed_time_us = 0;
    SampleSpan span;
    std::string body;
  };

  // Takes what earlier agents left in `directory`: cuts a torn tail, skips damaged records and segments
  // of other writers, and what no spool of ours holds. Where none names options.writer, the one that the first
  // names replaces it.
  // `clock` outlives the spool.
  static absl::StatusOr<std::unique_ptr<Spool>> Open(FileDescriptor directory, Options options,
                                                     const Clock& clock);

  // These give the next sequences and return once written (not yet synced). kResourceExhausted: the
  // disk is full, nothing was given. Frames of one call and their checkpoint count as a whole.
  // REQUIRES: sealed is not empty.
  absl::Status AppendFrames(std::span<const Sealed> sealed, const Checkpoint& checkpoint);
  // The gap's sequences are set here: it takes one.
  absl::Status AppendGap(GapSpan gap);
  absl::Status AppendCheckpoint(const Checkpoint& checkpoint);
  // `definition` is repeated at the start of each later segment, in this order.
  absl::Status AppendDefinition(const std::string& definition);
  // fdatasync of what was written. The acked mark is written too, and waits for the next frame's
  // sync, or for the first segment that goes because of it: where a power loss takes it, frames are
  // told twice, no more. Blocks as the disk does.
  absl::Status Sync();
  // Writes the acked mark alone, for who looks at the spool and for the next agent.
  absl::Status MarkAcked();
  // Frames were written that a power loss would take.
  bool is_unsynced() const { return unsynced_; }
  // Frees acked segments that are old enough; past the bounds also young and unacked ones.
  absl::Status Trim();
  void SetBounds(const SpoolBounds& bounds) ABSL_LOCKS_EXCLUDED(mu_);

  // What `sequence` (1 ... last_sequence()) holds. Damaged or absent frames read as gaps.
  absl::StatusOr<SpoolItem> Read(std::uint64_t sequence) ABSL_LOCKS_EXCLUDED(mu_);
  // Checksum of the frame under `sequence` if it is held and is no gap. Reads the disk.
  std::optional<std::uint32_t> ReadChecksum(std::uint64_t sequence);
  // The same of a frame that may have been sent, and was given up; 0 = by an earlier agent: it can be compared no more.
  std::optional<std::uint32_t> GivenUpChecksum(std::uint64_t sequence) const
      ABSL_LOCKS_EXCLUDED(mu_);
  void SetAcked(AckedMark mark) ABSL_LOCKS_EXCLUDED(mu_);
  // Set whenever more may be sent. One at a time; null = none.
  void SetReadyMark(std::shared_ptr<ReadyMark> mark) ABSL_LOCKS_EXCLUDED(mu_);

  const Uuid& writer() const { return options_.writer; }
  std::uint64_t last_sequence() const ABSL_LOCKS_EXCLUDED(mu_);
  // What may be sent: with sync_before_send what was synced, else all.
  std::uint64_t sendable_sequence() const ABSL_LOCKS_EXCLUDED(mu_);
  // Bytes of the segments that hold something behind `sequence`.
  std::int64_t BytesBehind(std::uint64_t sequence) const ABSL_LOCKS_EXCLUDED(mu_);
  AckedMark acked() const ABSL_LOCKS_EXCLUDED(mu_);
  std::int64_t bytes() const ABSL_LOCKS_EXCLUDED(mu_);
  // Frames were lost that are known to have been acked: the sequences must not go on.
  bool lost_acked() const { return lost_acked_; }
  // As recovered or appended; of the appending thread.
  const std::vector<std::string>& definitions() const { return definitions_; }
  const Checkpoint& checkpoint() const { return checkpoint_; }
  const Recovery& recovery() const { return recovery_; }

 private:
  struct Segment {
    std::uint32_t number = 0;
    FileDescriptor file;
    SegmentSlot slot;
    // Of frames; last < first where it holds none.
    std::uint64_t first_sequence = 1;
    std::uint64_t last_sequence = 0;
    std::int64_t bytes = 0;
    // Of what it begins with; 0 where an earlier agent wrote it.
    std::int64_t head_bytes = 0;
    // Of its frames.
    SampleSpan span;
    absl::Duration written_at = absl::ZeroDuration();  // or recovered
    // By the wall clock, where an earlier agent wrote it. Nothing that this process wrote is of any age
    // by that clock: it may step by years.
    std::optional<absl::Time> written_before;
  };
  // What a segment held that is gone.
  struct Freed {
    std::uint64_t first_sequence = 0;
    std::uint64_t last_sequence = 0;
    SampleSpan span;
  };
  using SegmentPtr = std::shared_ptr<Segment>;  // table, reader in Read
  // Where the next frame of a reader lies.
  struct Cursor {
    std::uint32_t segment = 0;
    std::uint64_t sequence = 0;
    std::size_t offset = 0;
  };

  Spool(FileDescriptor directory, Options options, const Clock& clock)
      : options_(options),
        directory_(std::move(directory)),
        clock_(clock),
        taken_at_(clock.Monotonic()) {}

  void MarkReadyLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SyncNewestLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  absl::Status Recover();
  std::size_t SegmentCountMax() const;
  std::vector<std::uint32_t> OwnSegments(const std::vector<std::uint32_t>& numbers);
  struct FoundSegment;
  // Of one that cannot be opened, its number alone.
  FoundSegment Look(std::uint32_t number) const;
  void LeaveOutOldest(std::vector<FoundSegment>& own);
  absl::Status RecoverSegment(std::uint32_t number, bool is_last);
  bool TakeRecord(const RecordView& record, Segment& segment, std::uint64_t& next_sequence);
  void TakeSegmentStart(const SegmentStart& start, Segment& segment, std::uint64_t& next_sequence);
  void TakeDefinition(std::string_view payload);
  bool TakeFrame(std::string_view payload, Segment& segment, std::uint64_t& next_sequence);
  void ReachSequence(std::uint64_t sequence, std::uint64_t& next_sequence);
  void AddGapLocked(GapSpan gap) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The gap that holds `sequence`, or the first behind it.
  const GapSpan* GapFromLocked(std::uint64_t sequence) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  void NoteFreedLocked(const Segment& segment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // As far as known; the count only where all of it is.
  SampleSpan SpanOfFreedLocked(std::uint64_t first, std::uint64_t last) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Status Append(RecordType type, std::string_view payload);
  // kStay: what tells of bytes that are freed must not begin a segment to hold it.
  enum class WhenFull { kStartSegment, kStay };
  absl::Status AppendBytes(const std::string& records, WhenFull when_full);
  absl::Status EnsureSegment(std::size_t record_bytes);
  absl::Status StartSegment();
  // REQUIRES: current_ is there.
  absl::Status SyncFile();
  std::uint64_t NextSequence() const ABSL_LOCKS_EXCLUDED(mu_);

  // Of the oldest segment. `is_needed`: it holds what is not acked.
  bool MayFreeLocked(bool is_needed) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  bool IsPastBoundLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  bool IsTooOldLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  absl::Status Free(const SegmentPtr& segment);
  absl::Status DropOldest(const SegmentPtr& oldest);
  // Once a minute.
  void LogDropped(const GapSpan& gap);
  SampleSpan SpanOfUnacked(const Segment& segment, std::uint64_t acked) ABSL_LOCKS_EXCLUDED(mu_);
  // Samples of [first, last] that were given up, as far as they are remembered.
  std::uint64_t CountGivenUpLocked(std::uint64_t first, std::uint64_t last) const
      ABSL_SHARED_LOCKS_REQUIRED(mu_);

  absl::StatusOr<SpoolItem> ReadAround(const Segment& segment, const Segment& view,
                                       std::uint64_t sequence);

  Options options_;
  const FileDescriptor directory_;
  const Clock& clock_;
  bool lost_acked_ = false;

  // Confined to the appending thread.
  std::vector<std::string> definitions_;
  // Of definitions_, while they are recovered.
  absl::flat_hash_set<std::string> known_definitions_;
  std::size_t definition_bytes_ = 0;
  // Of what claims to be a record and is none, in all segments that are recovered.
  std::size_t false_bytes_left_ = kFalseBytesMax;
  Recovery recovery_;
  Checkpoint checkpoint_;
  std::uint32_t segment_number_last_ = 0;
  SegmentPtr current_;
  bool current_failed_ = false;
  bool unsynced_ = false;  // frames; acked marks wait for theirs
  bool mark_unsynced_ = false;
  AckedMark acked_written_;
  absl::Duration dropped_logged_ = -absl::InfiniteDuration();
  std::uint64_t dropped_sample_count_ = 0;  // since then

  mutable absl::Mutex mu_;
  std::vector<SegmentPtr> segments_ ABSL_GUARDED_BY(mu_);
  // By first sequence; none lies within another, so that their last sequences rise, too.
  std::map<std::uint64_t, GapSpan> gaps_ ABSL_GUARDED_BY(mu_);
  // Frames within a gap SPOOL_FULL that may have been sent before they were given up: where the master
  // turns out to have them, they are no part of what is missing. Of this process's time.
  struct GivenUp {
    std::uint64_t sequence = 0;
    std::uint64_t sample_count = 0;
    std::uint32_t crc32c = 0;
  };
  std::vector<GivenUp> given_up_ ABSL_GUARDED_BY(mu_);
  std::deque<Freed> freed_ ABSL_GUARDED_BY(mu_);  // of this process's time, oldest first
  std::uint64_t last_sequence_ ABSL_GUARDED_BY(mu_) = 0;
  std::uint64_t synced_sequence_ ABSL_GUARDED_BY(mu_) = 0;
  AckedMark acked_ ABSL_GUARDED_BY(mu_);
  // When a master last took something, or Open.
  absl::Duration taken_at_ ABSL_GUARDED_BY(mu_);
  // Highest ever, for the cause of what is absent.
  std::uint64_t acked_highest_ ABSL_GUARDED_BY(mu_) = 0;
  SpoolBounds bounds_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<ReadyMark> ready_mark_ ABSL_GUARDED_BY(mu_);  // also the OutboundWriter's
  Cursor cursor_ ABSL_GUARDED_BY(mu_);
  // The last frame, until it is read: as a rule it is sent at once. None where it is large.
  struct Newest {
    Frame frame;
    Cursor next;
  };
  std::optional<Newest> newest_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell::agent
