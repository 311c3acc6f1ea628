#include "client/agent/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace stepwell::agent {

namespace {

// Segments whose times are still known when they are gone; older ones are told together.
constexpr std::size_t kFreedCountMax = 1024;
// Each segment takes so much beside its head, however small the bound: where heads are large, a
// segment for each frame would be all heads.
constexpr std::int64_t kSegmentFramesBytesMin = 64 << 10;
constexpr absl::Duration kLogInterval = absl::Minutes(1);
// What a rank seals in a frame interval, many times.
constexpr std::size_t kNewestBytesMax = 16 << 10;

}  // namespace

std::string SegmentName(std::uint32_t number) { return absl::StrFormat("%010u.seg", number); }

absl::Status Spool::AppendFrames(std::span<const Sealed> sealed, const Checkpoint& checkpoint) {
  STEPWELL_CHECK(!sealed.empty());
  const std::uint64_t first_sequence = NextSequence();
  std::string records;
  Frame newest;
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    Frame frame;
    frame.sequence = first_sequence + i;
    frame.sealed_time_us = sealed[i].sealed_time_us;
    frame.crc32c = ChunkCrc32c(frame.sequence, frame.sealed_time_us, sealed[i].body);
    frame.span = sealed[i].span;
    frame.group_continues = i + 1 < sealed.size();
    frame.body = sealed[i].body;
    records += EncodeRecord(RecordType::kFrame,
                            frame.Encode(frame.group_continues ? Checkpoint() : checkpoint));
    newest = std::move(frame);
  }
  STEPWELL_RETURN_IF_ERROR(AppendBytes(records, WhenFull::kStartSegment));
  checkpoint_.MergeFrom(checkpoint);
  absl::MutexLock lock(&mu_);
  if (current_->last_sequence < current_->first_sequence) {
    current_->first_sequence = first_sequence;
  }
  last_sequence_ = current_->last_sequence = first_sequence + sealed.size() - 1;
  newest_.reset();
  if (newest.body.size() <= kNewestBytesMax) {
    const Cursor next = {current_->number, last_sequence_ + 1,
                         static_cast<std::size_t>(current_->bytes)};
    newest_ = {std::move(newest), next};
  }
  for (const Sealed& frame : sealed) current_->span.Add(frame.span);
  MarkReadyLocked();
  return absl::OkStatus();
}

absl::Status Spool::AppendGap(GapSpan gap) {
  gap.first_sequence = gap.last_sequence = NextSequence();
  STEPWELL_RETURN_IF_ERROR(Append(RecordType::kGap, gap.Encode()));
  absl::MutexLock lock(&mu_);
  last_sequence_ = gap.last_sequence;
  AddGapLocked(std::move(gap));
  MarkReadyLocked();
  return absl::OkStatus();
}

absl::Status Spool::AppendCheckpoint(const Checkpoint& checkpoint) {
  STEPWELL_RETURN_IF_ERROR(Append(RecordType::kCheckpoint, checkpoint.Encode()));
  checkpoint_.MergeFrom(checkpoint);
  return absl::OkStatus();
}

absl::Status Spool::AppendDefinition(const std::string& definition) {
  STEPWELL_RETURN_IF_ERROR(Append(RecordType::kDefinition, definition));
  definitions_.push_back(definition);
  return absl::OkStatus();
}

absl::Status Spool::Append(RecordType type, std::string_view payload) {
  return AppendBytes(EncodeRecord(type, payload), WhenFull::kStartSegment);
}

absl::Status Spool::AppendBytes(const std::string& records, WhenFull when_full) {
  STEPWELL_RETURN_IF_ERROR(failpoint::Check("spool_append"));
  const bool may_stay = current_ != nullptr && !current_failed_;
  if (!may_stay || when_full == WhenFull::kStartSegment) {
    STEPWELL_RETURN_IF_ERROR(EnsureSegment(records.size()));
  }
  const absl::Status written =
      WriteAt(current_->file.get(), static_cast<std::uint64_t>(current_->bytes), records);
  if (!written.ok()) {
    // A part may have been written: away with it, so that the next try starts at a clean end.
    if (ftruncate(current_->file.get(), current_->bytes) != 0) current_ = nullptr;
    // A limit may be on the file, not on the disk: frames go on in another one.
    current_failed_ = current_ != nullptr && current_->last_sequence >= current_->first_sequence;
    return Annotate(written, "spool: append");
  }
  unsynced_ = true;
  absl::MutexLock lock(&mu_);
  current_->bytes += static_cast<std::int64_t>(records.size());
  current_->written_at = clock_.Monotonic();
  return absl::OkStatus();
}

