#include "server/heads.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/random/random.h"
#include "base/check.h"

namespace stepwell {
namespace {

// With the table's slot or the map's node.
constexpr std::int64_t kTrialBytes = 192;
constexpr std::int64_t kWriterBytes = 104;

// What Add looks up of a chunk before it takes the lock.
struct Looked {
  NewestValues newest;
  std::int64_t oldest_time_us;
};

std::vector<Looked> LookAt(const std::vector<HeadChunkPtr>& chunks) {
  std::vector<Looked> looked;
  looked.reserve(chunks.size());
  for (const HeadChunkPtr& chunk : chunks) {
    looked.push_back({FindNewest(chunk->tables, chunk->sequence), OldestTime(*chunk)});
  }
  return looked;
}

}  // namespace

// Ids of logs are in cursors, which outlive this process.
Heads::Heads(Options options)
    : options_(options), next_log_id_(absl::Uniform<std::uint64_t>(absl::BitGen())) {}

HeadsPin::HeadsPin(HeadsPin&& other) noexcept
    : reader_(std::move(other.reader_)),
      heads_(std::exchange(other.heads_, nullptr)),
      newest_(other.newest_),
      fold_no_(other.fold_no_),
      chunks_(std::move(other.chunks_)),
      recovering_(other.recovering_) {}

HeadsPin::~HeadsPin() {
  if (heads_ != nullptr) heads_->Unpin(newest_);
}

std::int64_t Heads::KeptBytesOf(const TrialHead& trial) {
  return kTrialBytes + (trial.log == nullptr ? 0 : kFollowLogBytes) +
         static_cast<std::int64_t>(trial.writers.size()) * kWriterBytes +
         static_cast<std::int64_t>(trial.latest.size()) * kLatestValueBytes;
}

Heads::TrialHead& Heads::UseLocked(TrialId trial_id) {
  const auto [place, is_new] = trials_.try_emplace(trial_id);
  if (is_new) {
    kept_bytes_ += kTrialBytes;
    place->second.folded_no = others_folded_no_;
  }
  place->second.last_use = ++use_count_;
  return place->second;
}

Heads::WriterHead& Heads::WriterOfLocked(TrialHead& trial, const HeadChunk& chunk) {
  const auto [place, is_new] = trial.writers.try_emplace(chunk.writer_no);
  if (is_new) {
    // Its trial had left, which it does wholly folded: all before this chunk is.
    place->second.folded_sequence = FirstSequence(chunk) - 1;
    place->second.gone_sequence = place->second.folded_sequence;
    trial.has_older = trial.has_older || place->second.folded_sequence > 0;
    kept_bytes_ += kWriterBytes;
  }
  return place->second;
}

void Heads::KeepNewerLocked(TrialHead& trial, SeriesNo series_no, const LatestValue& value) {
  const auto [place, is_new] = trial.latest.emplace(series_no, value);
  if (is_new) {
    kept_bytes_ += kLatestValueBytes;
  } else {
    place->second = Newer(place->second, value);
  }
}

void Heads::NoteWriter(TrialId trial_id, WriterNo writer_no, std::uint64_t folded_sequence) {
  absl::MutexLock lock(&mu_);
  TrialHead& trial = UseLocked(trial_id);
  const auto [place, is_new] = trial.writers.try_emplace(writer_no);
  if (!is_new) return;
  place->second.folded_sequence = folded_sequence;
  place->second.gone_sequence = folded_sequence;
  trial.has_older = trial.has_older || folded_sequence > 0;
  kept_bytes_ += kWriterBytes;
}

void Heads::Add(const std::vector<HeadChunkPtr>& chunks) {
  const std::vector<Looked> looked = LookAt(chunks);
  // Nobody follows most trials: nothing is allocated for them.
  absl::InlinedVector<std::shared_ptr<FollowSignal>, 8> signals;
  {
    absl::MutexLock lock(&mu_);
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const HeadChunkPtr& chunk = chunks[i];
      TrialHead& trial = UseLocked(chunk->trial_id);
      WriterHead& writer = WriterOfLocked(trial, *chunk);
      if (chunk->sequence <= writer.folded_sequence) continue;
      auto place = writer.chunks.end();
      while (place != writer.chunks.begin() && (*std::prev(place))->sequence >= chunk->sequence) {
        --place;
      }
      if (place != writer.chunks.end() && (*place)->sequence == chunk->sequence) continue;
      writer.chunks.insert(place, chunk);
      unfolded_bytes_ += chunk->bytes;
      for (const auto& [series_no, value] : looked[i].newest) {
        KeepNewerLocked(trial, series_no, value);
      }
      FollowLog& log = LogOfLocked(trial);
      if (log.empty()) logged_.insert(chunk->trial_id);
      log.Push(chunk, looked[i].oldest_time_us);
      if (trial.signal == nullptr) continue;
      if (std::find(signals.begin(), signals.end(), trial.signal) == signals.end()) {
        signals.push_back(trial.signal);
      }
    }
  }
  for (const auto& signal : signals) signal->Notify();
}

