#include "server/writer_director.h"

#include <utility>

namespace stepwell {
namespace {

constexpr absl::Duration kLookInterval = absl::Seconds(1);
// Between a writer's Open in the database and here lie microseconds, not a thousand requests.
constexpr std::size_t kSetRememberedMax = 1024;

v1::Directive ProfilingDirective(const Uuid& writer, const TrialProfiling& profiling) {
  v1::Directive directive;
  directive.set_writer(writer.ToBytes());
  v1::Profiling& asked = *directive.mutable_profiling();
  asked.set_on(profiling.on);
  asked.set_interval_us(profiling.interval_us);
  for (const std::string& group : profiling.metric_groups) asked.add_metric_groups(group);
  return directive;
}

v1::Directive SamplingDirective(const Uuid& writer, const SamplingOrder& order) {
  v1::Directive directive;
  directive.set_writer(writer.ToBytes());
  directive.mutable_sampling()->set_on(order.on);
  directive.mutable_sampling()->set_shared_with(order.shared_with);
  for (const std::string& gpu : order.gpus) directive.mutable_sampling()->add_gpus(gpu);
  return directive;
}

}  // namespace

void WriterDirector::Opened(const Writer& writer, std::weak_ptr<DirectiveSink> sink) {
  Deliveries due;
  {
    absl::MutexLock lock(&mu_);
    OpenTrial& trial = trials_[writer.trial_id];
    Held& held = trial.writers[writer.writer_no];
    if (held.generation > writer.generation) return;
    // While a stream stands nothing else is where it is, and it is lost here before it ends.
    const auto stream = reinterpret_cast<std::uintptr_t>(sink.lock().get());
    const auto set = set_.find(writer.trial_id);
    const bool newer = set != set_.end() && set->second.revision > writer.profiling.revision;
    held = {writer.generation, writer.uuid, std::move(sink), newer ? set->second : writer.profiling,
            writer.is_sampler ? std::nullopt : std::optional(writer.rank)};
    trial.window_over = trial.window_over || writer.window_over;
    // Also back to what it chose itself: it may have missed that. One that was open before may have
    // been told of a window that is lifted since.
    if (held.profiling.revision > 0 || trial.window_over || writer.generation > 1) {
      AddProfilingLocked(trial, held, due);
    }
    AddSamplingLocked(election_.Open({.trial_id = writer.trial_id,
                                      .writer_no = writer.writer_no,
                                      .generation = writer.generation,
                                      .machine = writer.machine,
                                      .is_sampler = writer.is_sampler,
                                      .stream = stream},
                                     SteadyTime::Now(clock_)),
                      due);
  }
  Deliver(due);
}

void WriterDirector::Closed(TrialId trial_id, WriterNo writer_no, std::uint64_t generation) {
  Deliveries due;
  {
    absl::MutexLock lock(&mu_);
    EraseLocked(trial_id, writer_no, generation);
    AddSamplingLocked(election_.Close(trial_id, writer_no, generation, SteadyTime::Now(clock_)),
                      due);
  }
  Deliver(due);
}

void WriterDirector::Lost(TrialId trial_id, WriterNo writer_no, std::uint64_t generation) {
  Deliveries due;
  {
    absl::MutexLock lock(&mu_);
    EraseLocked(trial_id, writer_no, generation);
    AddSamplingLocked(election_.Lose(trial_id, writer_no, generation, SteadyTime::Now(clock_)),
                      due);
  }
  Deliver(due);
}

void WriterDirector::Named(TrialId trial_id, WriterNo writer_no, std::uint64_t generation,
                           const NamedGpus& gpus) {
  Deliveries due;
  {
    absl::MutexLock lock(&mu_);
    AddSamplingLocked(
        election_.Name(trial_id, writer_no, generation, gpus, SteadyTime::Now(clock_)), due);
  }
  Deliver(due);
}

int WriterDirector::SetProfiling(TrialId trial_id, const TrialProfiling& stored) {
  Deliveries due;
  {
    absl::MutexLock lock(&mu_);
    RememberLocked(trial_id, stored);
    const auto trial = trials_.find(trial_id);
    if (trial == trials_.end()) return 0;
    for (auto& [writer_no, held] : trial->second.writers) {
      held.profiling = set_.at(trial_id);
      AddProfilingLocked(trial->second, held, due);
    }
  }
  return Deliver(due);
}

int WriterDirector::SetWindowOver(TrialId trial_id, bool over) {
  Deliveries due;
  {
    absl::MutexLock lock(&mu_);
    const auto trial = trials_.find(trial_id);
    if (trial == trials_.end() || trial->second.window_over == over) return 0;
    trial->second.window_over = over;
    for (const auto& [writer_no, held] : trial->second.writers) {
      AddProfilingLocked(trial->second, held, due);
    }
  }
  return Deliver(due);
}

std::vector<WriterDirector::OpenRank> WriterDirector::OpenRanks(TrialId trial_id) const {
  std::vector<OpenRank> ranks;
  absl::MutexLock lock(&mu_);
  const auto trial = trials_.find(trial_id);
  if (trial == trials_.end()) return ranks;
  for (const auto& [writer_no, held] : trial->second.writers) {
    if (held.rank) ranks.push_back({*held.rank, writer_no, held.generation});
  }
  return ranks;
}

bool WriterDirector::IsOpen(TrialId trial_id, WriterNo writer_no, std::uint64_t generation) const {
  absl::MutexLock lock(&mu_);
  const Held* held = FindLocked(trial_id, writer_no);
  return held != nullptr && held->generation == generation;
}

bool WriterDirector::Capture(TrialId trial_id, WriterNo writer_no, std::uint64_t generation,
                             const v1::Capture& asked) {
  Deliveries due;
  {
    absl::MutexLock lock(&mu_);
    const Held* held = FindLocked(trial_id, writer_no);
    if (held == nullptr || held->generation != generation) return false;
    Delivery* delivery = AddLocked(*held, due);
    if (delivery == nullptr) return false;
    delivery->directive.set_writer(held->uuid.ToBytes());
    *delivery->directive.mutable_capture() = asked;
  }
  return Deliver(due) == 1;
}

std::vector<TrialId> WriterDirector::OpenTrials() const {
  std::vector<TrialId> trials;
  absl::MutexLock lock(&mu_);
  trials.reserve(trials_.size());
  for (const auto& [trial_id, trial] : trials_) trials.push_back(trial_id);
  return trials;
}

void WriterDirector::Look(const SamplerElection::HeardOf& heard_of) {
  Deliveries due;
  {
    absl::MutexLock lock(&mu_);
    const SteadyTime now = SteadyTime::Now(clock_);
    if (now - looked_at_ < kLookInterval) return;
    looked_at_ = now;
    AddSamplingLocked(election_.Look(heard_of, now), due);
  }
  Deliver(due);
}

void WriterDirector::Clear() {
  absl::MutexLock lock(&mu_);
  trials_.clear();
  election_.Clear();
  set_.clear();
  set_order_.clear();
}

void WriterDirector::AddProfilingLocked(const OpenTrial& trial, const Held& held, Deliveries& due) {
  Delivery* delivery = AddLocked(held, due);
  if (delivery == nullptr) return;
  TrialProfiling holds = held.profiling;
  holds.on = holds.on && !trial.window_over;
  delivery->directive = ProfilingDirective(held.uuid, holds);
}

void WriterDirector::AddSamplingLocked(const SamplerElection::Orders& orders, Deliveries& due) {
  for (const SamplingOrder& order : orders) {
    const Held* held = FindLocked(order.trial_id, order.writer_no);
    if (held == nullptr) continue;
    if (Delivery* delivery = AddLocked(*held, due)) {
      delivery->directive = SamplingDirective(held->uuid, order);
    }
  }
}

WriterDirector::Delivery* WriterDirector::AddLocked(const Held& held, Deliveries& due) {
  auto sink = held.sink.lock();
  if (sink == nullptr) return nullptr;
  due.push_back({std::move(sink), held.uuid, ++last_version_, {}});
  return &due.back();
}

const WriterDirector::Held* WriterDirector::FindLocked(TrialId trial_id, WriterNo writer_no) const {
  const auto trial = trials_.find(trial_id);
  if (trial == trials_.end()) return nullptr;
  const auto held = trial->second.writers.find(writer_no);
  return held == trial->second.writers.end() ? nullptr : &held->second;
}

void WriterDirector::EraseLocked(TrialId trial_id, WriterNo writer_no, std::uint64_t generation) {
  const auto trial = trials_.find(trial_id);
  if (trial == trials_.end()) return;
  auto& writers = trial->second.writers;
  const auto held = writers.find(writer_no);
  if (held == writers.end() || held->second.generation != generation) return;
  writers.erase(held);
  if (writers.empty()) trials_.erase(trial);
}

void WriterDirector::RememberLocked(TrialId trial_id, const TrialProfiling& stored) {
  const auto [place, is_new] = set_.try_emplace(trial_id, stored);
  if (!is_new) {
    if (place->second.revision < stored.revision) place->second = stored;
    return;
  }
  set_order_.push_back(trial_id);
  if (set_order_.size() <= kSetRememberedMax) return;
  set_.erase(set_order_.front());
  set_order_.pop_front();
}

int WriterDirector::Deliver(const Deliveries& due) {
  int taken = 0;
  for (const Delivery& delivery : due) {
    if (delivery.sink->Direct(delivery.writer, delivery.version, delivery.directive)) ++taken;
  }
  return taken;
}

}  // namespace stepwell
