#include "client/agent/agent.h"

#include <algorithm>
#include <utility>

#include "base/failpoint.h"
#include "base/log.h"
#include "base/machine_name.h"
#include "base/status_macros.h"
#include "client/agent/clock_anchor.h"
#include "client/agent/private_root.h"

namespace stepwell::agent {
namespace {

constexpr char kAgentVersion[] = "stepwell-agent/" STEPWELL_VERSION;
constexpr absl::Duration kFirstWriterWait = absl::Seconds(60);
// `stepwell upload` waits a little longer.
constexpr absl::Duration kOfflineExit = absl::Seconds(1);
// Of one user of a system agent, so that others have theirs.
constexpr std::size_t kUserWritersMax = 256;
constexpr int kUserStreamsMax = 4;
constexpr std::size_t kUserRingsMax = 4096;
// Of all users of a system agent, in memory. A user's own is CaptureRoom::kBytesMax.
constexpr std::int64_t kUsersCapturesBytesMax = 4 * CaptureRoom::kBytesMax;
// As the wire takes it.
constexpr std::size_t kNameBytesMax = 128;

// One on demand is started by a recorder, which is there already.
AgentLife::Options LifeOf(const AgentOptions& options) {
  AgentLife::Options life;
  life.idle_exit = options.idle_exit;
  life.first_writer_wait = options.on_demand ? absl::ZeroDuration() : kFirstWriterWait;
  life.leave_after = options.leave_after;
  life.ends_when_settled = options.upload;
  if (options.on_demand) life.offline_exit = kOfflineExit;
  return life;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Agent>> Agent::Create(AgentOptions options, const Clock& clock) {
  if (options.system) return CreateForAll(std::move(options), clock);
  STEPWELL_ASSIGN_OR_RETURN(FileDescriptor directory, OpenFormatDirectory(options.spool_dir));
  absl::StatusOr<AgentLock> lock = AgentLock::Take(directory.get());
  if (absl::IsAlreadyExists(lock.status())) return lock.status();
  if (!lock.ok()) return Annotate(lock.status(), options.spool_dir);
  std::unique_ptr<Agent> agent(new Agent(std::move(options), *std::move(lock), clock));
  if (agent->options_.on_demand) {
    STEPWELL_ASSIGN_OR_RETURN(agent->log_, AgentLog::Open(directory.get()));
  }
  ServedRoot::Place place = {std::move(directory)};
  // An upload ends when all is sent: none may be left for a later one.
  if (agent->options_.upload) place.writer_count_max = SIZE_MAX;
  agent->Serve(agent->options_.spool_dir, std::move(place));
  return agent;
}

absl::StatusOr<std::unique_ptr<Agent>> Agent::CreateForAll(AgentOptions options,
                                                           const Clock& clock) {
  STEPWELL_ASSIGN_OR_RETURN(FileDescriptor directory, OpenSystemDirectory(options.spool_dir));
  absl::StatusOr<FileDescriptor> format = OpenSystemFormatDirectory(directory.get());
  if (!format.ok()) return Annotate(format.status(), options.spool_dir);
  absl::StatusOr<AgentLock> lock = AgentLock::Take(format->get(), {.is_public = true});
  if (absl::IsAlreadyExists(lock.status())) return lock.status();
  if (!lock.ok()) return Annotate(lock.status(), options.spool_dir);
  std::unique_ptr<Agent> agent(new Agent(std::move(options), *std::move(lock), clock));
  agent->users_ = std::make_unique<SystemRoots>(std::move(directory), clock);
  agent->users_format_directory_ = *std::move(format);
  agent->users_captures_ = std::make_shared<CaptureRoom>(kUsersCapturesBytesMax);
  return agent;
}

void Agent::Serve(const std::string& name, ServedRoot::Place place) {
  arrivals_.Add(place.format_directory.get());
  roots_[name] = std::make_unique<ServedRoot>(
      options_, std::move(place),
      AgentFace{CleanText(MachineName(), kNameBytesMax), BootId(), kAgentVersion}, clock_,
      ServedRoot::Callbacks{[this] { Wake(); }, [this] { OnTicks(); }});
}

Agent::Agent(AgentOptions options, AgentLock lock, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      lock_(std::move(lock)),
      visits_(options_.frame_interval),
      sampler_visits_(options_.frame_interval),
      arrivals_([this] { OnArrival(); }) {}

Agent::~Agent() = default;

void Agent::Run() {
  log::Info("agent_started", {{"server", options_.server}, {"spool_dir", options_.spool_dir}});
  if (users_ != nullptr) DropGroups();
  AgentLife life(LifeOf(options_), clock_.Monotonic());
  AgentLife::Verdict verdict = AgentLife::Verdict::kStay;
  do {
    const absl::Duration now = clock_.Monotonic();
    if (!MaySkip(now)) {
      visits_.OnVisited(now);
      VisitAll();
      resting_ = MayRest();
      verdict = Judge(life);
    }
    visit_due_ = resting_ ? now + VisitPace::kVisitMax : visits_.NextLook(now);
  } while (verdict == AgentLife::Verdict::kStay && WaitForVisit());
  // An agent that is started now waits for the lock.
  lock_.TakeLeaving().IgnoreError();
  const bool is_in_vain = verdict == AgentLife::Verdict::kLeave;
  Drain(is_in_vain ? absl::ZeroDuration() : options_.stop_wait);
  for (const auto& [name, root] : roots_) root->StopStreams();
  Summarize();
  for (const auto& [name, root] : roots_) {
    if (options_.on_demand) root->RemoveDone();
  }
  if (options_.removes_root && verdict == AgentLife::Verdict::kIdle &&
      IsPrivateRoot(options_.spool_dir)) {
    roots_.at(options_.spool_dir)->RemovePlace(options_.spool_dir);
  }
  const std::int64_t unacked_bytes = summary().unacked_bytes;
  const AgentLife::Facts end = facts();
  log::Info("agent_stopped", {{"all_acked", end.all_settled && unacked_bytes == 0},
                              {"unacked_bytes", unacked_bytes},
                              {"recorded_offline", end.any_spooled}});
}

void Agent::VisitAll() {
  if (users_ != nullptr) TendRoots();
  // As the agent itself: the threads of another user's streams may be unable to read a renewed key.
  if (options_.tls != nullptr) (void)options_.tls->Current();
  SetAwaiting(true);  // what begins to close in this visit is answered before its end
  std::set<TrialKey> trials;
  for (const auto& [name, root] : roots_) {
    root->VisitWriters();
    root->CollectTrials(trials);
  }
  const bool are_samplers_due = AreSamplersDue(trials);
  bool is_awaiting = draining_;
  for (const auto& [name, root] : roots_) {
    if (are_samplers_due) root->VisitSamplers(trials);
    root->TendLinks();
    is_awaiting = is_awaiting || root->has_closing();
  }
  SetAwaiting(is_awaiting);
  for (const auto& [name, root] : roots_) root->SyncSpools();
  if (log_) log_->Tend();
  if (options_.upload) Summarize();  // its caller watches
}

// Most visits to a training that is between two steps, or before its first, would find nothing.
bool Agent::MaySkip(absl::Duration now) const {
  if (draining_ || options_.upload || users_ != nullptr || !arrivals_.watches_all() ||
      !visits_.MaySkip(now) || !sampler_visits_.MaySkip(now)) {
    return false;
  }
  {
    absl::MutexLock lock(&mu_);
    if (stopping_ || ticked_) return false;
  }
  return std::all_of(roots_.begin(), roots_.end(),
                     [](const auto& root) { return root.second->is_quiet(); });
}

// Rings are looked into ten times a second; samplers that tick once a second have nothing new most of
// these times.
bool Agent::AreSamplersDue(const std::set<TrialKey>& trials) {
  const absl::Duration now = clock_.Monotonic();
  const bool is_news = TakeTicked() || trials != sampled_trials_ || draining_ || options_.upload;
  const bool are_calm = std::all_of(roots_.begin(), roots_.end(), [](const auto& root) {
    return root.second->are_samplers_calm();
  });
  if (!is_news && are_calm && sampler_visits_.MaySkip(now)) return false;
  sampler_visits_.OnVisited(now);
  sampled_trials_ = trials;
  return true;
}

void Agent::Summarize() {
  Summary summary;
  for (const auto& [name, root] : roots_) root->AddTo(summary);
  absl::MutexLock lock(&mu_);
  summary_ = std::move(summary);
}

void Agent::TendRoots() {
  for (SystemRoots::Found& found : users_->FindNew()) {
    log::Info("user_served", {{"root", found.name}});
    ServedRoot::Place place = {std::move(found.format_directory),
                               found.owner,
                               std::move(found.lock),
                               kUserWritersMax,
                               kUserStreamsMax,
                               kUserRingsMax};
    absl::StatusOr<FileDescriptor> captures =
        OpenCaptureDirectory(users_format_directory_.get(), found.name);
    if (captures.ok()) {
      place.captures = *std::move(captures);
      place.capture_room = users_captures_;
    } else {
      log::Warning("captures_unplaced",
                   {{"root", found.name}, {"why", std::string(captures.status().message())}});
    }
    Serve(found.name, std::move(place));
  }
  std::erase_if(roots_, [&](const auto& entry) {
    if (!entry.second->gone()) return false;
    log::Info("user_gone", {{"root", entry.first}});
    users_->Forget(entry.first);
    return true;
  });
}

AgentLife::Facts Agent::facts() const {
  AgentLife::Facts all = {.all_done = true, .all_settled = true, .all_gone = !roots_.empty()};
  for (const auto& [name, root] : roots_) AgentLife::Add(root->facts(), all);
  return all;
}

// A recorder that sees the first byte held believes that it is served: it is looked for once more
// while the second byte says that this agent may go. One that comes later finds the lock free soon.
AgentLife::Verdict Agent::Judge(AgentLife& life) {
  if (!life.may_end()) return AgentLife::Verdict::kStay;
  AgentLife::Verdict verdict = life.Judge(facts(), clock_.Monotonic());
  if (verdict == AgentLife::Verdict::kStay) return verdict;
  if (const absl::Status taken = lock_.TakeLeaving(); !taken.ok()) {
    log::Warning("agent_lock_trouble", {{"why", std::string(taken.message())}});
  }
  STEPWELL_FAILPOINT("agent_leaving");
  for (const auto& [name, root] : roots_) root->LookAgain();
  VisitAll();
  const AgentLife::Facts found = facts();
  verdict = life.Judge(found, clock_.Monotonic());
  switch (verdict) {
    case AgentLife::Verdict::kStay:
      lock_.StopLeaving();
      break;
    case AgentLife::Verdict::kIdle:
      log::Info("agent_idle");
      break;
    case AgentLife::Verdict::kLeave:
      Summarize();
      log::Warning("agent_leaves",
                   {{"unacked_bytes", summary().unacked_bytes},
                    {"why", found.all_gone ? "its directory was removed, and no master takes it"
                                           : "no master takes it; the next agent or `stepwell "
                                             "upload` sends it"}});
      break;
  }
  return verdict;
}

// Recorders that live on are found again by the next agent.
void Agent::Drain(absl::Duration wait) {
  const absl::Duration deadline = clock_.Monotonic() + wait;
  draining_ = true;
  for (const auto& [name, root] : roots_) root->EndSampling();
  do {
    VisitAll();
    if (facts().all_settled) break;
    absl::MutexLock lock(&mu_);
    mu_.AwaitWithTimeout(absl::Condition(&woken_), absl::Milliseconds(20));
    woken_ = false;
  } while (clock_.Monotonic() < deadline);
  for (const auto& [name, root] : roots_) root->TendAll();
}

// Answers of the master come far more often than frames are due; they matter at once only to
// recorders that wait in close(). So does a trial that begins: its first sample is due 100 ms later.
bool Agent::WaitForVisit() {
  while (true) {
    const absl::Duration now = clock_.Monotonic();
    if (now >= visit_due_) return true;
    absl::Duration due = visit_due_;
    for (const auto& [name, root] : roots_) {
      due = std::min(due, root->hurry().NextLook(now));
      // What comes in its pause waits for the end of that, not of a rest.
      if (resting_ && !root->hurry().IsListening(now)) {
        due = std::min(due, root->hurry().listens_from());
      }
    }
    if (!Await(due)) return false;
    if (resting_ && HasTicked()) return true;
    for (const auto& [name, root] : roots_) root->SettleClosing();
    bool any_new = false;
    for (const auto& [name, root] : roots_) any_new = root->LookInHurry() || any_new;
    if (any_new) return true;
  }
}

bool Agent::Await(absl::Duration due) {
  const absl::Duration now = clock_.Monotonic();
  // In a hurry it looks by itself, and rests after one that was in vain: whoever makes names without
  // end changes nothing.
  const bool is_listening = std::any_of(roots_.begin(), roots_.end(), [now](const auto& entry) {
    return entry.second->hurry().IsListening(now);
  });
  bool arrived = false;
  {
    absl::MutexLock lock(&mu_);
    const auto happened = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return stopping_ || woken_ || (arrived_ && is_listening) || (ticked_ && resting_);
    };
    mu_.AwaitWithTimeout(absl::Condition(&happened), due - now);
    woken_ = false;
    arrived = std::exchange(arrived_, false);
    if (stopping_) return false;
  }
  if (!arrived) return true;
  for (const auto& [name, root] : roots_) root->OnArrival();
  return true;
}

bool Agent::MayRest() const {
  // New users' roots are not watched.
  return users_ == nullptr && !options_.upload && arrivals_.watches_all() &&
         std::all_of(roots_.begin(), roots_.end(),
                     [](const auto& root) { return root.second->may_rest(); });
}

bool Agent::TakeTicked() {
  absl::MutexLock lock(&mu_);
  return std::exchange(ticked_, false);
}

bool Agent::HasTicked() const {
  absl::MutexLock lock(&mu_);
  return ticked_;
}

void Agent::OnTicks() {
  absl::MutexLock lock(&mu_);
  ticked_ = true;
}

void Agent::OnArrival() {
  absl::MutexLock lock(&mu_);
  arrived_ = true;
}

// Of many ranks some answer comes each millisecond or two: each would cost a change of threads.
void Agent::Wake() {
  absl::MutexLock lock(&mu_);
  woken_ = woken_ || awaiting_;
}

void Agent::SetAwaiting(bool awaiting) {
  absl::MutexLock lock(&mu_);
  awaiting_ = awaiting;
}

void Agent::RequestStop() {
  absl::MutexLock lock(&mu_);
  stopping_ = true;
}

Agent::Summary Agent::summary() const {
  absl::MutexLock lock(&mu_);
  return summary_;
}

}  // namespace stepwell::agent
