#include "client/agent/trial_sampler.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

// Each try makes a directory: not one each visit while the disk is full.
constexpr absl::Duration kTryAgainInterval = absl::Seconds(10);
// Between ticks: a visit for each of these is no more than others.
constexpr absl::Duration kRestingInterval = absl::Seconds(1);

}  // namespace

TrialSampler::TrialSampler(Options options, SamplerHome home)
    : options_(std::move(options)), home_(std::move(home)), selection_(options_.selection) {}

bool TrialSampler::IsWanted(const LiveTrial& live) const {
  return !ending_ && (options_.stays || live.NewestThatSamples() != nullptr);
}

std::string TrialSampler::WantedAttemptKey(const LiveTrial& live) const {
  if (!options_.attempt_key.empty()) return options_.attempt_key;
  const WriterIdentity* rank = live.NewestOfAttempt();
  return rank == nullptr ? "" : rank->attempt_key;
}

SensorSelection TrialSampler::WantedSelection(const LiveTrial& live) {
  const WriterIdentity* rank = live.NewestThatSamples();
  if (rank != nullptr && rank->sampling != wish_) {
    wish_ = rank->sampling;
    if (const auto unknown = UnknownWords(wish_); !unknown.empty()) {
      log::Warning("sampling_unknown",
                   {{"trial", options_.key.trial},
                    {"unknown", absl::StrJoin(unknown, ",")},
                    {"allowed", "groups and system metrics as docs/metrics.md lists them"}});
    }
  }
  return Choose(wish_, options_.selection);
}

SamplerWriter::Surroundings TrialSampler::SurroundingsOf(const LiveTrial& live) const {
  // A key that was given is the agent's word: all ranks are of it.
  const std::string attempt =
      options_.attempt_key.empty() ? sampler_->identity().attempt_key : std::string();
  return {live.LowestRanksBatch(attempt), trial_count_};
}

bool TrialSampler::TakesUp(const FoundWriter& found, const LiveTrial& live) const {
  return sampler_ == nullptr && IsWanted(live) &&
         found.identity.attempt_key == WantedAttemptKey(live) &&
         found.identity.boot_id == home_.context_for(options_.key.server).face.machine &&
         !SamplerWriter::IsClosed(found.directory.get());
}

void TrialSampler::NoteEnded(const std::string& attempt_key, const EndedTicks& ended) {
  if (ended_ticks_ && ended_ticks_->last_time_us >= ended.last_time_us) return;
  ended_attempt_key_ = attempt_key;
  ended_ticks_ = ended;
}

absl::Status TrialSampler::TakeUp(FoundWriter found, const LiveTrial& live) {
  ended_ticks_.reset();  // what it holds is newer
  return Open(std::move(found), live, std::nullopt);
}

absl::Status TrialSampler::Open(FoundWriter found, const LiveTrial& live,
                                std::optional<EndedTicks> after) {
  SamplerWriter::Settings settings;
  settings.selection = WantedSelection(live);
  settings.after = after;
  settings.live_since_us = live.SinceUs();
  const TrialKey& key = options_.key;
  settings.machine.container.claims = std::make_shared<ContainerClaims>(
      absl::StrCat(key.server, "\n", key.project, "\n", key.trial));
  if (options_.of_processes) settings.machine.container.processes = processes_;
  STEPWELL_ASSIGN_OR_RETURN(
      sampler_, SamplerWriter::Open(std::move(found.directory), std::move(found.identity),
                                    std::move(settings), home_.context_for(options_.key.server)));
  tried_at_ = -absl::InfiniteDuration();
  if (const WriterIdentity* rank = live.NewestOfAttempt()) {
    attempt_opened_us_ = rank->opened_time_us;
  }
  return absl::OkStatus();
}

void TrialSampler::Visit(const LiveTrial& live, int trial_count) {
  trial_count_ = trial_count;
  processes_->Set(live.pids());
  const bool goes_on = ending_ && live.NewestThatSamples() != nullptr;
  if (sampler_ == nullptr) {
    if (!IsWanted(live)) return;
    Start(live);
    if (sampler_ == nullptr) return;
  } else if (IsWanted(live)) {
    FollowAttempt(live);
    sampler_->SetSelection(WantedSelection(live));
  } else {
    if (goes_on) sampler_->LeaveToNext();
    sampler_->Close(SurroundingsOf(live));
  }
  sampler_->Visit(SurroundingsOf(live));
  selection_ = sampler_->selection();
  if (!sampler_->served().close_requested()) return;
  const std::string name = sampler_->identity().writer.ToText();
  home_.ended.Add(name, sampler_->TakeServed(),
                  goes_on ? EndedSamplers::Keep::kForNextAgent : EndedSamplers::Keep::kNo);
  sampler_ = nullptr;
}

