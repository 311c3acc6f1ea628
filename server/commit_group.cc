#include "server/commit_group.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace stepwell {
namespace {

using WriterKey = std::pair<TrialId, WriterNo>;

WriterKey KeyOf(const CheckedChunk& chunk) { return {chunk.trial_id, chunk.writer_no}; }

// Whether `next` can stand in one advance with `before`, the writer's last chunk of the group.
struct Tail {
  std::uint64_t generation = 0;
  std::uint64_t last_sequence = 0;
  bool closing = false;

  bool TakesToo(const CheckedChunk& next) const {
    return !closing && next.generation == generation && next.first_sequence == last_sequence + 1;
  }
};

// The chunk that was added last ends here. One without a sequence goes with the one before.
void NoteCut(WriterAdvance& advance) {
  std::vector<JournalCut>& cuts = advance.cuts;
  if (cuts.empty() || cuts.back().last_sequence != advance.last_sequence) cuts.emplace_back();
  cuts.back() = {advance.last_sequence, advance.payload.size()};
}

}  // namespace

absl::StatusOr<CommitQueue::Place> CommitQueue::Hold(std::int64_t bytes, SteadyTime deadline) {
  const auto has_room = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closed_ || bytes_ + held_bytes_ < options_.queue_bytes_max;
  };
  absl::MutexLock lock(&mu_);
  if (!mu_.AwaitWithTimeout(absl::Condition(&has_room), deadline.Left())) {
    return absl::ResourceExhaustedError(absl::StrCat("commit queue: full with ", bytes_, " bytes"));
  }
  if (closed_) return absl::UnavailableError("commit queue: closed");
  held_bytes_ += bytes;
  return Place(this, bytes);
}

void CommitQueue::GiveBack(std::int64_t bytes) {
  absl::MutexLock lock(&mu_);
  held_bytes_ -= bytes;
}

absl::Status CommitQueue::Add(CheckedChunk& chunk, SteadyTime deadline, Place* place) {
  const std::int64_t bytes = chunk.bytes;
  const bool has_place = place != nullptr && place->queue_ != nullptr;
  const auto has_room = [this, bytes, has_place]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    // One that is larger than the whole queue still goes through an empty one.
    return closed_ || has_place || bytes_ == 0 ||
           bytes_ + held_bytes_ + bytes <= options_.queue_bytes_max;
  };
  absl::MutexLock lock(&mu_);
  if (!mu_.AwaitWithTimeout(absl::Condition(&has_room), deadline.Left())) {
    return absl::ResourceExhaustedError(absl::StrCat("commit queue: full with ", bytes_, " bytes"));
  }
  if (closed_) return absl::UnavailableError("commit queue: closed");
  if (has_place) {
    held_bytes_ -= place->bytes_;
    place->queue_ = nullptr;
  }
  bytes_ += bytes;
  chunk.queued_time = SteadyTime::Now();
  pending_.push_back(std::move(chunk));
  return absl::OkStatus();
}

bool CommitQueue::GroupFullLocked() const {
  return closed_ || pending_.size() >= std::min(options_.chunk_count_max, options_.few_count) ||
         bytes_ >= options_.group_bytes_max;
}

bool CommitQueue::HasRoom(const Load& load, const CheckedChunk& chunk) const {
  if (load.chunk_count == 0) return true;
  const std::int64_t bytes_max =
      load.chunk_count < options_.few_count ? options_.group_bytes_max : options_.many_bytes_max;
  return load.chunk_count < options_.chunk_count_max && load.bytes + chunk.bytes <= bytes_max &&
         load.gap_count + chunk.gaps.size() <= options_.gap_count_max;
}

std::vector<CheckedChunk> CommitQueue::Take(SteadyTime deadline, std::size_t count_max) {
  absl::MutexLock lock(&mu_);
  const auto has_any = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closed_ || !pending_.empty() || RestIsOverLocked();
  };
  mu_.AwaitWithTimeout(absl::Condition(&has_any), deadline.Left());
  if (RestIsOverLocked()) EndRestLocked();
  if (pending_.empty()) return {};
  if (options_.linger > absl::ZeroDuration()) {
    const auto full = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return GroupFullLocked(); };
    const SteadyTime until = pending_.front().queued_time + options_.linger;
    mu_.AwaitWithTimeout(absl::Condition(&full), until.Left());
    if (pending_.empty()) return {};  // cleared meanwhile
  }
  std::vector<CheckedChunk> group = CutLocked(count_max);
  if (group.empty() && RestIsOverLocked()) {
    EndRestLocked();
    group = CutLocked(count_max);
  }
  return group;
}

// Once closed others come first, as long as there are any: the time that is left is theirs.
bool CommitQueue::RestIsOverLocked() const {
  if (aside_.empty()) return false;
  if (pending_.empty() && (closed_ || !others_came_)) return true;
  return !closed_ && others_came_ && rest_end_.HasPassed();
}

