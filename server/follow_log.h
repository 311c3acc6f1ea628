// FollowLog: the chunks of one trial in the order in which heads took them, for those who follow it: the
// unfolded ones and, for a while, the folded ones. What it promises, and followers build on:
//
// 1. A chunk enters once, at the end, after its COMMIT and before its ack; it leaves at the front alone.
// 2. The sequences of a writer ascend. (A replay beside ingest mixes them; Settle puts that right before
//    anybody may follow.)
// 3. So one number, the index of the next entry, says for all writers together what a follower has and
//    what comes next: it owns no queue, and how slow it is changes nothing for anybody else. While its
//    index is not before begin_index() it has missed nothing.
// 4. A place that outlives this log (a cursor: the sequence of each writer) is whole while no writer's
//    sequence lies before the newest one of that writer that left, which heads keep.
// 5. Of what left it is known how old its samples were, coarser the longer ago: enough to say from which
//    time on a reader of rows finds all that a follower missed.
//
// Thread-compatible: heads lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "server/head_chunk.h"

namespace stepwell {

class FollowLog {
 public:
  // `id` tells this log's indexes from those of every other.
  explicit FollowLog(std::uint64_t id) : id_(id) {}

  std::uint64_t id() const { return id_; }
  // Indexes of the first entry and of the one after the last; they only grow.
  std::uint64_t begin_index() const { return begin_index_; }
  std::uint64_t end_index() const { return begin_index_ + entries_.size(); }
  bool empty() const { return entries_.empty(); }
  // REQUIRES: begin_index() <= index < end_index().
  const HeadChunkPtr& At(std::uint64_t index) const { return entries_[index - begin_index_].chunk; }
  // Where what was received at or after that time begins.
  std::uint64_t IndexOf(std::int64_t received_time_us) const;

  // `oldest_time_us` as of OldestTime, which is for outside of the lock.
  void Push(HeadChunkPtr chunk, std::int64_t oldest_time_us);
  // REQUIRES: not empty.
  HeadChunkPtr PopFront();
  // Nobody follows yet: by time received, and the sequences of each writer ascending.
  void Settle();

  // The oldest sample of what left and had an index of at least `index`; or was received at or after
  // that time. Older than that where only a coarser answer is known. INT64_MAX = no sample left.
  std::int64_t OldestGone(std::uint64_t index) const;
  std::int64_t OldestGoneSince(std::int64_t received_time_us) const;
  // And with what is still here from `index` on. O(entries).
  std::int64_t OldestFrom(std::uint64_t index) const;

 private:
  struct Entry {
    HeadChunkPtr chunk;
    std::int64_t oldest_time_us;
  };
  // Neighbours that left.
  struct Gone {
    std::uint64_t end_index;
    std::int64_t first_received_us;
    std::int64_t last_received_us;
    std::int64_t oldest_time_us;
  };
  void NoteGone(const Entry& entry);
  void SettleWriters();

  const std::uint64_t id_;
  std::uint64_t begin_index_ = 0;
  std::deque<Entry> entries_;  // grows without moving what is there: acks wait meanwhile
  std::vector<Gone> gone_;
};

// What a log costs beside its entries.
inline constexpr std::int64_t kFollowLogBytes = 1344;
inline constexpr std::int64_t kFollowEntryBytes = 32;

}  // namespace stepwell
