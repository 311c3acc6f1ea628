// AgentLife: whether an agent goes on: it ends when nothing is left to do for long enough, and
// leaves what nobody takes to the next agent. Pure: the clock is the caller's.
//
//   switch (life.Judge(facts, clock.Monotonic())) ...
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace stepwell::agent {

class AgentLife {
 public:
  struct Options {
    // Nothing to do for so long: it ends.
    absl::Duration idle_exit = absl::InfiniteDuration();
    // Before any writer was seen, at least so long: a training program takes a while to start.
    absl::Duration first_writer_wait = absl::ZeroDuration();
    // No recorder lives, something is unacked and nothing moves for so long: it leaves.
    absl::Duration leave_after = absl::InfiniteDuration();
    // It ends as soon as all that can be sent is acked or refused.
    bool ends_when_settled = false;
    // Instead of idle_exit where something waits for an upload, which needs the spool for itself.
    absl::Duration offline_exit = absl::InfiniteDuration();
    // Instead of leave_after where the directory was removed: what is unacked is held by this agent alone, and a
    // master that restarts is back by then. idle_exit is then 0.
    absl::Duration gone_leave_after = absl::Minutes(1);
  };
  struct Facts {
    bool any_seen = false;
    // A process that records lives.
    bool any_live = false;
    // All that recorded has ended, and the master (offline: the spool) holds it.
    bool all_done = false;
    // Nothing is left to send now: acked, refused, or offline.
    bool all_settled = false;
    // Something that ended was recorded offline and waits in the spool.
    bool any_spooled = false;
    // The directory that it serves was removed: no recorder will find it there any more.
    bool all_gone = false;
    // Grows with each ack and each writer found.
    std::uint64_t progress = 0;
  };
  // Of several roots together.
  static void Add(const Facts& more, Facts& facts);
  enum class Verdict { kStay, kIdle, kLeave };

  AgentLife(Options options, absl::Duration now)
      : options_(options), busy_at_(now), moved_at_(now) {}

  // Whether it may ever end by itself: else nobody need gather facts.
  bool may_end() const {
    return options_.ends_when_settled || options_.idle_exit < absl::InfiniteDuration() ||
           options_.leave_after < absl::InfiniteDuration();
  }
  Verdict Judge(const Facts& facts, absl::Duration now);

 private:
  const Options options_;
  absl::Duration busy_at_;
  absl::Duration moved_at_;
  std::uint64_t progress_ = 0;
};

}  // namespace stepwell::agent
