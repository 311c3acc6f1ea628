#include "server/ownership_loop.h"

#include <optional>
#include <utility>

#include "base/backoff.h"
#include "base/log.h"
#include "server/credit_plan.h"
#include "server/ingest_stream.h"

namespace stepwell {
namespace {

// How soon a loss that others found is acted on, and credit begins to flow again.
constexpr absl::Duration kTick = absl::Milliseconds(100);
// How soon writers are told again that there is no credit.
constexpr absl::Duration kStopAgain = absl::Seconds(1);

// What clients are told as their streams end.
constexpr char kAnotherMaster[] = "another master owns the database now";
constexpr char kAnotherDatabase[] = "the database is another one now";

}  // namespace

void OwnershipLoop::Start() {
  worker_ = Worker("ownership", [this] { Run(); });
}

void OwnershipLoop::Stop() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  worker_.Join();
  replay_.Join();
  Release();
}

void OwnershipLoop::Release() {
  const std::int64_t epoch = std::exchange(epoch_, 0);
  if (epoch == 0 || !parts_.recovery.state.Get().database_up) return;
  const absl::Status released = parts_.recovery.store.ReleaseOwnership(options_.master_id, epoch);
  if (released.ok()) return log::Info("ownership_released", {{"epoch", epoch}});
  log::Warning("release_failed", {{"epoch", epoch}, {"status", released.ToString()}});
}

bool OwnershipLoop::stopping() const {
  absl::MutexLock lock(&mu_);
  return stopping_;
}

bool OwnershipLoop::Sleep(absl::Duration length) {
  absl::MutexLock lock(&mu_);
  mu_.AwaitWithTimeout(absl::Condition(&stopping_), length);
  return !stopping_;
}

void OwnershipLoop::Run() {
  SteadyTime next_renewal = SteadyTime::InfinitePast();
  do {
    if (parts_.recovery.state.lost_reported()) {
      Lose("the database has another owner", kAnotherMaster);
      next_renewal = SteadyTime::InfinitePast();
    }
    if (next_renewal.HasPassed()) {
      Renew();
      // Nobody has credit while the database is away: it is asked for as often as a standby asks.
      const bool waits = epoch_ == 0 || !parts_.recovery.state.Get().database_up;
      next_renewal =
          SteadyTime::Now() + (waits ? options_.standby_interval : options_.renew_interval);
      looks_at_trials_ = true;
    }
    LookAtTrials();
    RefreshCredit();
    parts_.director.Look([this](TrialId trial_id, WriterNo writer_no) {
      return parts_.recovery.registry.HeardAt(trial_id, writer_no);
    });
    parts_.on_change();
  } while (Sleep(kTick));
}

// Between two renewals as much as there is time for: TrialKeeper has the invariant.
void OwnershipLoop::LookAtTrials() {
  // Not on a database that hangs: clients wait for their credit meanwhile.
  if (!looks_at_trials_ || epoch_ == 0 || !parts_.recovery.state.Get().database_up) return;
  looks_at_trials_ = !parts_.trial_keeper.Look(epoch_);
}

void OwnershipLoop::Renew() {
  MasterState& state = parts_.recovery.state;
  const auto owner = parts_.recovery.store.AcquireOwnership(
      {.master_id = options_.master_id,
       .address = options_.address,
       .epoch = epoch_,
       .last_epoch = last_epoch_,
       .lapsed_renewal_us = lapse_.lapsed_renewal_us(SteadyTime::Now())});
  if (owner.ok()) {
    if (owner->is_owner) last_epoch_ = owner->epoch;
    TellOfToken(owner->owner_before);
  }
  if (owner.ok() && !owner->is_owner) {
    lapse_.Saw(owner->renewal_us, owner->renewed_age_seconds, SteadyTime::Now());
  } else {
    lapse_.SawNothing();
  }
  const absl::Status status = owner.ok() ? owner->look : owner.status();
  if (!status.ok()) {
    // Not lost: nobody can have taken it unseen, since every commit checks the epoch.
    const bool news = state.Get().database_up;
    state.SetDatabase(status);
    if (news) log::Warning("database_down", {{"status", status.ToString()}});
    return;
  }
  if (!state.Get().database_up) log::Info("database_up");
  state.SetDatabase(absl::OkStatus());
  const bool renews = owner->is_owner && owner->epoch == epoch_;
  const bool is_another = owner->is_owner && owner->incarnation != state.incarnation();
  if (is_another) MeetAnotherDatabase(owner->incarnation);
  // What is known of its writers is of the one before: all of it is read again, under an epoch of its own.
  if (renews) return is_another ? Renew() : void();
  if (epoch_ != 0) Lose("the ownership was taken", kAnotherMaster);
  if (owner->is_owner) return Own(owner->epoch);
  if (state.Get().owner_id != owner->owner_id) {
    log::Info("standing_by", {{"owner", owner->owner_id}, {"epoch", owner->epoch}});
  }
  state.BecomeStandby(owner->owner_id, owner->renewed_age_seconds);
}

// That one's file has another token, which opens nothing here, and agents are refused that show it.
void OwnershipLoop::TellOfToken(const std::string& owner_before) {
  const bool is_others = !owner_before.empty() && owner_before != options_.master_id;
  if (options_.token_file_made.empty() || !is_others || is_token_told_) return;
  is_token_told_ = true;
  log::Warning("token_is_this_masters_alone",
               {{"file", options_.token_file_made},
                {"owner_before", owner_before},
                {"why",
                 "this start made the file, and the database is, or was, another master's: "
                 "the token in that one's file opens nothing here, this one nothing there; "
                 "put the same file at all masters of a database"}});
}

