// RecentRing: which of recent_0..3 folds write into, since when, and what must be over before an
// emptied segment may be truncated. A plain state of the folder; confined to its thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace stepwell {

class RecentRing {
 public:
  static constexpr int kSegmentCount = 4;

  // Everything in a segment is ripe, at the latest, when the ring has come round.
  struct Limits {
    std::int64_t age_max_us = 1'800'000'000;
    std::int64_t bytes_max = std::int64_t{1} << 30;
  };
  struct Segment {
    bool holds_rows = false;
    // Pages of a truncated table, or of one that nobody has written yet.
    bool is_clean = true;
    // Some page of it cannot be read: nothing is written, emptied or moved there. Its rows stay; what is
    // not on that page is read by keys as before, and merged as long as its rows of ticks can be listed.
    bool is_damaged = false;
    bool ticks_damaged = false;
    // It was empty, and nobody was writing to it, when this transaction began its look: snapshots that are older
    // may still see rows that merges or deletions of trials took away. 0 = not known to be empty, as always
    // while it is the current one.
    std::uint64_t emptied_xid = 0;
    std::int64_t first_time_us = 0;
    std::int64_t bytes = 0;
  };

  RecentRing() = default;
  explicit RecentRing(Limits limits) : limits_(limits) {}

  int current() const { return current_; }
  void set_current(int segment) {
    current_ = segment;
    this->segment(segment).emptied_xid = 0;
  }
  // The one after the current one that is not damaged; the current one where there is no other.
  int next() const {
    int next = (current_ + 1) % kSegmentCount;
    while (next != current_ && segments_[static_cast<std::size_t>(next)].is_damaged) {
      next = (next + 1) % kSegmentCount;
    }
    return next;
  }
  // Whose rows of ticks can be listed.
  std::vector<std::int16_t> listable() const {
    std::vector<std::int16_t> listable;
    for (int i = 0; i < kSegmentCount; ++i) {
      if (!segments_[static_cast<std::size_t>(i)].ticks_damaged) {
        listable.push_back(static_cast<std::int16_t>(i));
      }
    }
    return listable;
  }
  Segment& segment(int index) { return segments_[static_cast<std::size_t>(index)]; }

  void NoteWritten(std::int64_t bytes, std::int64_t now_us) {
    Segment& segment = segments_[static_cast<std::size_t>(current_)];
    if (!segment.holds_rows) segment.first_time_us = now_us;
    segment.holds_rows = true;
    segment.is_clean = false;
    segment.bytes += bytes;
  }
  // Time to leave the current segment.
  bool IsFull(std::int64_t now_us) const {
    const Segment& segment = segments_[static_cast<std::size_t>(current_)];
    return segment.holds_rows && (segment.bytes >= limits_.bytes_max ||
                                  now_us - segment.first_time_us >= limits_.age_max_us);
  }

 private:
  const Limits limits_{};
  int current_ = 0;
  std::array<Segment, kSegmentCount> segments_{};
};

}  // namespace stepwell
