// JournalRing: which of journal_0..7 commits write into, and what each holds as far as this master
// knows. Shared by the writer (enters, notes) and the folder's recycler (advances, resets); what may
// be truncated is decided in the database, under a lock. Thread-safe.
//
//   JournalRing::Entry entry = ring.Enter();             // until the COMMIT is known
//   ... copy into journal_<entry.segment()> ...
//   ring.NoteWritten(entry.segment(), {.row_count = 1, .bytes = n, .last_time_us = t});
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace stepwell {

// What a segment holds; times are received times. All zero = empty.
struct JournalSegment {
  std::int64_t row_count = 0;
  std::int64_t bytes = 0;
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;
  // It has a page that could not be read or written: nothing is written into it, and it is not emptied.
  bool is_damaged = false;
};

class JournalRing {
 public:
  static constexpr int kSegmentCount = 8;

  // When the current segment is full enough to leave it.
  struct Limits {
    std::int64_t bytes_max = 128 << 20;
    // So that the recycler goes through the rows in some ten milliseconds; those of progress, one for each
    // writer of a commit, beside them.
    std::int64_t row_count_max = 20'000;
    std::int64_t age_max_us = 60'000'000;
  };

  // A commit is under way in segment(): nobody truncates it.
  class Entry {
   public:
    Entry(JournalRing* ring, int segment) : ring_(ring), segment_(segment) {}
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    ~Entry() { ring_->Leave(segment_); }
    int segment() const { return segment_; }

   private:
    JournalRing* const ring_;
    const int segment_;
  };

  JournalRing() = default;
  explicit JournalRing(Limits limits) : limits_(limits) {}

  // What the tables hold at start; the newest of them that is not damaged becomes the current one. Rows' own times may be
  // ahead of `now_us`, of a clock that was set back since, for hours: for what may go, and for a segment's age, all that is
  // found was received by now.
  void Start(const std::array<JournalSegment, kSegmentCount>& found, std::int64_t now_us);
  Entry Enter();
  // `time_us`, or later where an earlier commit had a later one: received times of commits ascend,
  // also when the clock steps back, so that replay finds the order of commits by them.
  std::int64_t AscendingTime(std::int64_t time_us);
  // After COMMIT (or when it is in doubt: then too much is noted, which does no harm).
  void NoteWritten(int segment, const JournalSegment& added);

  int current() const;
  JournalSegment segment(int index) const;
  // Segments other than the current one that hold rows, all received before `before_us`, and that
  // no commit is using; oldest first.
  std::vector<int> Recyclable(std::int64_t before_us) const;
  void NoteTruncated(int segment);
  // It could not be read or written: it stands aside from now on. The next empty one becomes the current one
  // if it was that; if none is empty it stays that until one is.
  void NoteDamaged(int segment);
  std::vector<int> Damaged() const;
  // What a damaged segment is found to hold later, as in Start. Nothing happens where a commit is using it.
  void NoteFound(int segment, const JournalSegment& found, std::int64_t now_us);
  // Makes the next empty segment the current one if the current one is full enough, or damaged. False when
  // it is, and none is empty.
  bool AdvanceIfFull(std::int64_t now_us);

 private:
  void Leave(int segment);
  // False when no segment is empty.
  bool MoveOnLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool FullLocked(std::int64_t now_us) const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  const Limits limits_{};
  mutable absl::Mutex mu_;
  int current_ ABSL_GUARDED_BY(mu_) = 0;
  std::array<JournalSegment, kSegmentCount> segments_ ABSL_GUARDED_BY(mu_){};
  std::int64_t newest_time_us_ ABSL_GUARDED_BY(mu_) = 0;
  std::array<int, kSegmentCount> entered_ ABSL_GUARDED_BY(mu_){};
};

}  // namespace stepwell