bool Heads::MayLeaveLocked(const TrialHead& trial) const {
  if (trial.recovering || trial.follower_count > 0) return false;
  for (const auto& [writer_no, writer] : trial.writers) {
    if (!writer.chunks.empty()) return false;
  }
  return pins_.empty() || pins_.begin()->first >= trial.folded_no;
}

void Heads::EvictLocked() {
  if (kept_bytes_ <= options_.kept_bytes_max) return;
  std::vector<std::pair<std::uint64_t, TrialId>> by_use;
  for (const auto& [trial_id, trial] : trials_) {
    if (MayLeaveLocked(trial)) by_use.emplace_back(trial.last_use, trial_id);
  }
  std::sort(by_use.begin(), by_use.end());
  for (const auto& [last_use, trial_id] : by_use) {
    if (kept_bytes_ <= options_.kept_bytes_max / 4 * 3) return;
    const auto trial = trials_.find(trial_id);
    kept_bytes_ -= KeptBytesOf(trial->second);
    LeaveLogLocked(trial_id, trial->second);
    others_folded_no_ = std::max(others_folded_no_, trial->second.folded_no);
    trials_.erase(trial);
  }
}

HeadsPin Heads::Pin(TrialId trial_id) {
  FoldGate::Reader reader = gate_.Enter(trial_id);
  absl::MutexLock lock(&mu_);
  HeadsPin pin(this, std::move(reader), fold_no_);
  ++pins_[fold_no_];
  if (!whole_) {
    // Rows alone answer, all that there are: who else owns the database folds by numbers that nobody told us.
    pin.fold_no_ = FoldNo{INT64_MAX};
    pin.recovering_ = true;
    return pin;
  }
  pin.fold_no_ = others_folded_no_;
  if (const auto trial = trials_.find(trial_id); trial != trials_.end()) {
    pin.fold_no_ = trial->second.folded_no;
    pin.recovering_ = trial->second.recovering;
    for (const auto& [writer_no, writer] : trial->second.writers) {
      pin.chunks_.insert(pin.chunks_.end(), writer.chunks.begin(), writer.chunks.end());
    }
  }
  return pin;
}

