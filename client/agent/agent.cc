#include "client/agent/agent.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

constexpr char kAgentVersion[] = "stepwell/0.1.0";
constexpr absl::Duration kBoundInterval = absl::Seconds(5);
constexpr absl::Duration kFirstWriterWait = absl::Seconds(60);
// After a writer found no room: a full disk, no descriptors.
constexpr absl::Duration kServeAgainInterval = absl::Seconds(10);

// The name that people know the machine by.
std::string MachineName() {
  for (const char* variable : {"STEPWELL_AGENT_ID", "NODE_NAME", "SLURMD_NODENAME"}) {
    if (const char* value = std::getenv(variable); value != nullptr && *value != '\0') {
      return CleanText(value, 128);
    }
  }
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return CleanText(name, 128);
}

// 5 % of what is free, but never so little that nothing could be kept.
std::int64_t FreeShare(int directory) {
  struct statvfs found {};
  if (fstatvfs(directory, &found) != 0) return INT64_MAX;
  const double free_bytes =
      static_cast<double>(found.f_bavail) * static_cast<double>(found.f_frsize);
  return std::max(static_cast<std::int64_t>(free_bytes * 0.05), std::int64_t{1} << 20);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Agent>> Agent::Create(AgentOptions options, const Clock& clock) {
  STEPWELL_ASSIGN_OR_RETURN(FileDescriptor directory, OpenFormatDirectory(options.spool_dir));
  absl::StatusOr<AgentLock> lock = AgentLock::Take(directory.get());
  if (absl::IsAlreadyExists(lock.status())) return lock.status();
  if (!lock.ok()) return Annotate(lock.status(), options.spool_dir);
  return std::unique_ptr<Agent>(
      new Agent(std::move(options), std::move(directory), *std::move(lock), clock));
}

Agent::Agent(AgentOptions options, FileDescriptor format_directory, AgentLock lock,
             const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      format_directory_(std::move(format_directory)),
      lock_(std::move(lock)),
      context_{sender_, clock_, {MachineName(), BootId(), kAgentVersion}, Spool::Options()},
      finder_(format_directory_.get()) {
  context_.spool.sync_before_send = options_.sync_before_send;
  Stream::Options stream;
  stream.server = options_.server;
  stream_ = std::make_unique<Stream>(std::move(stream), sender_, clock_, [this] { Wake(); });
}

Agent::~Agent() { stream_->Stop(); }

void Agent::Run() {
  log::Info("agent_started", {{"server", options_.server}, {"spool_dir", options_.spool_dir}});
  busy_at_ = clock_.Monotonic();
  stream_->Start();
  do {
    visit_due_ = clock_.Monotonic() + options_.frame_interval;
    VisitAll();
  } while (!IdleForLong() && WaitForVisit());
  Drain();
  stream_->Stop();
  log::Info("agent_stopped", {{"all_acked", AllAcked()}});
}

void Agent::VisitAll() {
  ServeNew();
  ShareSpool();
  const SensorSelection selection =
      sampler_ == nullptr || writers_.empty() ? SensorSelection() : sampler_->selection();
  for (const auto& [name, writer] : writers_) {
    writer->Visit(IsSampled(*writer) ? &selection : nullptr);
  }
  TendSampler();
  for (auto& [name, ended] : ended_samplers_) ended.served->Tend();
  RemoveOld();
  Summarize();
  stream_->Wake();
  stream_->Tend();
}

// Of the trial that the machine is sampled for.
bool Agent::IsSampled(const RankWriter& writer) const {
  return sampler_ != nullptr && writer.identity().trial == options_.trial &&
         writer.identity().project == options_.project;
}

void Agent::TendAll() {
  for (const auto& [name, writer] : writers_) writer->served().Tend();
  if (sampler_ != nullptr) sampler_->served().Tend();
  for (auto& [name, ended] : ended_samplers_) ended.served->Tend();
}

void Agent::ServeNew() {
  if (!roomless_.empty() && clock_.Monotonic() - roomless_at_ >= kServeAgainInterval) {
    for (const std::string& name : std::exchange(roomless_, {})) finder_.Forget(name);
  }
  std::vector<FoundWriter> all = finder_.FindNew();
  // Ranks first: they tell which attempt a sampler should be of.
  std::stable_partition(all.begin(), all.end(),
                        [](const FoundWriter& found) { return !found.identity.is_sampler; });
  for (FoundWriter& found : all) {
    if (ServedWriter::WasDone(found.directory.get())) {
      left_since_[found.name] = clock_.Monotonic();
      continue;
    }
    log::Info("writer_found", {{"writer", found.name},
                               {"trial", found.identity.trial},
                               {"sampler", found.identity.is_sampler},
                               {"rank", found.identity.rank}});
    if (found.identity.is_sampler) {
      ServeSampler(std::move(found));
    } else {
      ServeRank(std::move(found));
    }
  }
}

void Agent::ServeRank(FoundWriter found) {
  absl::StatusOr<std::unique_ptr<RankWriter>> writer =
      RankWriter::Open(std::move(found.directory), std::move(found.identity), context_);
  any_seen_ = true;
  if (writer.ok()) {
    writers_[found.name] = *std::move(writer);
  } else {
    log::Warning("writer_unservable",
                 {{"writer", found.name}, {"why", std::string(writer.status().message())}});
    NoteUnserved(found.name, writer.status());
  }
}

// One that an agent left by a crash is taken up again; one that ended in order only lacks its Close.
bool Agent::IsOurSampler(const FoundWriter& found) const {
  return sampler_ == nullptr && found.identity.trial == options_.trial &&
         found.identity.project == options_.project &&
         found.identity.attempt_key == WantedAttemptKey() &&
         found.identity.boot_id == context_.face.machine &&
         !SamplerWriter::IsClosed(found.directory.get());
}

void Agent::ServeSampler(FoundWriter found) {
  absl::Status served;
  if (IsOurSampler(found)) {
    absl::StatusOr<std::unique_ptr<SamplerWriter>> sampler =
        SamplerWriter::Open(std::move(found.directory), std::move(found.identity),
                            {.selection = options_.selection}, context_);
    served = sampler.status();
    if (sampler.ok()) sampler_ = *std::move(sampler);
  } else {
    absl::StatusOr<std::unique_ptr<ServedWriter>> ended =
        ServedWriter::Open(std::move(found.directory), std::move(found.identity), context_);
    served = ended.status();
    if (ended.ok()) {
      (*ended)->Close(/*died=*/false);
      ended_samplers_[found.name] = {*std::move(ended)};
    }
  }
  if (!served.ok()) {
    log::Warning("sampler_unservable",
                 {{"writer", found.name}, {"why", std::string(served.message())}});
    NoteUnserved(found.name, served);
  }
}

void Agent::NoteUnserved(const std::string& name, const absl::Status& why) {
  if (!absl::IsResourceExhausted(why)) return;
  roomless_.push_back(name);
  roomless_at_ = clock_.Monotonic();
}

const WriterIdentity* Agent::NewestLiveRank() const {
  const WriterIdentity* newest = nullptr;
  for (const auto& [name, writer] : writers_) {
    const WriterIdentity& who = writer->identity();
    if (!writer->live() || who.project != options_.project || who.trial != options_.trial) continue;
    if (who.attempt_key.empty()) continue;
    if (newest == nullptr || who.opened_time_us > newest->opened_time_us) newest = &who;
  }
  return newest;
}

std::string Agent::WantedAttemptKey() const {
  if (!options_.attempt_key.empty()) return options_.attempt_key;
  const WriterIdentity* rank = NewestLiveRank();
  return rank == nullptr ? "" : rank->attempt_key;
}

void Agent::TendSampler() {
  if (options_.trial.empty()) return;
  if (sampler_ != nullptr) {
    FollowAttempt();
  } else if (roomless_.empty()) {
    StartSampler();
  }
  if (sampler_ != nullptr) sampler_->Visit(Surroundings());
}

void Agent::StartSampler() {
  absl::StatusOr<FoundWriter> made = MakeSampler();
  if (made.ok()) ServeSampler(*std::move(made));
  if (sampler_ == nullptr) return;
  sampler_tried_at_ = -absl::InfiniteDuration();
  if (const WriterIdentity* rank = NewestLiveRank()) attempt_opened_us_ = rank->opened_time_us;
}

// Until the new one has its directory, the machine is sampled for the attempt before: that is told
// with the right times, and nothing is lost.
void Agent::FollowAttempt() {
  const WriterIdentity* rank = options_.attempt_key.empty() ? NewestLiveRank() : nullptr;
  if (rank == nullptr || sampler_->closing() || rank->opened_time_us <= attempt_opened_us_) return;
  if (rank->attempt_key != sampler_->identity().attempt_key) {
    absl::StatusOr<FoundWriter> made = MakeSampler();
    if (!made.ok()) return;
    absl::StatusOr<std::unique_ptr<SamplerWriter>> next = sampler_->Succeed(
        std::move(made->directory), std::move(made->identity), Surroundings(), context_);
    if (!next.ok()) {
      RemoveTree(format_directory_.get(), made->name, 4);
      return LogUnservable(next.status());
    }
    sampler_tried_at_ = -absl::InfiniteDuration();
    const std::string ended = sampler_->identity().writer.ToText();
    ended_samplers_[ended] = {sampler_->TakeServed()};
    sampler_ = *std::move(next);
    log::Info("sampler_follows_attempt", {{"ended", ended}, {"attempt_key", rank->attempt_key}});
  }
  attempt_opened_us_ = rank->opened_time_us;
}

absl::StatusOr<FoundWriter> Agent::MakeSampler() {
  // Each try makes a directory: not one each visit while the disk is full.
  const absl::Duration now = clock_.Monotonic();
  if (now - sampler_tried_at_ < kServeAgainInterval) return absl::UnavailableError("just tried");
  sampler_tried_at_ = now;
  WriterIdentity identity;
  identity.writer = Uuid::Random();
  identity.project = options_.project;
  identity.trial = options_.trial;
  identity.attempt_key = WantedAttemptKey();
  identity.token = options_.token;
  identity.is_sampler = true;
  identity.boot_id = context_.face.machine;
  identity.recorder_version = context_.face.version;
  absl::StatusOr<FoundWriter> made = MakeWriterDirectory(format_directory_.get(), identity);
  if (made.ok()) {
    finder_.Know(made->name);
    return made;
  }
  RemoveTree(format_directory_.get(), identity.writer.ToText(), 2);
  LogUnservable(made.status());
  return made;
}

void Agent::LogUnservable(const absl::Status& why) {
  if (clock_.Now() - sampler_logged_ < absl::Minutes(1)) return;
  sampler_logged_ = clock_.Now();
  log::Warning("sampler_unservable", {{"why", std::string(why.message())}});
}

SamplerWriter::Surroundings Agent::Surroundings() const {
  SamplerWriter::Surroundings now;
  std::set<std::pair<std::string, std::string>> trials;
  const WriterIdentity& sampled = sampler_->identity();
  trials.insert({sampled.project, sampled.trial});
  std::int32_t lowest_rank = INT32_MAX;
  for (const auto& [name, writer] : writers_) {
    if (!writer->live()) continue;
    const WriterIdentity& who = writer->identity();
    trials.insert({who.project, who.trial});
    // A rank of another attempt is at another batch.
    const bool of_another = options_.attempt_key.empty() && !sampled.attempt_key.empty() &&
                            who.attempt_key != sampled.attempt_key;
    if (of_another) continue;
    if (who.project == sampled.project && who.trial == sampled.trial && who.rank < lowest_rank) {
      lowest_rank = who.rank;
      now.batch = writer->last_batch();
    }
  }
  now.trial_count = static_cast<int>(trials.size());
  return now;
}

// The bound is of all spools together. Shared at each visit: a share says what others hold now.
void Agent::ShareSpool() {
  const absl::Duration now = clock_.Monotonic();
  if (now - bound_read_at_ >= kBoundInterval) {
    bound_read_at_ = now;
    spool_bytes_max_ = std::min(options_.spool_bytes_max, FreeShare(format_directory_.get()));
  }
  std::vector<ServedWriter*> all;
  for (const auto& [name, writer] : writers_) all.push_back(&writer->served());
  if (sampler_ != nullptr) all.push_back(&sampler_->served());
  for (const auto& [name, ended] : ended_samplers_) all.push_back(ended.served.get());
  std::vector<std::int64_t> unacked_bytes;
  for (const ServedWriter* served : all) unacked_bytes.push_back(served->unacked_bytes());
  const std::vector<SpoolBounds> shares = ShareBound(spool_bytes_max_, unacked_bytes);
  for (std::size_t i = 0; i < all.size(); ++i) all[i]->SetBounds(shares[i]);
}

// A closed writer stays as long as its acked tail would: a master that comes back older is told
// again.
void Agent::RemoveOld() {
  const absl::Duration now = clock_.Monotonic();
  for (auto entry = writers_.begin(); entry != writers_.end();) {
    if (!entry->second->done() || now - entry->second->done_at() < context_.spool.acked_age_max) {
      ++entry;
      continue;
    }
    RemoveTree(format_directory_.get(), entry->first, 4);
    entry = writers_.erase(entry);
  }
  for (auto entry = ended_samplers_.begin(); entry != ended_samplers_.end();) {
    Ended& ended = entry->second;
    if (ended.served->done() && ended.done_at == absl::InfiniteDuration()) ended.done_at = now;
    if (now - ended.done_at < context_.spool.acked_age_max) {
      ++entry;
      continue;
    }
    RemoveTree(format_directory_.get(), entry->first, 4);
    entry = ended_samplers_.erase(entry);
  }
  std::erase_if(left_since_, [&](const auto& left) {
    if (now - left.second < context_.spool.acked_age_max) return false;
    RemoveTree(format_directory_.get(), left.first, 4);
    return true;
  });
}

// All that recorded has ended, and the master holds it. The sampler runs as long as the agent.
bool Agent::AllDone() const {
  return std::all_of(writers_.begin(), writers_.end(),
                     [](const auto& entry) { return entry.second->done(); }) &&
         std::all_of(ended_samplers_.begin(), ended_samplers_.end(),
                     [](const auto& entry) { return entry.second.served->done(); });
}

// Nothing is left to send now, be it that recorders live on.
bool Agent::AllAcked() const {
  const bool sampler_done = sampler_ == nullptr || sampler_->done();
  const auto settled = [](const ServedWriter& served) {
    return served.done() || served.status().state == SendWindow::State::kRefused;
  };
  const bool ended_done =
      std::all_of(ended_samplers_.begin(), ended_samplers_.end(),
                  [&](const auto& entry) { return settled(*entry.second.served); });
  return sampler_done && ended_done &&
         std::all_of(writers_.begin(), writers_.end(), [](const auto& entry) {
           const RankWriter& writer = *entry.second;
           return writer.done() || writer.refused() || (writer.live() && writer.all_acked());
         });
}

// A training program takes a while to start: before the first is seen, idleness is waiting.
bool Agent::IdleForLong() {
  if (!AllDone()) busy_at_ = clock_.Monotonic();
  const absl::Duration idle_exit =
      any_seen_ ? options_.idle_exit : std::max(options_.idle_exit, kFirstWriterWait);
  return clock_.Monotonic() - busy_at_ >= idle_exit;
}

// Sends what is left. Recorders that live on are found again by the next agent.
void Agent::Drain() {
  const absl::Duration deadline = clock_.Monotonic() + options_.stop_wait;
  if (sampler_ != nullptr) sampler_->Close(Surroundings());
  do {
    VisitAll();
    if (AllAcked()) return TendAll();
    absl::MutexLock lock(&mu_);
    mu_.AwaitWithTimeout(absl::Condition(&woken_), absl::Milliseconds(20));
    woken_ = false;
  } while (clock_.Monotonic() < deadline);
}

// Answers of the master come far more often than frames are due; they matter at once only to
// recorders that wait in close().
bool Agent::WaitForVisit() {
  while (true) {
    const absl::Duration left = visit_due_ - clock_.Monotonic();
    if (left <= absl::ZeroDuration()) return true;
    {
      absl::MutexLock lock(&mu_);
      const auto due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopping_ || woken_; };
      mu_.AwaitWithTimeout(absl::Condition(&due), left);
      if (stopping_) return false;
      woken_ = false;
    }
    for (const auto& [name, writer] : writers_) writer->SettleClosing();
  }
}

void Agent::Summarize() {
  Summary summary;
  const auto add = [&](const ServedWriter& served) {
    const OutboundWriter::Status status = served.status();
    ++summary.writer_count;
    summary.acked_count += served.done() ? 1 : 0;
    summary.unacked_bytes += served.done() ? 0 : served.unacked_bytes();
    if (status.state != SendWindow::State::kRefused) return;
    ++summary.refused_count;
    summary.refusal = status.refusal;
  };
  for (const auto& [name, writer] : writers_) add(writer->served());
  if (sampler_ != nullptr) add(sampler_->served());
  for (const auto& [name, ended] : ended_samplers_) add(*ended.served);
  absl::MutexLock lock(&mu_);
  summary_ = std::move(summary);
}

Agent::Summary Agent::summary() const {
  absl::MutexLock lock(&mu_);
  return summary_;
}

void Agent::Wake() {
  absl::MutexLock lock(&mu_);
  woken_ = true;
}

void Agent::RequestStop() {
  absl::MutexLock lock(&mu_);
  stopping_ = true;
}

}  // namespace stepwell::agent
