#include "server/fold_loop.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/fold_pace.h"
#include "storage/fold_plan.h"
#include "storage/fold_spread.h"

namespace stepwell {
namespace {

// How often the thread looks at unfolded bytes between folds.
constexpr absl::Duration kLookInterval = absl::Milliseconds(200);
constexpr absl::Duration kAttachInterval = absl::Minutes(10);
// Requests that wait; more than a few mean that something hangs.
constexpr std::size_t kRequestCountMax = 1024;
// Of tens of milliseconds each.
constexpr int kMergesPerFold = 8;

}  // namespace

void FoldLoop::Start() {
  next_fold_time_ = SteadyTime::Now(parts_.clock) + options_.interval;
  next_attach_time_ = SteadyTime::InfinitePast();
  worker_ = Worker("fold", [this] { Run(); });
}

void FoldLoop::Stop() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  worker_.Join();
  absl::MutexLock lock(&mu_);
  for (const auto& request : requests_) {
    request->result = absl::UnavailableError("this master is stopping");
    request->done = true;
  }
  requests_.clear();
}

absl::StatusOr<FoldedCounts> FoldLoop::FoldNow(std::optional<TrialId> trial_id,
                                               SteadyTime deadline) {
  auto request = std::make_shared<Request>();
  request->trial_id = trial_id;
  absl::MutexLock lock(&mu_);
  if (stopping_) return absl::UnavailableError("this master is stopping");
  if (requests_.size() >= kRequestCountMax) {
    return absl::ResourceExhaustedError("too many folds are waiting");
  }
  requests_.push_back(request);
  if (!mu_.AwaitWithTimeout(absl::Condition(&request->done), deadline.Left())) {
    return absl::DeadlineExceededError("the fold goes on, its answer was not waited for");
  }
  return request->result;
}

void FoldLoop::FoldSoon(TrialId trial_id) {
  auto request = std::make_shared<Request>();
  request->trial_id = trial_id;
  absl::MutexLock lock(&mu_);
  if (stopping_ || requests_.size() >= kRequestCountMax) return;
  for (const auto& waiting : requests_) {
    if (waiting->trial_id == trial_id) return;
  }
  requests_.push_back(std::move(request));
}

bool FoldLoop::WaitForWork(std::vector<std::shared_ptr<Request>>& requests, bool& all) {
  const auto has_work = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return HasWorkLocked(); };
  absl::MutexLock lock(&mu_);
  mu_.AwaitWithTimeout(absl::Condition(&has_work), kLookInterval);
  if (stopping_) return false;
  requests.swap(requests_);
  all = MustFold();
  return true;
}

bool FoldLoop::MustFold() const {
  return next_fold_time_.HasPassed(parts_.clock) ||
         parts_.heads.unfolded_bytes() > options_.unfolded_bytes_soft;
}

void FoldLoop::Run() {
  while (true) {
    std::vector<std::shared_ptr<Request>> requests;
    bool all = false;
    if (!WaitForWork(requests, all)) {
      absl::MutexLock lock(&mu_);
      requests_.insert(requests_.end(), requests.begin(), requests.end());
      return;
    }
    if (next_attach_time_.HasPassed(parts_.clock) && parts_.state.Get().ready()) {
      const absl::Status attached =
          parts_.store.AttachLeaves(absl::ToUnixMicros(parts_.clock.Now()));
      if (!attached.ok()) log::Warning("attach_leaves_failed", {{"status", attached.ToString()}});
      next_attach_time_ =
          SteadyTime::Now(parts_.clock) + (attached.ok() ? kAttachInterval : absl::Seconds(1));
    }
    Answer(requests);
    if (!all) {
      // One at least after whatever was asked for: where somebody closes all the time, merges would come round with
      // folds of everything alone, a few each.
      if (merges_wait_ && parts_.state.epoch() != 0) Merge(parts_.state.epoch());
      continue;
    }
    const SteadyTime begin = SteadyTime::Now(parts_.clock);
    const auto folded = Fold(std::nullopt);
    parts_.heads.DropOldFollowed();
    next_fold_time_ =
        begin + NextFoldInterval(options_.interval, folded.ok() ? folded->row_count : 0);
    if (!folded.ok() && parts_.state.epoch() != 0) {
      log::Warning("fold_failed", {{"status", folded.status().ToString()}});
    }
    if (folded.ok()) TidyUp();
  }
}

