#include "server/trial_keeper.h"

#include "absl/time/time.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace stepwell {
namespace {

bool IsEnd(TrialState state) {
  return state == TrialState::kCompleted || state == TrialState::kFailed;
}

}  // namespace

absl::StatusOr<TrialState> TrialKeeper::Derive(TrialId trial_id) {
  const std::vector<WriterFact> known = registry_.FactsOf(trial_id);
  if (known.empty()) return absl::NotFoundError("no writer of it is known");
  const SteadyTime now = SteadyTime::Now(clock_);
  const TrialState state = DeriveTrialState(known, now);
  if (!IsEnd(state)) return state;
  // The end of a trial depends on writers that ended before this master started, or before the trial
  // ended once before, too.
  STEPWELL_ASSIGN_OR_RETURN(const TrialWriters stored, store_.ReadTrialWriters(trial_id));
  if (stored.open.empty()) return stored.any_died ? TrialState::kFailed : TrialState::kCompleted;
  std::vector<WriterFact> open;
  for (const WriterNo writer_no : stored.open) {
    open.push_back({WriterState::kOpen, registry_.HeardAt(trial_id, writer_no)});
  }
  return DeriveTrialState(open, now);
}

void TrialKeeper::BeginRound(std::int64_t epoch) {
  if (epoch != epoch_) {
    stored_.clear();
    due_.clear();
  }
  epoch_ = epoch;
  if (!due_.empty()) return;
  for (const TrialId trial_id : registry_.Trials()) due_.push_back({trial_id});
}

bool TrialKeeper::Look(std::int64_t epoch) {
  began_ = clock_.Monotonic();
  BeginRound(epoch);
  while (!due_.empty()) {
    if (!HasTime()) return false;
    const Due due = due_.back();
    due_.pop_back();
    const auto state = due.state ? absl::StatusOr<TrialState>(*due.state) : Derive(due.trial_id);
    if (absl::IsNotFound(state.status())) {
      stored_.erase(due.trial_id);
      continue;
    }
    if (!state.ok()) return true;  // the database does not answer: the next look is soon enough
    if (!due.state && !HasTime()) {
      due_.push_back({due.trial_id, *state});
      return false;
    }
    Keep(due.trial_id, *state);
  }
  return true;
}

void TrialKeeper::Keep(TrialId trial_id, TrialState state) {
  const auto stored = stored_.find(trial_id);
  const bool is_news = stored == stored_.end() || stored->second != state;
  if (is_news && !Store(trial_id, state)) return;
  if (!IsEnd(state)) return;
  registry_.ForgetTrial(trial_id);
  stored_.erase(trial_id);
}

bool TrialKeeper::Store(TrialId trial_id, TrialState state) {
  const absl::Status status = store_.SetTrialState(trial_id, state, epoch_);
  if (absl::IsNotFound(status)) {  // deleted meanwhile
    registry_.DropTrial(trial_id);
    stored_.erase(trial_id);
    return false;
  }
  if (!status.ok()) {
    log::Warning("set_trial_state_failed",
                 {{"trial", Value(trial_id)}, {"status", status.ToString()}});
    return false;
  }
  log::Info("trial_state", {{"trial", Value(trial_id)}, {"state", static_cast<int>(state)}});
  stored_[trial_id] = state;
  return true;
}

}  // namespace stepwell