absl::Status Spool::EnsureSegment(std::size_t record_bytes) {
  if (current_ != nullptr && !current_failed_) {
    absl::MutexLock lock(&mu_);
    // A quarter of the bound: giving up the oldest segment never gives up most of the spool.
    const std::int64_t bytes_max = std::max(
        std::min(options_.segment_bytes_max, bounds_.segment_bytes_max),
        current_->head_bytes + std::min(options_.segment_bytes_max, kSegmentFramesBytesMin));
    if (current_->bytes + static_cast<std::int64_t>(record_bytes) <= bytes_max) {
      return absl::OkStatus();
    }
  }
  return Annotate(StartSegment(), "spool: start a segment");
}

absl::Status Spool::StartSegment() {
  auto segment = std::make_shared<Segment>();
  segment->number = segment_number_last_ + 1;
  SegmentStart start;
  start.writer = options_.writer;
  start.next_sequence = NextSequence();
  std::string head;
  {
    absl::MutexLock lock(&mu_);
    start.acked_sequence = acked_.sequence;
    head = EncodeRecord(RecordType::kSegmentStart, start.Encode());
    for (const auto& [first, gap] : gaps_) {
      if (gap.last_sequence > acked_.sequence) head += EncodeRecord(RecordType::kGap, gap.Encode());
    }
  }
  for (const std::string& definition : definitions_) {
    head += EncodeRecord(RecordType::kDefinition, definition);
  }
  head += EncodeRecord(RecordType::kCheckpoint, checkpoint_.Encode());
  const std::string name = SegmentName(segment->number);
  STEPWELL_ASSIGN_OR_RETURN(segment->file,
                            OpenAt(directory_.get(), name, O_RDWR | O_CREAT | O_EXCL | O_NOATIME));
  segment->slot = SegmentSlot(options_.segments);
  ++segment_number_last_;
  if (absl::Status written = WriteAt(segment->file.get(), 0, head); !written.ok()) {
    unlinkat(directory_.get(), name.c_str(), 0);
    return written;
  }
  if (current_ != nullptr && unsynced_ && fdatasync(current_->file.get()) != 0 &&
      options_.sync_before_send) {
    unlinkat(directory_.get(), name.c_str(), 0);
    return absl::ErrnoToStatus(errno, "fdatasync");
  }
  fsync(directory_.get());
  segment->first_sequence = start.next_sequence;
  segment->last_sequence = start.next_sequence - 1;
  segment->bytes = segment->head_bytes = static_cast<std::int64_t>(head.size());
  segment->written_at = clock_.Monotonic();
  current_ = segment;
  current_failed_ = false;
  absl::MutexLock lock(&mu_);
  segments_.push_back(std::move(segment));
  return absl::OkStatus();
}

absl::Status Spool::Sync() {
  if (current_ == nullptr) return absl::OkStatus();
  // A full disk may have no room for the mark: the frames are there, and are synced all the same.
  const absl::Status marked = MarkAcked();
  if (unsynced_ && current_ != nullptr) STEPWELL_RETURN_IF_ERROR(SyncFile());
  return marked;
}

absl::Status Spool::MarkAcked() {
  const AckedMark mark = acked();
  if (current_ == nullptr) return absl::OkStatus();
  if (mark.sequence == acked_written_.sequence && mark.generation == acked_written_.generation) {
    return absl::OkStatus();
  }
  const bool was_unsynced = unsynced_;
  STEPWELL_RETURN_IF_ERROR(Append(RecordType::kAcked, mark.Encode()));
  acked_written_ = mark;
  unsynced_ = was_unsynced;
  mark_unsynced_ = true;
  return absl::OkStatus();
}

absl::Status Spool::SyncFile() {
  if (fdatasync(current_->file.get()) != 0) return absl::ErrnoToStatus(errno, "spool: fdatasync");
  unsynced_ = mark_unsynced_ = false;
  absl::MutexLock lock(&mu_);
  const bool is_more = std::exchange(synced_sequence_, last_sequence_) != last_sequence_;
  if (is_more && options_.sync_before_send) MarkReadyLocked();
  return absl::OkStatus();
}

