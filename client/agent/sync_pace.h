// SyncPace: when a spool goes to the disk. A frame that only the page cache has is gone with the power;
// one that the master acked is durable there. So what is not acked is synced within 500 ms of being
// written, what is acked is left to the next sync, or to the end of 5 s: a spool that the disk has
// older than that would make the agent give up the writer's sequences after a power loss, though
// nothing was lost. Pure: the clock is the caller's. Confined to the agent's loop.
//
//   SyncPace pace(absl::Milliseconds(100));
//   pace.OnWritten(spool.last_sequence(), acked, now);
//   if (pace.IsDue(acked, now)) spool.Sync(), pace.OnSynced();
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>

#include "absl/time/time.h"

namespace stepwell::agent {

class SyncPace {
 public:
  static constexpr absl::Duration kUnackedMax = absl::Milliseconds(500);
  static constexpr absl::Duration kAckedMax = absl::Seconds(5);

  // Visits are `frame_interval` apart: what would be too late at the next one is due now.
  // REQUIRES: frame_interval > 0. `synced_sequence`: what the disk has.
  SyncPace(absl::Duration frame_interval, std::uint64_t synced_sequence)
      : ahead_(frame_interval * 3 / 4), last_sequence_(synced_sequence) {}

  // Frames up to `last_sequence` are written, those up to `acked` are the master's.
  void OnWritten(std::uint64_t last_sequence, std::uint64_t acked, absl::Duration now) {
    while (!unacked_.empty() && unacked_.front().sequence <= acked) unacked_.pop_front();
    if (last_sequence <= last_sequence_) return;
    last_sequence_ = last_sequence;
    if (!unsynced_since_) unsynced_since_ = now;
    unacked_.push_back({last_sequence, now});
  }
  bool IsDue(std::uint64_t acked, absl::Duration now) const {
    if (!unsynced_since_) return false;
    if (now + ahead_ - *unsynced_since_ >= kAckedMax) return true;
    const auto oldest =
        std::find_if(unacked_.begin(), unacked_.end(),
                     [acked](const Written& each) { return each.sequence > acked; });
    return oldest != unacked_.end() && now + ahead_ - oldest->at >= kUnackedMax;
  }
  // Again as if what is written had been written now.
  void OnFailed(absl::Duration now) {
    if (!unsynced_since_) return;
    unsynced_since_ = now;
    unacked_ = {{last_sequence_, now}};
  }
  void OnSynced() {
    unsynced_since_.reset();
    unacked_.clear();
  }

 private:
  struct Written {
    std::uint64_t sequence = 0;  // of the newest frame of a turn
    absl::Duration at;
  };

  absl::Duration ahead_;
  std::uint64_t last_sequence_;
  // The oldest that is not synced.
  std::optional<absl::Duration> unsynced_since_;
  // Of a sync interval at most, or since a sync failed: some fifty where frames are 10 ms apart.
  std::deque<Written> unacked_;
};

}  // namespace stepwell::agent