void OwnershipLoop::Own(std::int64_t epoch) {
  replay_.Join();  // of an earlier epoch; ends by itself
  auto taken = TakeOverAndRenew(epoch);
  if (!taken.ok()) {
    // The next renewal, as nobody's owner, takes it again with a new epoch.
    parts_.recovery.state.SetDatabase(taken.status());
    log::Warning("take_over_failed", {{"status", taken.status().ToString()}});
    return;
  }
  epoch_ = epoch;
  parts_.recovery.state.BecomeOwner(epoch, !taken->trials.empty());
  replay_ = Worker("replay", [this, epoch, taken = *std::move(taken)] { Replay(epoch, taken); });
}

// Of many writers it takes longer than an ownership lapses: unrenewed, who stands by would take it meanwhile, and lose it so
// himself.
absl::StatusOr<TakenOver> OwnershipLoop::TakeOverAndRenew(std::int64_t epoch) {
  absl::Mutex mu;
  std::optional<absl::StatusOr<TakenOver>> taken;
  Worker worker("take-over", [&] {
    absl::StatusOr<TakenOver> result = TakeOver(parts_.recovery, epoch);
    absl::MutexLock lock(&mu);
    taken = std::move(result);
  });
  bool is_lost = false;
  const auto is_done = [&] { return taken.has_value(); };
  for (bool done = false; !done;) {
    {
      absl::MutexLock lock(&mu);
      done = mu.AwaitWithTimeout(absl::Condition(&is_done), options_.renew_interval);
    }
    if (done || is_lost) continue;
    const auto owner = parts_.recovery.store.AcquireOwnership({.master_id = options_.master_id,
                                                               .address = options_.address,
                                                               .epoch = epoch,
                                                               .last_epoch = epoch});
    // What cannot be asked is asked again; another database is met once this has ended.
    if (!owner.ok() || !owner->look.ok()) continue;
    is_lost = !owner->is_owner || owner->epoch != epoch ||
              owner->incarnation != parts_.recovery.state.incarnation();
  }
  worker.Join();
  if (!is_lost) return *std::move(taken);
  // What it read is another owner's: a standby would answer reads, and be followed, from what nobody brings up to date.
  parts_.recovery.heads.Clear();
  parts_.recovery.registry.Clear();
  return absl::AbortedError("the ownership was taken during the take-over");
}

// Heads are of the one before: nobody reads them under the new name. Who streams was told of the one before as the stream
// began, those too that have begun since Lose.
void OwnershipLoop::MeetAnotherDatabase(const Uuid& incarnation) {
  if (epoch_ != 0) Lose("the database is another one", kAnotherDatabase);
  parts_.recovery.state.SetIncarnation(incarnation);
  parts_.on_another_database();
  EndStreams(kAnotherDatabase);
}

void OwnershipLoop::Replay(std::int64_t epoch, const TakenOver& taken) {
  Backoff backoff({.first = absl::Milliseconds(100), .longest = absl::Seconds(1)});
  while (!stopping() && parts_.recovery.state.epoch() == epoch) {
    const absl::Status replayed = ReplayJournal(parts_.recovery, epoch, taken);
    if (replayed.ok()) return;
    log::Warning("replay_failed", {{"status", replayed.ToString()}});
    Sleep(backoff.NextDelay());
  }
}

void OwnershipLoop::Lose(absl::string_view why, const char* told) {
  log::Warning("ownership_lost", {{"epoch", epoch_}, {"why", why}});
  const RecoveryParts& recovery = parts_.recovery;
  // Nothing of this epoch may enter heads after they were cleared.
  recovery.state.EndOwnership(epoch_, [&] { recovery.heads.Clear(); });
  epoch_ = 0;
  EndStreams(told);
  for (const CheckedChunk& chunk : parts_.queue.Clear()) {
    chunk.listener->End(absl::UnavailableError(told));
  }
  recovery.registry.Clear();
  parts_.director.Clear();
}

void OwnershipLoop::EndStreams(const char* why) {
  parts_.recovery.registry.ForEachStream(
      [&](IngestStream& stream) { stream.End(absl::UnavailableError(why)); });
}

void OwnershipLoop::RefreshCredit() {
  const MasterState::Snapshot now = parts_.recovery.state.Get();
  CreditLoad load;
  load.may_take = now.accepting();
  load.queue_bytes = parts_.queue.bytes();
  load.queue_bytes_max = parts_.queue.bytes_max();
  load.unfolded_bytes = parts_.recovery.heads.unfolded_bytes();
  load.unfolded_bytes_max = options_.unfolded_bytes_max;
  const bool flows = PlanCredit(load) > 0;
  // The ack of a commit that was under way may have told its writer otherwise since; and one may have been told that it has
  // none, and have nothing under way that would tell it more, while this was looking elsewhere.
  const bool again = flows ? parts_.recovery.registry.TakeStopped() : next_stop_.HasPassed();
  if (flows == credit_flows_ && !again) return;
  if (flows != credit_flows_ && epoch_ != 0) {
    log::Info(flows ? "credit_flows" : "credit_stopped", {});
  }
  credit_flows_ = flows;
  next_stop_ = SteadyTime::Now() + kStopAgain;
  parts_.recovery.registry.ForEachStream([](IngestStream& stream) { stream.RefreshCredit(); });
}

}  // namespace stepwell
