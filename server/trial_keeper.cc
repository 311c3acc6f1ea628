#include "server/trial_keeper.h"

#include <vector>

#include "base/log.h"
#include "base/status_macros.h"

namespace stepwell {

absl::StatusOr<TrialState> TrialKeeper::Derive(TrialId trial_id, WriterRegistry::Facts facts,
                                               std::int64_t now_us) {
  std::vector<WriterFact> known;
  for (const auto& [writer_no, fact] : facts) known.push_back(fact);
  TrialState state = DeriveTrialState(known, now_us);
  if (state != TrialState::kCompleted && state != TrialState::kFailed) return state;
  // The end of a trial depends on writers that ended before this master started, or before the trial
  // ended once before, too.
  STEPWELL_ASSIGN_OR_RETURN(const auto rows, ReadAllWriters(trial_id));
  known.clear();
  for (const WriterProgress& row : rows) {
    const auto fact = facts.find(row.writer_no);
    known.push_back({row.state, fact == facts.end() ? 0 : fact->second.seen_time_us});
  }
  return known.empty() ? state : DeriveTrialState(known, now_us);
}

absl::StatusOr<std::vector<WriterProgress>> TrialKeeper::ReadAllWriters(TrialId trial_id) {
  // They are numbered from 1 without gaps; how many there are, the database alone knows.
  constexpr std::int32_t kBlock = 256;
  std::vector<WriterProgress> all;
  for (std::int32_t first = 1;; first += kBlock) {
    std::vector<WriterNo> numbers;
    for (std::int32_t no = first; no < first + kBlock; ++no) {
      numbers.push_back(static_cast<WriterNo>(no));
    }
    STEPWELL_ASSIGN_OR_RETURN(const auto rows, store_.ReadProgress(trial_id, numbers));
    all.insert(all.end(), rows.begin(), rows.end());
    if (rows.size() < numbers.size()) return all;
  }
}

void TrialKeeper::Look(std::int64_t epoch) {
  if (epoch != epoch_) stored_.clear();
  epoch_ = epoch;
  const std::int64_t now_us = absl::ToUnixMicros(clock_.Now());
  for (auto& [trial_id, facts] : registry_.TrialFacts()) {
    const auto state = Derive(trial_id, facts, now_us);
    if (!state.ok()) return;  // the database does not answer: the next look is soon enough
    const auto stored = stored_.find(trial_id);
    if (stored == stored_.end() || stored->second != *state) {
      const absl::Status status = store_.SetTrialState(trial_id, *state, epoch);
      if (absl::IsNotFound(status)) {  // deleted meanwhile
        registry_.DropTrial(trial_id);
        stored_.erase(trial_id);
        continue;
      }
      if (!status.ok()) {
        log::Warning("set_trial_state_failed",
                     {{"trial", Value(trial_id)}, {"status", status.ToString()}});
        continue;
      }
      log::Info("trial_state", {{"trial", Value(trial_id)}, {"state", static_cast<int>(*state)}});
      stored_[trial_id] = *state;
    }
    if (*state == TrialState::kCompleted || *state == TrialState::kFailed) {
      registry_.ForgetTrial(trial_id);
      stored_.erase(trial_id);
    }
  }
}

}  // namespace stepwell