void FoldLoop::Answer(const std::vector<std::shared_ptr<Request>>& requests) {
  for (const auto& request : requests) {
    auto result = Fold(request->trial_id);
    absl::MutexLock lock(&mu_);
    request->result = std::move(result);
    request->done = true;
  }
}

absl::StatusOr<FoldedCounts> FoldLoop::Fold(std::optional<TrialId> trial_id) {
  const MasterState::Snapshot now = parts_.state.Get();
  if (now.epoch == 0) return absl::UnavailableError(now.reason());
  const absl::Duration begin = parts_.clock.Monotonic();
  FoldedCounts counts;
  absl::flat_hash_set<TrialId> trials;
  // What comes meanwhile waits for the next time: a steady stream would keep those who wait for this
  // fold, and merges and recycling, waiting for ever.
  const Heads::FoldTarget target = parts_.heads.NewestUnfolded(trial_id);
  while (true) {
    Heads::FoldPlan plan = parts_.heads.PlanFold(trial_id, options_.slice_bytes, &target);
    if (plan.hole) return EndForHole(now.epoch, *plan.hole);
    if (plan.folds.empty()) break;
    STEPWELL_RETURN_IF_ERROR(failpoint::Check("before_fold"));
    for (const WriterFold& fold : plan.folds) trials.insert(fold.trial_id);
    for (const auto& folds : CutBySpread(std::move(plan.folds), options_.slice_rows)) {
      STEPWELL_RETURN_IF_ERROR(FoldPlanned(now.epoch, folds, counts));
    }
  }
  counts.trial_count = static_cast<int>(trials.size());
  if (counts.trial_count > 0) {
    log::Debug("folded", {{"trials", counts.trial_count},
                          {"samples", counts.sample_count},
                          {"took_ms", TookMs(begin)}});
  }
  return counts;
}

// The database holds it, in the journal, which the next epoch's replay reads.
absl::Status FoldLoop::EndForHole(std::int64_t epoch,
                                  const std::pair<TrialId, WriterNo>& hole) const {
  log::Error("acked_not_in_heads",
             {{"trial", Value(hole.first)}, {"writer_no", Value(hole.second)}, {"epoch", epoch}});
  parts_.state.ReportLost(epoch);
  return absl::UnavailableError("some of what is acked is not in memory: it is read back");
}

absl::Status FoldLoop::FoldPlanned(std::int64_t epoch, const std::vector<WriterFold>& folds,
                                   FoldedCounts& counts) {
  std::map<TrialId, std::vector<WriterFold>> bulk;
  for (const WriterFold& fold : folds) {
    if (HoldsBulk(fold)) bulk.try_emplace(fold.trial_id);
  }
  std::vector<WriterFold> others;
  for (const WriterFold& fold : folds) {
    const auto trial = bulk.find(fold.trial_id);
    (trial == bulk.end() ? others : trial->second).push_back(fold);
  }
  for (const auto& [trial_id, of_trial] : bulk) {
    bool taken = false;
    if (parts_.heads.BeginBulk(trial_id)) {
      STEPWELL_ASSIGN_OR_RETURN(taken, FoldBulk(epoch, trial_id, of_trial, counts));
    }
    if (!taken) others.insert(others.end(), of_trial.begin(), of_trial.end());
  }
  if (others.empty()) return absl::OkStatus();
  return NoteFolded(epoch, others, parts_.store.Fold(epoch, others), counts);
}

absl::StatusOr<bool> FoldLoop::FoldBulk(std::int64_t epoch, TrialId trial_id,
                                        const std::vector<WriterFold>& folds,
                                        FoldedCounts& counts) {
  const std::int64_t now_us = absl::ToUnixMicros(parts_.clock.Now());
  const auto folded =
      parts_.store.FoldBulk(epoch, folds, DayOf(now_us - options_.merge.ripe_age_us));
  const bool is_refused = folded.ok() && !folded->has_value();
  absl::Status noted = absl::OkStatus();
  if (!is_refused) {
    noted = NoteFolded(
        epoch, folds, folded.ok() ? absl::StatusOr<FoldResult>(**folded) : folded.status(), counts);
  }
  // Rows that may be there, or not, must meet no reader beside the heads of before: who waits goes on when these
  // were cleared, which they are already where this ownership has ended.
  const bool in_doubt = absl::IsUnknown(folded.status());
  if (in_doubt) parts_.state.ReportLost(epoch);
  if (!in_doubt || !parts_.state.IfOwner(epoch, [] {})) parts_.heads.EndBulk(trial_id);
  STEPWELL_RETURN_IF_ERROR(noted);
  return !is_refused;
}

