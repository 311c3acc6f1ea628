#include "client/agent/agent_life.h"

#include <algorithm>

namespace stepwell::agent {

void AgentLife::Add(const Facts& more, Facts& facts) {
  facts.any_seen = facts.any_seen || more.any_seen;
  facts.any_live = facts.any_live || more.any_live;
  facts.all_done = facts.all_done && more.all_done;
  facts.all_settled = facts.all_settled && more.all_settled;
  facts.any_spooled = facts.any_spooled || more.any_spooled;
  facts.all_gone = facts.all_gone && more.all_gone;
  facts.progress += more.progress;
}

AgentLife::Verdict AgentLife::Judge(const Facts& facts, absl::Duration now) {
  if (!facts.all_done) busy_at_ = now;
  if (facts.any_live || facts.all_done || facts.progress != progress_) moved_at_ = now;
  progress_ = facts.progress;
  if (options_.ends_when_settled && facts.all_settled) return Verdict::kIdle;
  absl::Duration idle_exit = facts.any_seen
                                 ? options_.idle_exit
                                 : std::max(options_.idle_exit, options_.first_writer_wait);
  if (facts.any_spooled) idle_exit = std::min(idle_exit, options_.offline_exit);
  absl::Duration leave_after = options_.leave_after;
  if (facts.all_gone && may_end()) {
    idle_exit = absl::ZeroDuration();
    leave_after = std::min(leave_after, options_.gone_leave_after);
  }
  // Asked, since an idle time of 0 would have passed while there is something to do.
  if (facts.all_done && now - busy_at_ >= idle_exit) return Verdict::kIdle;
  return now - moved_at_ >= leave_after ? Verdict::kLeave : Verdict::kStay;
}

}  // namespace stepwell::agent