HeadsPin Heads::PinAll() {
  absl::MutexLock lock(&mu_);
  HeadsPin pin(this, std::nullopt, fold_no_);
  ++pins_[fold_no_];
  for (const auto& [trial_id, trial] : trials_) {
    for (const auto& [writer_no, writer] : trial.writers) {
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

Heads::Latest Heads::LatestOf(TrialId trial_id) const {
  absl::MutexLock lock(&mu_);
  const auto trial = trials_.find(trial_id);
  return trial == trials_.end() ? Latest{} : trial->second.latest;
}

Heads::LatestList Heads::ListLatest(TrialId trial_id) const {
  LatestList list;
  std::size_t count = 0;
  // Room for all is made outside of the lock, which acks wait for.
  do {
    list.reserve(count + count / 8);
    absl::MutexLock lock(&mu_);
    const auto trial = trials_.find(trial_id);
    if (trial == trials_.end()) return list;
    count = trial->second.latest.size();
    if (count <= list.capacity()) {
      list.assign(trial->second.latest.begin(), trial->second.latest.end());
    }
  } while (list.size() < count);
  return list;
}

void Heads::NoteLatest(TrialId trial_id, const std::vector<SeriesNo>& series_nos,
                       const Latest& stored) {
  absl::MutexLock lock(&mu_);
  TrialHead& trial = UseLocked(trial_id);
  for (const auto& [series_no, value] : stored) KeepNewerLocked(trial, series_no, value);
  for (const SeriesNo series_no : series_nos) {
    KeepNewerLocked(trial, series_no, {.time_us = LatestValue::kNoTime, .rows_asked = true});
  }
  EvictLocked();
}

Heads::FoldTarget Heads::NewestUnfolded(std::optional<TrialId> trial_id) const {
  FoldTarget target;
  absl::MutexLock lock(&mu_);
  for (const auto& [id, trial] : trials_) {
    if (trial.recovering || (trial_id && *trial_id != id)) continue;
    for (const auto& [writer_no, writer] : trial.writers) {
      if (!writer.chunks.empty()) target[{id, writer_no}] = writer.chunks.back()->sequence;
    }
  }
  return target;
}

namespace {

// Whether what is acked between the writer's chunk at `index` and what stands before it is not here, and not known to be
// nowhere.
template <typename Writer>
bool HasHoleBefore(const Writer& writer, std::size_t index) {
  if (index >= writer.chunks.size()) return false;
  const std::uint64_t before =
      index == 0 ? writer.folded_sequence : writer.chunks[index - 1]->sequence;
  return FirstSequence(*writer.chunks[index]) > std::max(before, writer.replayed_sequence) + 1;
}

// Takes a writer's chunks from the oldest on, up to `last_sequence`, a hole, and what `bytes_left` allows.
template <typename Writer>
std::size_t CountWithin(const Writer& writer, std::uint64_t last_sequence,
                        std::int64_t& bytes_left) {
  const auto& chunks = writer.chunks;
  std::size_t count = 0;
  while (count < chunks.size() && bytes_left > 0 && chunks[count]->sequence <= last_sequence &&
         !HasHoleBefore(writer, count)) {
    bytes_left -= chunks[count]->bytes;
    ++count;
  }
  return count;
}

std::uint64_t LastSequence(const Heads::FoldTarget* target, TrialId trial_id, WriterNo writer_no) {
  if (target == nullptr) return std::numeric_limits<std::uint64_t>::max();
  const auto place = target->find({trial_id, writer_no});
  return place == target->end() ? 0 : place->second;
}

}  // namespace

Heads::FoldPlan Heads::PlanFold(std::optional<TrialId> trial_id, std::int64_t bytes_max,
                                const FoldTarget* target) const {
  FoldPlan plan;
  std::int64_t bytes_left = bytes_max;
  std::int64_t oldest_left_us = std::numeric_limits<std::int64_t>::max();
  absl::MutexLock lock(&mu_);
  for (const auto& [id, trial] : trials_) {
    const bool wanted = !trial.recovering && (!trial_id || *trial_id == id);
    for (const auto& [writer_no, writer] : trial.writers) {
      const std::size_t count =
          wanted ? CountWithin(writer, LastSequence(target, id, writer_no), bytes_left) : 0;
      if (wanted && HasHoleBefore(writer, count)) plan.hole = {id, writer_no};
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
        fold.gaps.insert(fold.gaps.end(), chunk->gaps.begin(), chunk->gaps.end());
        if (chunk->tables.empty()) continue;
        fold.parts.push_back({chunk->received_time_us, &chunk->tables, chunk->sequence});
      }
      plan.folds.push_back(std::move(fold));
    }
  }
  plan.all_before_us = oldest_left_us;
  return plan;
}

void Heads::Folded(const std::vector<WriterFold>& folds, FoldNo fold_no) {
  std::vector<HeadChunkPtr> dropped;  // freed outside of the lock
  const absl::Time now = options_.clock->Now();
  absl::MutexLock lock(&mu_);
  for (const WriterFold& fold : folds) {
    const auto trial = trials_.find(fold.trial_id);
    if (trial == trials_.end()) {
      others_folded_no_ = std::max(others_folded_no_, fold_no);
      continue;
    }
    trial->second.folded_no = std::max(trial->second.folded_no, fold_no);
    WriterHead& writer = trial->second.writers.at(fold.writer_no);
    auto end = writer.chunks.begin();
    while (end != writer.chunks.end() && (*end)->sequence <= fold.to_sequence) {
      unfolded_bytes_ -= (*end)->bytes;
      if ((*end)->sequence > writer.gone_sequence)
        followed_bytes_ += (*end)->bytes + kFollowEntryBytes;
      dropped.push_back(std::move(*end));
      ++end;
    }
    writer.chunks.erase(writer.chunks.begin(), end);
    writer.folded_sequence = std::max(writer.folded_sequence, fold.to_sequence);
  }
  fold_no_ = std::max(fold_no_, fold_no);
  DropFollowedLocked(absl::ToUnixMicros(now), dropped);
  EvictLocked();
}

FoldNo Heads::MergeableFoldNo() const {
  absl::MutexLock lock(&mu_);
  return pins_.empty() ? fold_no_ : std::min(pins_.begin()->first, fold_no_);
}

std::int64_t Heads::unfolded_bytes() const {
  absl::MutexLock lock(&mu_);
  return unfolded_bytes_;
}

std::int64_t Heads::kept_bytes() const {
  absl::MutexLock lock(&mu_);
  return kept_bytes_;
}

bool Heads::Recovering(TrialId trial_id) const {
  absl::MutexLock lock(&mu_);
  const auto trial = trials_.find(trial_id);
  return trial != trials_.end() && trial->second.recovering;
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

void Heads::RecoveryStarted(const std::vector<TrialId>& trials, FoldNo fold_no) {
  const absl::Time now = options_.clock->Now();
  absl::MutexLock lock(&mu_);
  for (const TrialId trial_id : trials) UseLocked(trial_id).recovering = true;
  fold_no_ = std::max(fold_no_, fold_no);
  others_folded_no_ = fold_no_;
  for (auto& [trial_id, trial] : trials_) trial.folded_no = fold_no_;
  whole_ = true;
  whole_since_us_ = absl::ToUnixMicros(now);
}

void Heads::RecoveryDone(TrialId trial_id) {
  absl::MutexLock lock(&mu_);
  TrialHead& trial = UseLocked(trial_id);
  trial.recovering = false;
  for (auto& [writer_no, writer] : trial.writers) {
    writer.replayed_sequence =
        writer.chunks.empty() ? writer.folded_sequence : writer.chunks.back()->sequence;
  }
  if (trial.log != nullptr) trial.log->Settle();
}

void Heads::Clear() {
  absl::flat_hash_map<TrialId, TrialHead> dropped;
  Signals signals;
  {
    absl::MutexLock lock(&mu_);
    signals = SignalsLocked();
    dropped.swap(trials_);
    // A fold under way may not be heard of any more: readers of before had its samples in their heads.
    others_folded_no_ = FoldNo{Value(fold_no_) + 1};
    logged_.clear();
    unfolded_bytes_ = 0;
    kept_bytes_ = 0;
    followed_bytes_ = 0;
    whole_ = false;
  }
  gate_.Open();
  for (const auto& signal : signals) signal->Notify();
}

}  // namespace stepwell