absl::Status FoldLoop::NoteFolded(std::int64_t epoch, const std::vector<WriterFold>& folds,
                                  const absl::StatusOr<FoldResult>& folded, FoldedCounts& counts) {
  if (!folded.ok()) {
    // It may be stored all the same: as a whole where its COMMIT is in doubt, in part where it was halved. Pins keep
    // readers from such rows of recent by their fold's number. Those of metrics have none, and a fold of others
    // raises MergeableFoldNo above it: so nothing is merged until all is folded again, which goes on from where the
    // writers stand or, where they do not stand there, ends this ownership below. To end it at once would read back
    // the journal and part all clients, for a database that in most cases was away for a moment and stored nothing.
    merges_wait_ = false;
    // Aborted: another owner. FailedPrecondition: what we hold and what the database says differ;
    // both are mended by beginning again from the database.
    if (absl::IsAborted(folded.status()) || absl::IsFailedPrecondition(folded.status())) {
      parts_.state.ReportLost(epoch);
    }
    return folded.status();
  }
  STEPWELL_FAILPOINT("after_fold_before_heads");
  if (!parts_.state.IfOwner(epoch, [&] { parts_.heads.Folded(folds, folded->fold_no); })) {
    return absl::UnavailableError("another master owns the database now");
  }
  counts.sample_count += folded->sample_count;
  counts.row_count += folded->row_count;
  return absl::OkStatus();
}

void FoldLoop::TidyUp() {
  const std::int64_t epoch = parts_.state.epoch();
  if (epoch == 0) return;
  Merge(epoch);
  Recycle(epoch);
}

std::int64_t FoldLoop::TookMs(absl::Duration begin) const {
  return absl::ToInt64Milliseconds(parts_.clock.Monotonic() - begin);
}

void FoldLoop::Merge(std::int64_t epoch) {
  merges_wait_ = false;
  for (int calls = 1;; ++calls) {
    MergeLimits limits = options_.merge;
    limits.fold_no_max = parts_.heads.MergeableFoldNo();
    limits.now_us = absl::ToUnixMicros(parts_.clock.Now());
    const absl::Duration begin = parts_.clock.Monotonic();
    const auto merged = parts_.store.Merge(epoch, limits);
    if (!merged.ok()) {
      log::Warning("merge_failed", {{"status", merged.status().ToString()}});
      if (merged.status().code() == absl::StatusCode::kAborted) parts_.state.ReportLost(epoch);
      return;
    }
    log::Debug("merged", {{"recent_rows", merged->recent_rows_taken},
                          {"metrics_rows", merged->metrics_rows_made},
                          {"took_ms", TookMs(begin)}});
    if (!merged->more) return;
    // Folds go first: what waits for one is what fills memory. Not so soon that merges would never come
    // round: what they leave behind fills the ring.
    merges_wait_ = calls >= kMergesPerFold && MustFold();
    if (merges_wait_) return;
    absl::MutexLock lock(&mu_);
    merges_wait_ = HasWorkLocked();
    if (merges_wait_) return;
  }
}

void FoldLoop::Recycle(std::int64_t epoch) {
  // In this order: a chunk committed after the first line is in the segment that commits write into, which only
  // RecycleJournal changes; one committed before is younger than the first line, or in heads when the second looks.
  const std::int64_t settled_us = parts_.settled_before_us();
  const std::int64_t folded_us = parts_.heads.PlanFold(std::nullopt, 0).all_before_us;
  const absl::Duration begin = parts_.clock.Monotonic();
  const absl::Status journal = parts_.store.RecycleJournal(epoch, std::min(settled_us, folded_us));
  if (!journal.ok()) log::Warning("recycle_journal_failed", {{"status", journal.ToString()}});
  if (journal.code() == absl::StatusCode::kAborted) return parts_.state.ReportLost(epoch);
  const absl::Status recent = parts_.store.RecycleRecent(epoch);
  if (!recent.ok()) log::Warning("recycle_recent_failed", {{"status", recent.ToString()}});
  log::Debug("recycled", {{"took_ms", TookMs(begin)}});
}

}  // namespace stepwell
