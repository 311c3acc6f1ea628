#include "server/sweep_loop.h"

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace stepwell {
namespace {

// How soon a stop or a cancelled call is seen while the store works.
constexpr absl::Duration kCallDuration = absl::Milliseconds(300);

// The sums are over lines that a call did not list, too.
void Append(const CapRemovals& more, CapRemovals& into) {
  const std::int64_t sample_count = into.sample_count + more.sample_count;
  const std::int64_t raw_bytes = into.raw_bytes + more.raw_bytes;
  const std::int64_t rollup_bytes = into.rollup_bytes + more.rollup_bytes;
  for (const CapRemoval& each : more.removals) into.Add(each);
  into.sample_count = sample_count;
  into.raw_bytes = raw_bytes;
  into.rollup_bytes = rollup_bytes;
  into.truncated = into.truncated || more.truncated;
}

absl::Status TimeIsOver(const Swept& swept) {
  return absl::DeadlineExceededError(
      absl::StrCat("the time is over and something is left: so far ", swept.removed.sample_count,
                   " samples went, with ", swept.removed.raw_bytes, " bytes, and ",
                   swept.removed.rollup_bytes, " bytes of rollups; later sweeps go on"));
}

absl::Status PlaceFailed(const absl::Status& failed, const Swept& swept) {
  return Annotate(failed, absl::StrCat("all else was swept (", swept.removed.sample_count,
                                       " samples went), but not this"));
}

}  // namespace

void SweepLoop::Start() {
  worker_ = Worker("sweep", [this] { Run(); });
}

void SweepLoop::AskStop() {
  absl::MutexLock lock(&mu_);
  stopping_ = true;
}

void SweepLoop::Stop() {
  AskStop();
  worker_.Join();
}

bool SweepLoop::stopping() const {
  absl::MutexLock lock(&mu_);
  return stopping_;
}

bool SweepLoop::WaitForTime() {
  absl::MutexLock lock(&mu_);
  mu_.AwaitWithTimeout(absl::Condition(&stopping_), options_.interval);
  return !stopping_;
}

std::int64_t SweepLoop::NowUs() {
  absl::MutexLock lock(&mu_);
  const absl::Time now = believed_.At(parts_.clock.Now(), parts_.clock.Monotonic());
  const bool doubts = believed_.ahead() > absl::ZeroDuration();
  if (doubts && !doubt_told_) {
    log::Warning(
        "wall_clock_ahead",
        {{"seconds", absl::ToInt64Seconds(believed_.ahead())},
         {"effect",
          "nothing is removed for its age by it before it has stood for a day; set it right, or "
          "start the master anew where it is right"}});
  }
  doubt_told_ = doubts;
  return absl::ToUnixMicros(now);
}

void SweepLoop::Run() {
  (void)NowUs();  // what it is now is what a jump is told from
  while (WaitForTime()) {
    if (!parts_.state.Get().ready()) continue;
    const absl::Duration begin = parts_.clock.Monotonic();
    const auto swept =
        SweepNow(std::nullopt, kAllProjects, SteadyTime::InfiniteFuture(), [] { return false; });
    if (!swept.ok()) {
      if (!stopping()) log::Warning("sweep_failed", {{"status", swept.status().ToString()}});
      continue;
    }
    if (swept->removed.removals.empty() && swept->deleted_row_count == 0) continue;
    log::Info("swept", {{"samples", swept->removed.sample_count},
                        {"raw_bytes", swept->removed.raw_bytes},
                        {"rollup_bytes", swept->removed.rollup_bytes},
                        {"deleted_rows", swept->deleted_row_count},
                        {"leaves_left", swept->leaves_left},
                        {"took_ms", absl::ToInt64Milliseconds(parts_.clock.Monotonic() - begin)}});
  }
}

absl::StatusOr<Swept> SweepLoop::SweepNow(const std::optional<CapsTarget>& target,
                                          const ProjectFilter& projects, SteadyTime deadline,
                                          const std::function<bool()>& cancelled) {
  {
    const auto is_free = [this]()
                             ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !is_sweeping_ || stopping_; };
    absl::MutexLock lock(&mu_);
    if (!mu_.AwaitWithTimeout(absl::Condition(&is_free), deadline.Left())) {
      return absl::DeadlineExceededError("another sweep is under way");
    }
    if (stopping_) return absl::UnavailableError("this master is stopping");
    is_sweeping_ = true;
  }
  const absl::Cleanup release = [this] {
    absl::MutexLock lock(&mu_);
    is_sweeping_ = false;
  };
  const MasterState::Snapshot now = parts_.state.Get();
  if (!now.ready()) return absl::UnavailableError(now.reason());
  Swept total;
  absl::Status failed = absl::OkStatus();
  while (true) {
    const auto swept = parts_.store.Sweep(
        now.epoch, {.target = target, .now_us = NowUs(), .duration_max = kCallDuration}, projects);
    if (!swept.ok()) {
      if (absl::IsAborted(swept.status())) parts_.state.ReportLost(now.epoch);
      return swept.status();
    }
    Append(swept->removed, total.removed);
    removed_sample_count_.fetch_add(swept->removed.sample_count, std::memory_order_relaxed);
    total.leaves_left = swept->leaves_left;
    total.deleted_row_count += swept->deleted_row_count;
    if (failed.ok()) failed = swept->failed;
    // Called again at once it would find the same and come no further: the next sweep tries.
    if (!swept->more || !swept->came_further()) break;
    if (stopping()) return absl::UnavailableError("this master is stopping");
    if (cancelled()) return absl::CancelledError("nobody waits for the sweep any more");
    if (deadline.HasPassed()) return TimeIsOver(total);
  }
  if (!failed.ok()) return PlaceFailed(failed, total);
  total.removed.Sort();
  return total;
}

}  // namespace stepwell