std::vector<CheckedChunk> CommitQueue::CutLocked(std::size_t count_max) {
  std::vector<CheckedChunk> group;
  absl::flat_hash_map<WriterKey, Tail> tails;
  absl::flat_hash_set<WriterKey> ended;  // a later chunk of these must wait for the next group
  Load load;
  std::deque<CheckedChunk> left;
  while (!pending_.empty() && group.size() < count_max) {
    if (!group.empty() && group.front().is_alone) break;
    CheckedChunk& chunk = pending_.front();
    const WriterKey key = KeyOf(chunk);
    const auto tail = tails.find(key);
    if (resting_.contains(chunk.trial_id)) {
      aside_.push_back(std::move(chunk));
    } else if (!HasRoom(load, chunk) || (chunk.is_alone && !group.empty())) {
      break;
    } else if (ended.contains(key) || (tail != tails.end() && !tail->second.TakesToo(chunk))) {
      ended.insert(key);
      left.push_back(std::move(chunk));
    } else {
      tails[key] = {chunk.generation, chunk.last_sequence, chunk.closing.has_value()};
      load = {load.chunk_count + 1, load.bytes + chunk.bytes, load.gap_count + chunk.gaps.size()};
      group.push_back(std::move(chunk));
    }
    pending_.pop_front();
  }
  while (!left.empty()) {
    pending_.push_front(std::move(left.back()));
    left.pop_back();
  }
  bytes_ -= load.bytes;
  others_came_ = others_came_ || (!group.empty() && !group.front().is_alone);
  return group;
}

void CommitQueue::PutBack(std::vector<CheckedChunk> chunks) {
  absl::MutexLock lock(&mu_);
  for (auto chunk = chunks.rbegin(); chunk != chunks.rend(); ++chunk) {
    bytes_ += chunk->bytes;
    pending_.push_front(std::move(*chunk));
  }
}

void CommitQueue::SetAside(CheckedChunk chunk, SteadyTime rest_end) {
  absl::MutexLock lock(&mu_);
  others_came_ = false;
  rest_end_ = rest_end;
  bytes_ += chunk.bytes;
  chunk.is_alone = true;
  resting_.insert(chunk.trial_id);
  aside_.push_back(std::move(chunk));
}

void CommitQueue::EndRests() {
  absl::MutexLock lock(&mu_);
  rest_end_ = SteadyTime::InfinitePast();
}

void CommitQueue::EndRestLocked() {
  const TrialId trial_id = aside_.front().trial_id;
  std::deque<CheckedChunk> ready, rest;
  for (CheckedChunk& chunk : aside_) {
    (chunk.trial_id == trial_id ? ready : rest).push_back(std::move(chunk));
  }
  aside_ = std::move(rest);
  resting_.erase(trial_id);
  others_came_ = false;
  for (; !ready.empty(); ready.pop_back()) pending_.push_front(std::move(ready.back()));
}

std::vector<CheckedChunk> CommitQueue::Clear() {
  absl::MutexLock lock(&mu_);
  while (!aside_.empty()) EndRestLocked();
  std::vector<CheckedChunk> dropped(std::make_move_iterator(pending_.begin()),
                                    std::make_move_iterator(pending_.end()));
  pending_.clear();
  bytes_ = 0;
  return dropped;
}

void CommitQueue::Close() {
  absl::MutexLock lock(&mu_);
  closed_ = true;
}

std::int64_t CommitQueue::bytes() const {
  absl::MutexLock lock(&mu_);
  return bytes_;
}

CommitGroup BuildGroup(const std::vector<CheckedChunk>& chunks, std::int64_t owner_epoch,
                       std::int64_t received_time_us) {
  CommitGroup group;
  group.request.owner_epoch = owner_epoch;
  group.request.received_time_us = received_time_us;
  absl::flat_hash_map<WriterKey, std::size_t> places;
  std::vector<std::size_t> payload_bytes;
  for (const CheckedChunk& chunk : chunks) {
    const auto [place, is_new] = places.emplace(KeyOf(chunk), group.request.advances.size());
    if (is_new) {
      WriterAdvance& made = group.request.advances.emplace_back();
      made.trial_id = chunk.trial_id;
      made.writer_no = chunk.writer_no;
      made.generation = chunk.generation;
      made.first_sequence = chunk.first_sequence;
      made.last_sequence = chunk.first_sequence - 1;
      payload_bytes.push_back(0);
    }
    payload_bytes[place->second] += chunk.journal_entry.size();
    group.advance_of.push_back(place->second);
  }
  for (std::size_t i = 0; i < payload_bytes.size(); ++i) {
    group.request.advances[i].payload.reserve(payload_bytes[i]);
  }
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const CheckedChunk& chunk = chunks[i];
    WriterAdvance& advance = group.request.advances[group.advance_of[i]];
    STEPWELL_CHECK(advance.generation == chunk.generation);
    STEPWELL_CHECK(advance.last_sequence + 1 == chunk.first_sequence);
    if (chunk.last_sequence >= chunk.first_sequence) {
      advance.last_sequence = chunk.last_sequence;
      advance.last_crc32c = chunk.crc32c;
    }
    if (chunk.closing) advance.closing = chunk.closing;
    advance.gaps.insert(advance.gaps.end(), chunk.gaps.begin(), chunk.gaps.end());
    advance.payload.append(chunk.journal_entry);
    NoteCut(advance);
  }
  return group;
}

}  // namespace stepwell