bool TrialSampler::may_rest() const {
  if (sampler_ == nullptr) return ended();
  return stays() && is_calm();
}

bool TrialSampler::is_calm() const {
  return sampler_ != nullptr && !ending_ && !sampler_->closing() && !sampler_->has_waiting() &&
         selection_.interval() >= kRestingInterval;
}

void TrialSampler::Start(const LiveTrial& live) {
  const ServeContext context = home_.context_for(options_.key.server);
  absl::StatusOr<FoundWriter> made = MakeDirectory(live, context);
  if (!made.ok()) return;
  const std::string name = made->name;
  std::optional<EndedTicks> after = std::exchange(ended_ticks_, std::nullopt);
  if (made->identity.attempt_key != ended_attempt_key_) after.reset();
  const absl::Status started = Open(*std::move(made), live, after);
  if (started.ok()) return;
  RemoveTree(home_.format_directory, name, 4);
  LogUnservable(started, context.clock);
}

// Until the new one has its directory, the machine is sampled for the attempt before: that is told
// with the right times, and nothing is lost.
void TrialSampler::FollowAttempt(const LiveTrial& live) {
  const WriterIdentity* rank = options_.attempt_key.empty() ? live.NewestOfAttempt() : nullptr;
  if (rank == nullptr || sampler_->closing() || rank->opened_time_us <= attempt_opened_us_) return;
  if (rank->attempt_key != sampler_->identity().attempt_key) {
    const ServeContext context = home_.context_for(options_.key.server);
    absl::StatusOr<FoundWriter> made = MakeDirectory(live, context);
    if (!made.ok()) return;
    absl::StatusOr<std::unique_ptr<SamplerWriter>> next = sampler_->Succeed(
        std::move(made->directory), std::move(made->identity), SurroundingsOf(live), context);
    if (!next.ok()) {
      RemoveTree(home_.format_directory, made->name, 4);
      return LogUnservable(next.status(), context.clock);
    }
    tried_at_ = -absl::InfiniteDuration();
    const std::string ended = sampler_->identity().writer.ToText();
    home_.ended.Add(ended, sampler_->TakeServed());
    sampler_ = *std::move(next);
    log::Info("sampler_follows_attempt", {{"ended", ended}, {"attempt_key", rank->attempt_key}});
  }
  attempt_opened_us_ = rank->opened_time_us;
}

absl::StatusOr<FoundWriter> TrialSampler::MakeDirectory(const LiveTrial& live,
                                                        const ServeContext& context) {
  const absl::Duration now = context.clock.Monotonic();
  if (now - tried_at_ < kTryAgainInterval) return absl::UnavailableError("just tried");
  tried_at_ = now;
  const WriterIdentity* rank = live.NewestThatSamples();
  WriterIdentity identity;
  identity.writer = Uuid::Random();
  identity.server = options_.server;
  identity.project = options_.key.project;
  identity.trial = options_.key.trial;
  identity.attempt_key = WantedAttemptKey(live);
  identity.token = options_.token;
  const bool is_given = options_.stays && !options_.token.empty();
  if (!is_given && rank != nullptr && !rank->token.empty()) {
    identity.token = rank->token;
    identity.renews_token = rank->renews_token;
  }
  identity.is_sampler = true;
  identity.placement = rank != nullptr ? rank->placement : options_.placement;
  identity.boot_id = context.face.machine;
  identity.recorder_version = context.face.version;
  absl::StatusOr<FoundWriter> made = MakeWriterDirectory(home_.format_directory, identity);
  if (made.ok()) {
    home_.finder.Know(made->name);
    return made;
  }
  RemoveTree(home_.format_directory, identity.writer.ToText(), 2);
  LogUnservable(made.status(), context.clock);
  return made;
}

void TrialSampler::LogUnservable(const absl::Status& why, const Clock& clock) {
  if (clock.Monotonic() - logged_ < absl::Minutes(1)) return;
  logged_ = clock.Monotonic();
  log::Warning("sampler_unservable",
               {{"trial", options_.key.trial}, {"why", std::string(why.message())}});
}

}  // namespace stepwell::agent