// Each turn frees a segment, and none is begun for it: at the latest, the newest is left alone. That
// one stays in any case: its head is what the next agent goes on from.
absl::Status Spool::Trim() {
  while (true) {
    SegmentPtr oldest;
    bool is_needed = false;
    {
      absl::MutexLock lock(&mu_);
      if (segments_.size() <= 1) return absl::OkStatus();
      oldest = segments_.front();
      is_needed = oldest->last_sequence > acked_.sequence &&
                  oldest->last_sequence >= oldest->first_sequence;
      if (!MayFreeLocked(is_needed)) return absl::OkStatus();
    }
    STEPWELL_RETURN_IF_ERROR(is_needed ? DropOldest(oldest) : Free(oldest));
  }
}

bool Spool::IsPastBoundLocked() const {
  std::int64_t unacked_bytes = 0;
  for (const SegmentPtr& segment : segments_) {
    if (segment->last_sequence > acked_.sequence) unacked_bytes += segment->bytes;
  }
  return unacked_bytes > bounds_.unacked_bytes_max;
}

bool Spool::IsTooOldLocked() const {
  const absl::Duration now = clock_.Monotonic();
  if (now - taken_at_ < options_.unacked_patience) return false;
  const Segment& oldest = *segments_.front();
  const absl::Duration age =
      oldest.written_before ? clock_.Now() - *oldest.written_before : now - oldest.written_at;
  return age > options_.unacked_age_max;
}

bool Spool::MayFreeLocked(bool is_needed) const {
  if (IsPastBoundLocked()) return true;
  if (is_needed) return IsTooOldLocked();
  std::int64_t bytes = 0;
  std::int64_t acked_bytes = 0;
  for (const SegmentPtr& segment : segments_) {
    bytes += segment->bytes;
    if (segment != segments_.back() && segment->last_sequence <= acked_.sequence) {
      acked_bytes += segment->bytes;
    }
  }
  const absl::Duration age = clock_.Monotonic() - segments_.front()->written_at;
  return bytes > bounds_.bytes_max || age > options_.acked_age_max ||
         acked_bytes > options_.acked_bytes_max;
}

// The gap is on disk before the segment goes: a crash between them costs nothing.
absl::Status Spool::DropOldest(const SegmentPtr& oldest) {
  GapSpan gap;
  std::uint64_t acked = 0;
  {
    absl::MutexLock lock(&mu_);
    acked = acked_.sequence;
    gap.first_sequence = std::max(oldest->first_sequence, acked + 1);
    gap.last_sequence = oldest->last_sequence;
    gap.reason = IsPastBoundLocked()
                     ? "the spool reached its bound; its oldest frames were given up"
                     : "frames that no master took were older than the spool's bound";
  }
  gap.cause = pb::GAP_CAUSE_SPOOL_FULL;
  gap.span = SpanOfUnacked(*oldest, acked);
  STEPWELL_RETURN_IF_ERROR(
      AppendBytes(EncodeRecord(RecordType::kGap, gap.Encode()), WhenFull::kStay));
  LogDropped(gap);
  {
    absl::MutexLock lock(&mu_);
    AddGapLocked(gap);
  }
  return Free(oldest);
}

void Spool::LogDropped(const GapSpan& gap) {
  dropped_sample_count_ += gap.span.sample_count;
  const absl::Duration now = clock_.Monotonic();
  if (now - dropped_logged_ < kLogInterval) return;
  dropped_logged_ = now;
  log::Warning("spool_full", {{"writer", options_.writer.ToText()},
                              {"first_sequence", gap.first_sequence},
                              {"last_sequence", gap.last_sequence},
                              {"samples", std::exchange(dropped_sample_count_, 0)}});
}

