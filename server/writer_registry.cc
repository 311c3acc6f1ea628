#include "server/writer_registry.h"

#include <utility>

#include "server/ingest_stream.h"

namespace stepwell {

void WriterRegistry::AddStream(const std::shared_ptr<IngestStream>& stream) {
  absl::MutexLock lock(&mu_);
  streams_[stream.get()] = stream;
}

void WriterRegistry::RemoveStream(const IngestStream* stream) {
  absl::MutexLock lock(&mu_);
  streams_.erase(stream);
}

void WriterRegistry::ForEachStream(const std::function<void(IngestStream&)>& act) {
  std::vector<std::shared_ptr<IngestStream>> open;
  {
    absl::MutexLock lock(&mu_);
    for (const auto& [key, weak] : streams_) {
      if (auto stream = weak.lock()) open.push_back(std::move(stream));
    }
  }
  for (const auto& stream : open) act(*stream);
}

std::size_t WriterRegistry::stream_count() const {
  absl::MutexLock lock(&mu_);
  return streams_.size();
}

bool WriterRegistry::Claim(const Uuid& writer, const OpenedWriter& opened,
                           const std::shared_ptr<IngestStream>& stream) {
  std::shared_ptr<IngestStream> fenced;
  std::uint64_t fenced_generation = 0;
  {
    absl::MutexLock lock(&mu_);
    Holder& holder = holders_[{opened.trial_id, opened.writer_no}];
    if (holder.generation > opened.generation) return false;
    Known& known = trials_[opened.trial_id][opened.writer_no];
    NoteLocked(known, WriterState::kOpen);
    if (holder.generation == 0) ++known.holders;
    fenced = holder.stream.lock();
    fenced_generation = holder.generation;
    holder = {opened.generation, stream};
  }
  if (fenced && fenced != stream) fenced->Fence(writer, fenced_generation);
  return true;
}

void WriterRegistry::Release(TrialId trial_id, WriterNo writer_no, std::uint64_t generation) {
  absl::MutexLock lock(&mu_);
  const auto holder = holders_.find({trial_id, writer_no});
  if (holder == holders_.end() || holder->second.generation != generation) return;
  holders_.erase(holder);
  const auto trial = trials_.find(trial_id);
  if (trial == trials_.end()) return;
  const auto known = trial->second.find(writer_no);
  if (known != trial->second.end() && known->second.holders > 0) --known->second.holders;
}

std::size_t WriterRegistry::open_count() const {
  absl::MutexLock lock(&mu_);
  return holders_.size();
}

void WriterRegistry::Heard(TrialId trial_id, WriterNo writer_no) {
  absl::MutexLock lock(&mu_);
  // One whose trial has ended and was forgotten stays so: only an Open brings it back.
  const auto trial = trials_.find(trial_id);
  if (trial == trials_.end()) return;
  const auto known = trial->second.find(writer_no);
  if (known != trial->second.end()) NoteLocked(known->second, known->second.fact.state);
}

void WriterRegistry::NoteState(TrialId trial_id, WriterNo writer_no, WriterState state) {
  absl::MutexLock lock(&mu_);
  NoteLocked(trials_[trial_id][writer_no], state);
}

void WriterRegistry::NoteStored(TrialId trial_id, WriterNo writer_no, WriterState state) {
  absl::MutexLock lock(&mu_);
  trials_[trial_id][writer_no].fact = {state, SteadyTime::Now(clock_)};
}

void WriterRegistry::NoteLocked(Known& known, WriterState state) const {
  known.fact = {state, SteadyTime::Now(clock_)};
  known.seen_time_us = absl::ToUnixMicros(clock_.Now());
}

SteadyTime WriterRegistry::HeardAt(TrialId trial_id, WriterNo writer_no) const {
  absl::MutexLock lock(&mu_);
  const auto trial = trials_.find(trial_id);
  if (trial == trials_.end()) return {};
  const auto known = trial->second.find(writer_no);
  return known == trial->second.end() ? SteadyTime() : known->second.fact.heard;
}

std::map<WriterNo, WriterSeen> WriterRegistry::Seen(TrialId trial_id) const {
  std::map<WriterNo, WriterSeen> seen;
  absl::MutexLock lock(&mu_);
  const auto trial = trials_.find(trial_id);
  if (trial == trials_.end()) return seen;
  for (const auto& [writer_no, known] : trial->second) {
    seen[writer_no] = {known.seen_time_us, known.fact.heard, known.holders > 0};
  }
  return seen;
}

std::vector<TrialId> WriterRegistry::Trials() const {
  std::vector<TrialId> trials;
  absl::MutexLock lock(&mu_);
  trials.reserve(trials_.size());
  for (const auto& [trial_id, writers] : trials_) trials.push_back(trial_id);
  return trials;
}

std::vector<WriterFact> WriterRegistry::FactsOf(TrialId trial_id) const {
  std::vector<WriterFact> facts;
  absl::MutexLock lock(&mu_);
  const auto trial = trials_.find(trial_id);
  if (trial == trials_.end()) return facts;
  facts.reserve(trial->second.size());
  for (const auto& [writer_no, known] : trial->second) facts.push_back(known.fact);
  return facts;
}

void WriterRegistry::ForgetTrial(TrialId trial_id) {
  absl::MutexLock lock(&mu_);
  const auto trial = trials_.find(trial_id);
  if (trial == trials_.end()) return;
  for (const auto& [writer_no, known] : trial->second) {
    if (known.holders > 0 || known.fact.state == WriterState::kOpen) return;
  }
  trials_.erase(trial);
}

void WriterRegistry::DropTrial(TrialId trial_id) {
  absl::MutexLock lock(&mu_);
  trials_.erase(trial_id);
}

void WriterRegistry::Clear() {
  absl::MutexLock lock(&mu_);
  holders_.clear();
  trials_.clear();
}

}  // namespace stepwell
