#include "server/heads.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace stepwell {
namespace {

// Fields of a chunk that its trial remembers, found before the lock is taken.
struct Newest {
  std::vector<std::pair<SeriesNo, LatestValue>> values;
  std::int64_t time_us = std::numeric_limits<std::int64_t>::min();
};

LatestValue NewestOf(const TickTable& table, const TickColumn& column, std::uint64_t sequence) {
  LatestValue newest;
  bool any = false;
  std::size_t value = 0;
  for (std::size_t tick = 0; tick < table.times_us.size(); ++tick) {
    if (!column.presence.empty() && column.presence[tick] == 0) continue;
    if (!any || table.times_us[tick] >= newest.time_us) {
      newest = {table.times_us[tick], sequence, table.batches[tick], column.values[value]};
      any = true;
    }
    ++value;
  }
  return newest;
}

// Most tables are in order of time and have all their samples: then the last tick is the newest.
bool LastIsNewest(const TickTable& table) {
  return std::is_sorted(table.times_us.begin(), table.times_us.end());
}

Newest FindNewest(const HeadChunk& chunk) {
  Newest newest;
  for (const TickTable& table : chunk.tables) {
    const bool last_is_newest = LastIsNewest(table);
    for (const std::int64_t time_us : table.times_us) {
      newest.time_us = std::max(newest.time_us, time_us);
    }
    for (const TickColumn& column : table.columns) {
      if (column.values.empty()) continue;
      newest.values.emplace_back(column.series_no,
                                 last_is_newest && column.presence.empty()
                                     ? LatestValue{table.times_us.back(), chunk.sequence,
                                                   table.batches.back(), column.values.back()}
                                     : NewestOf(table, column, chunk.sequence));
    }
  }
  return newest;
}

void KeepNewer(std::map<SeriesNo, LatestValue>& latest, SeriesNo series_no,
               const LatestValue& value) {
  const auto [place, is_new] = latest.emplace(series_no, value);
  if (is_new) return;
  const LatestValue& held = place->second;
  if (std::pair(value.time_us, value.sequence) >= std::pair(held.time_us, held.sequence)) {
    place->second = value;
  }
}

}  // namespace

HeadsPin::HeadsPin(HeadsPin&& other) noexcept
    : heads_(std::exchange(other.heads_, nullptr)),
      fold_no_(other.fold_no_),
      chunks_(std::move(other.chunks_)),
      recovering_(other.recovering_) {}

HeadsPin::~HeadsPin() {
  if (heads_ != nullptr) heads_->Unpin(fold_no_);
}

void Heads::NoteWriter(TrialId trial_id, WriterNo writer_no, std::uint64_t folded_sequence) {
  absl::MutexLock lock(&mu_);
  const auto [place, is_new] = trials_[trial_id].writers.try_emplace(writer_no);
  if (is_new) place->second.folded_sequence = folded_sequence;
}

void Heads::Add(const std::vector<HeadChunkPtr>& chunks) {
  std::vector<Newest> newest;
  newest.reserve(chunks.size());
  for (const HeadChunkPtr& chunk : chunks) newest.push_back(FindNewest(*chunk));
  absl::MutexLock lock(&mu_);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const HeadChunkPtr& chunk = chunks[i];
    TrialHead& trial = trials_[chunk->trial_id];
    WriterHead& writer = trial.writers[chunk->writer_no];
    if (chunk->sequence <= writer.folded_sequence) continue;
    auto place = writer.chunks.end();
    while (place != writer.chunks.begin() && (*std::prev(place))->sequence >= chunk->sequence) {
      --place;
    }
    if (place != writer.chunks.end() && (*place)->sequence == chunk->sequence) continue;
    writer.chunks.insert(place, chunk);
    unfolded_bytes_ += chunk->bytes;
    if (!chunk->tables.empty()) {
      trial.newest_time_us = trial.newest_time_us == 0
                                 ? newest[i].time_us
                                 : std::max(trial.newest_time_us, newest[i].time_us);
    }
    for (const auto& [series_no, value] : newest[i].values) {
      KeepNewer(trial.latest, series_no, value);
    }
  }
}

HeadsPin Heads::Pin(TrialId trial_id) {
  absl::MutexLock lock(&mu_);
  HeadsPin pin(this, fold_no_);
  ++pins_[fold_no_];
  if (const auto trial = trials_.find(trial_id); trial != trials_.end()) {
    pin.recovering_ = trial->second.recovering;
    for (const auto& [writer_no, writer] : trial->second.writers) {
      pin.chunks_.insert(pin.chunks_.end(), writer.chunks.begin(), writer.chunks.end());
    }
  }
  return pin;
}

void Heads::Unpin(FoldNo fold_no) {
  absl::MutexLock lock(&mu_);
  const auto pin = pins_.find(fold_no);
  STEPWELL_CHECK(pin != pins_.end());
  if (--pin->second == 0) pins_.erase(pin);
}

