#include "server/profiling_windows.h"

#include <limits>
#include <vector>

#include "base/log.h"
#include "base/status_macros.h"

namespace stepwell {
namespace {

// How late writers are told that their time is over.
constexpr absl::Duration kLookInterval = absl::Milliseconds(250);
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kSecondUs = 1'000'000;

}  // namespace

void ProfilingWindows::Start() {
  worker_ = Worker("windows", [this] {
    while (true) {
      {
        absl::MutexLock lock(&mu_);
        mu_.AwaitWithTimeout(absl::Condition(&stopping_), kLookInterval);
        if (stopping_) return;
      }
      Look();
    }
  });
}

void ProfilingWindows::Stop() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  worker_.Join();
}

void ProfilingWindows::Reread() {
  absl::MutexLock lock(&mu_);
  ++version_;
  ends_.clear();
}

bool ProfilingWindows::IsOver(TrialId trial_id) {
  const auto end_us = EndOf(trial_id);
  return end_us.ok() && NowUs() >= *end_us;
}

absl::StatusOr<std::int64_t> ProfilingWindows::EndOf(TrialId trial_id) {
  std::int64_t version = 0;
  {
    absl::MutexLock lock(&mu_);
    const auto known = ends_.find(trial_id);
    if (known != ends_.end()) return known->second;
    version = version_;
  }
  const auto caps = parts_.store.ReadTrialCaps(trial_id);
  // A deleted one: its writers are refused anyway.
  if (!caps.ok() && !absl::IsNotFound(caps.status())) return caps.status();
  const std::int64_t seconds = caps.ok() ? caps->caps.profiling_window_seconds.value : 0;
  const std::int64_t end_us = seconds == 0 ? kNever : caps->created_time_us + seconds * kSecondUs;
  absl::MutexLock lock(&mu_);
  if (version_ == version) ends_[trial_id] = end_us;
  return end_us;
}

void ProfilingWindows::Look() {
  const std::vector<TrialId> trials = parts_.director.OpenTrials();
  const absl::flat_hash_set<TrialId> open(trials.begin(), trials.end());
  {
    absl::MutexLock lock(&mu_);
    absl::erase_if(ends_, [&](const auto& entry) { return !open.contains(entry.first); });
  }
  absl::erase_if(noted_, [&](TrialId trial_id) { return !open.contains(trial_id); });
  for (const TrialId trial_id : trials) {
    const auto end_us = EndOf(trial_id);
    if (!end_us.ok()) return;  // the database does not answer: the next look is soon enough
    const bool over = NowUs() >= *end_us;
    if (const int told = parts_.director.SetWindowOver(trial_id, over); told > 0) {
      log::Info("profiling_window",
                {{"trial", Value(trial_id)}, {"over", over}, {"writers_told", told}});
    }
    if (over && !noted_.contains(trial_id)) NoteGap(trial_id, *end_us);
  }
}

void ProfilingWindows::NoteGap(TrialId trial_id, std::int64_t end_us) {
  const std::int64_t epoch = parts_.state.epoch();
  if (epoch == 0) return;
  const absl::Status noted = parts_.store.NoteWindowOver(epoch, trial_id, end_us);
  if (noted.ok() || absl::IsNotFound(noted)) {
    noted_.insert(trial_id);
    return;
  }
  if (absl::IsAborted(noted)) return parts_.state.ReportLost(epoch);
  log::Warning("note_window_failed", {{"trial", Value(trial_id)}, {"status", noted.ToString()}});
}

}  // namespace stepwell
