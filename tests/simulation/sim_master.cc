#include "tests/simulation/sim_master.h"

#include <utility>

namespace stepwell::simulation {
namespace {

// The committer asks the database again at once: time passes inside of the call.
GroupCommitter::Options WithoutWaits() {
  return {.backoff = {.first = absl::ZeroDuration(), .longest = absl::ZeroDuration()}};
}

}  // namespace

SimMaster::SimMaster(SimDatabase& database, const Clock& clock, std::function<void()> meanwhile,
                     Trace& trace)
    : database_(database),
      trace_(trace),
      store_(database, std::move(meanwhile), killed_),
      heads_({.clock = &clock}),
      registry_(clock),
      director_(clock),
      queue_({.chunk_count_max = 16}),
      committer_(WithoutWaits(), {store_, queue_, heads_, state_, stats_, clock}),
      context_{store_, queue_, heads_, state_, stats_, registry_, director_, clock} {}

bool SimMaster::Start() {
  const auto owner = store_.AcquireOwnership({.master_id = "master", .address = "here"});
  if (!owner.ok() || !owner->is_owner) return false;
  auto taken = TakeOver(Recovery(), owner->epoch);
  if (!taken.ok()) return false;
  epoch_ = owner->epoch;
  state_.SetIncarnation(owner->incarnation);
  state_.SetDatabase(absl::OkStatus());
  state_.BecomeOwner(epoch_, !taken->trials.empty());
  unreplayed_ = *std::move(taken);
  trace_.Add("master of epoch ", epoch_, " starts");
  return true;
}

void SimMaster::Replay() {
  if (!unreplayed_ || !serves()) return;
  const absl::Status replayed = ReplayJournal(Recovery(), epoch_, *unreplayed_);
  trace_.Add("epoch ", epoch_, " replays, code ", static_cast<int>(replayed.code()));
  if (replayed.ok()) unreplayed_.reset();
  // One that was replaced reads beside the folds of the next; and what it read first of a database that has been set
  // back since is of that one.
  const bool is_alone = epoch_ == database_.newest_epoch() && store_.is_in_its_place();
  if (stats_.sequences_lost > 0 && is_alone) database_.Fail("the journal lacks what is committed");
}

void SimMaster::Commit() {
  if (killed_ || committing_) return;
  committing_ = true;
  try {
    committer_.CommitNext(SteadyTime::InfinitePast());
  } catch (const MasterKilled&) {
    trace_.Add("  epoch ", epoch_, " dies in a commit");
  }
  committing_ = false;
}

// As OwnershipLoop.
void SimMaster::Tick() {
  if (!serves()) return;
  const auto owner = store_.AcquireOwnership(
      {.master_id = "master", .address = "here", .epoch = epoch_, .last_epoch = epoch_});
  if (!owner.ok()) {
    state_.SetDatabase(owner.status());
  } else if (state_.lost_reported() || !owner->is_owner || owner->epoch != epoch_ ||
             owner->incarnation != state_.incarnation()) {
    return Lose();
  } else {
    state_.SetDatabase(absl::OkStatus());
  }
  registry_.ForEachStream([](IngestStream& stream) { stream.RefreshCredit(); });
}

void SimMaster::Lose() {
  trace_.Add("epoch ", epoch_, " is lost");
  state_.EndOwnership(epoch_, [this] { heads_.Clear(); });
  const absl::Status why = absl::UnavailableError("another master owns the database now");
  registry_.ForEachStream([&why](IngestStream& stream) { stream.End(why); });
  for (const CheckedChunk& chunk : queue_.Clear()) chunk.listener->End(why);
  registry_.Clear();
  director_.Clear();
}

void SimMaster::Fold(std::int64_t bytes_max, Then then) {
  if (!serves() || !whole()) return;
  const Heads::FoldPlan plan = heads_.PlanFold(std::nullopt, bytes_max);
  if (plan.hole) return state_.ReportLost(epoch_);
  if (plan.folds.empty()) return;
  const absl::Status folded = store_.is_in_its_place() ? database_.Fold(epoch_, plan.folds)
                                                       : absl::AbortedError("another database");
  trace_.Add("fold of epoch ", epoch_, ": ", plan.chunks.size(), " chunks, code ",
             static_cast<int>(folded.code()));
  if (folded.code() == absl::StatusCode::kAborted) return state_.ReportLost(epoch_);
  if (!folded.ok()) return;
  if (then == Then::kDie) return Kill();
  heads_.Folded(plan.folds, *folds_.NextFoldNo());
}

}  // namespace stepwell::simulation