std::map<SeriesNo, LatestValue> Heads::Latest(TrialId trial_id) const {
  absl::MutexLock lock(&mu_);
  const auto trial = trials_.find(trial_id);
  return trial == trials_.end() ? std::map<SeriesNo, LatestValue>{} : trial->second.latest;
}

void Heads::NoteLatest(TrialId trial_id, SeriesNo series_no, LatestValue value) {
  absl::MutexLock lock(&mu_);
  KeepNewer(trials_[trial_id].latest, series_no, value);
}

namespace {

// Takes a writer's chunks from the oldest on, up to what `bytes_left` allows.
template <typename Chunks>
std::size_t CountWithin(const Chunks& chunks, std::int64_t& bytes_left) {
  std::size_t count = 0;
  while (count < chunks.size() && bytes_left > 0) {
    bytes_left -= chunks[count]->bytes;
    ++count;
  }
  return count;
}

}  // namespace

Heads::FoldPlan Heads::PlanFold(std::optional<TrialId> trial_id, std::int64_t bytes_max) const {
  FoldPlan plan;
  std::int64_t bytes_left = bytes_max;
  std::int64_t oldest_left_us = std::numeric_limits<std::int64_t>::max();
  absl::MutexLock lock(&mu_);
  for (const auto& [id, trial] : trials_) {
    const bool wanted = !trial.recovering && (!trial_id || *trial_id == id);
    for (const auto& [writer_no, writer] : trial.writers) {
      const std::size_t count = wanted ? CountWithin(writer.chunks, bytes_left) : 0;
      if (trial.recovering) oldest_left_us = std::numeric_limits<std::int64_t>::min();
      if (count < writer.chunks.size()) {
        oldest_left_us = std::min(oldest_left_us, writer.chunks[count]->received_time_us);
      }
      if (count == 0) continue;
      WriterFold fold;
      fold.trial_id = id;
      fold.writer_no = writer_no;
      fold.from_sequence_exclusive = writer.folded_sequence;
      fold.to_sequence = writer.chunks[count - 1]->sequence;
      for (std::size_t i = 0; i < count; ++i) {
        const HeadChunkPtr& chunk = writer.chunks[i];
        plan.bytes += chunk->bytes;
        plan.chunks.push_back(chunk);
        if (!chunk->tables.empty()) fold.parts.push_back({chunk->received_time_us, &chunk->tables});
      }
      plan.folds.push_back(std::move(fold));
    }
  }
  plan.all_before_us = oldest_left_us;
  return plan;
}

void Heads::Folded(const std::vector<WriterFold>& folds, FoldNo fold_no) {
  std::vector<HeadChunkPtr> dropped;  // freed outside of the lock
  absl::MutexLock lock(&mu_);
  for (const WriterFold& fold : folds) {
    const auto trial = trials_.find(fold.trial_id);
    if (trial == trials_.end()) continue;
    WriterHead& writer = trial->second.writers[fold.writer_no];
    auto end = writer.chunks.begin();
    while (end != writer.chunks.end() && (*end)->sequence <= fold.to_sequence) {
      unfolded_bytes_ -= (*end)->bytes;
      dropped.push_back(std::move(*end));
      ++end;
    }
    writer.chunks.erase(writer.chunks.begin(), end);
    writer.folded_sequence = std::max(writer.folded_sequence, fold.to_sequence);
  }
  fold_no_ = std::max(fold_no_, fold_no);
}

FoldNo Heads::MergeableFoldNo() const {
  absl::MutexLock lock(&mu_);
  return pins_.empty() ? fold_no_ : std::min(pins_.begin()->first, fold_no_);
}

std::int64_t Heads::unfolded_bytes() const {
  absl::MutexLock lock(&mu_);
  return unfolded_bytes_;
}

std::int64_t Heads::UnfoldedSampleCount(TrialId trial_id) const {
  absl::MutexLock lock(&mu_);
  std::int64_t count = 0;
  if (const auto trial = trials_.find(trial_id); trial != trials_.end()) {
    for (const auto& [writer_no, writer] : trial->second.writers) {
      for (const HeadChunkPtr& chunk : writer.chunks) count += chunk->sample_count;
    }
  }
  return count;
}

std::int64_t Heads::NewestTime(TrialId trial_id) const {
  absl::MutexLock lock(&mu_);
  const auto trial = trials_.find(trial_id);
  return trial == trials_.end() ? 0 : trial->second.newest_time_us;
}

void Heads::RecoveryStarted(const std::vector<TrialId>& trials, FoldNo fold_no) {
  absl::MutexLock lock(&mu_);
  for (const TrialId trial_id : trials) trials_[trial_id].recovering = true;
  fold_no_ = std::max(fold_no_, fold_no);
}

void Heads::RecoveryDone(TrialId trial_id) {
  absl::MutexLock lock(&mu_);
  trials_[trial_id].recovering = false;
}

void Heads::Clear() {
  absl::flat_hash_map<TrialId, TrialHead> dropped;
  absl::MutexLock lock(&mu_);
  dropped.swap(trials_);
  unfolded_bytes_ = 0;
}

}  // namespace stepwell