absl::Status Spool::Free(const SegmentPtr& segment) {
  // What says that its frames are acked, or given up, is on the disk before they go. A disk that
  // cannot even sync keeps no segment for it.
  if (current_ != nullptr && (unsynced_ || mark_unsynced_)) SyncFile().IgnoreError();
  const std::string name = SegmentName(segment->number);
  {
    absl::MutexLock lock(&mu_);
    std::erase(segments_, segment);
    NoteFreedLocked(*segment);
    const std::uint64_t known = std::min(acked_.sequence, segment->last_sequence);
    std::erase_if(gaps_,
                  [known](const auto& entry) { return entry.second.last_sequence <= known; });
  }
  if (unlinkat(directory_.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
    return absl::ErrnoToStatus(errno, absl::StrCat("spool: unlink ", name));
  }
  return absl::OkStatus();
}

void Spool::NoteFreedLocked(const Segment& segment) {
  if (segment.last_sequence < segment.first_sequence) return;
  freed_.push_back({segment.first_sequence, segment.last_sequence, segment.span});
  if (freed_.size() <= kFreedCountMax) return;
  Freed& second = freed_[1];
  second.first_sequence = freed_.front().first_sequence;
  second.span.Add(freed_.front().span);
  freed_.pop_front();
}

SampleSpan Spool::SpanOfFreedLocked(std::uint64_t first, std::uint64_t last) const {
  SampleSpan span;
  std::uint64_t known_count = 0;
  for (const Freed& freed : freed_) {
    if (freed.last_sequence < first || freed.first_sequence > last) continue;
    span.Add(freed.span);
    if (freed.first_sequence >= first && freed.last_sequence <= last) {
      known_count += freed.last_sequence - freed.first_sequence + 1;
    }
  }
  if (known_count != last - first + 1) span.sample_count = 0;
  return span;
}

// Adjacent gaps of one cause become one, so that a long outage is one gap, not thousands.
void Spool::AddGapLocked(GapSpan gap) {
  if (!gaps_.empty()) {
    GapSpan& newest = gaps_.rbegin()->second;
    if (newest.cause == gap.cause && newest.last_sequence + 1 == gap.first_sequence) {
      newest.last_sequence = gap.last_sequence;
      newest.span.Add(gap.span);
      return;
    }
  }
  const auto behind = gaps_.upper_bound(gap.first_sequence);
  if (behind != gaps_.begin()) {
    const GapSpan& before = std::prev(behind)->second;
    if (before.last_sequence >= gap.last_sequence) return;
    // More than damage makes: what lies between two of them is given up with them, and told.
    if (gaps_.size() >= kGapCountMax) {
      gap.first_sequence = before.first_sequence;
      gap.span.Add(before.span);
    }
  } else if (gaps_.size() >= kGapCountMax) {
    gap.last_sequence = std::max(gap.last_sequence, behind->second.last_sequence);
    gap.span.Add(behind->second.span);
  }
  auto within = gaps_.lower_bound(gap.first_sequence);
  while (within != gaps_.end() && within->second.last_sequence <= gap.last_sequence) {
    within = gaps_.erase(within);
  }
  gaps_.emplace(gap.first_sequence, std::move(gap));
}

const GapSpan* Spool::GapFromLocked(std::uint64_t sequence) const {
  auto found = gaps_.upper_bound(sequence);
  // Those before may reach as far: of them the one with the lowest first sequence is told.
  while (found != gaps_.begin() && std::prev(found)->second.last_sequence >= sequence) --found;
  return found == gaps_.end() ? nullptr : &found->second;
}

void Spool::SetAcked(AckedMark mark) {
  absl::MutexLock lock(&mu_);
  if (mark.sequence != acked_.sequence) taken_at_ = clock_.Monotonic();
  acked_ = mark;
  acked_highest_ = std::max(acked_highest_, mark.sequence);
}

void Spool::SetReadyMark(std::shared_ptr<ReadyMark> mark) {
  absl::MutexLock lock(&mu_);
  ready_mark_ = std::move(mark);
}

void Spool::MarkReadyLocked() const {
  if (ready_mark_ != nullptr) ready_mark_->Set();
}

void Spool::SetBounds(const SpoolBounds& bounds) {
  absl::MutexLock lock(&mu_);
  bounds_ = bounds;
}

std::uint64_t Spool::NextSequence() const { return last_sequence() + 1; }

std::uint64_t Spool::last_sequence() const {
  absl::MutexLock lock(&mu_);
  return last_sequence_;
}

std::uint64_t Spool::sendable_sequence() const {
  absl::MutexLock lock(&mu_);
  return options_.sync_before_send ? synced_sequence_ : last_sequence_;
}

std::int64_t Spool::BytesBehind(std::uint64_t sequence) const {
  absl::MutexLock lock(&mu_);
  std::int64_t bytes = 0;
  for (const SegmentPtr& segment : segments_) {
    if (segment->last_sequence > sequence) bytes += segment->bytes;
  }
  return bytes;
}

AckedMark Spool::acked() const {
  absl::MutexLock lock(&mu_);
  return acked_;
}

std::int64_t Spool::bytes() const {
  absl::MutexLock lock(&mu_);
  std::int64_t bytes = 0;
  for (const SegmentPtr& segment : segments_) bytes += segment->bytes;
  return bytes;
}

}  // namespace stepwell::agent
