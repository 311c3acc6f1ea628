#include "server/follow_log.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"

namespace stepwell {
namespace {

// A range grows to a second, then the next begins; the older half is halved when there are too many, so
// that they reach back ever further, ever coarser.
constexpr std::int64_t kGoneUs = 1'000'000;
constexpr std::size_t kGoneMax = 16;

}  // namespace

std::uint64_t FollowLog::IndexOf(std::int64_t received_time_us) const {
  std::uint64_t index = end_index();
  while (index > begin_index_ && At(index - 1)->received_time_us >= received_time_us) --index;
  return index;
}

void FollowLog::Push(HeadChunkPtr chunk, std::int64_t oldest_time_us) {
  entries_.push_back({std::move(chunk), oldest_time_us});
}

HeadChunkPtr FollowLog::PopFront() {
  STEPWELL_CHECK(!empty());
  ++begin_index_;
  NoteGone(entries_.front());
  HeadChunkPtr chunk = std::move(entries_.front().chunk);
  entries_.pop_front();
  return chunk;
}

void FollowLog::NoteGone(const Entry& entry) {
  const std::int64_t received_us = entry.chunk->received_time_us;
  if (gone_.empty() || received_us - gone_.back().first_received_us > kGoneUs) {
    gone_.push_back({begin_index_, received_us, received_us, entry.oldest_time_us});
  } else {
    Gone& last = gone_.back();
    last.end_index = begin_index_;
    last.last_received_us = std::max(last.last_received_us, received_us);
    last.oldest_time_us = std::min(last.oldest_time_us, entry.oldest_time_us);
  }
  if (gone_.size() <= kGoneMax) return;
  std::vector<Gone> coarser;
  for (std::size_t i = 0; i < kGoneMax / 2; i += 2) {
    Gone joined = gone_[i + 1];
    joined.first_received_us = gone_[i].first_received_us;
    joined.last_received_us = std::max(joined.last_received_us, gone_[i].last_received_us);
    joined.oldest_time_us = std::min(joined.oldest_time_us, gone_[i].oldest_time_us);
    coarser.push_back(joined);
  }
  coarser.insert(coarser.end(), gone_.begin() + kGoneMax / 2, gone_.end());
  gone_ = std::move(coarser);
}

void FollowLog::Settle() {
  std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return a.chunk->received_time_us < b.chunk->received_time_us;
  });
  SettleWriters();
}

// Times received may step back between two masters: then each writer's chunks change places among
// themselves.
void FollowLog::SettleWriters() {
  std::map<WriterNo, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    places[entries_[i].chunk->writer_no].push_back(i);
  }
  for (const auto& [writer_no, at] : places) {
    std::vector<Entry> own;
    for (const std::size_t i : at) own.push_back(std::move(entries_[i]));
    std::sort(own.begin(), own.end(),
              [](const Entry& a, const Entry& b) { return a.chunk->sequence < b.chunk->sequence; });
    for (std::size_t i = 0; i < at.size(); ++i) entries_[at[i]] = std::move(own[i]);
  }
}

std::int64_t FollowLog::OldestGone(std::uint64_t index) const {
  std::int64_t oldest_us = INT64_MAX;
  for (const Gone& gone : gone_) {
    if (gone.end_index > index) oldest_us = std::min(oldest_us, gone.oldest_time_us);
  }
  return oldest_us;
}

std::int64_t FollowLog::OldestGoneSince(std::int64_t received_time_us) const {
  std::int64_t oldest_us = INT64_MAX;
  for (const Gone& gone : gone_) {
    if (gone.last_received_us >= received_time_us) {
      oldest_us = std::min(oldest_us, gone.oldest_time_us);
    }
  }
  return oldest_us;
}

std::int64_t FollowLog::OldestFrom(std::uint64_t index) const {
  std::int64_t oldest_us = OldestGone(index);
  for (std::uint64_t i = std::max(index, begin_index_); i < end_index(); ++i) {
    oldest_us = std::min(oldest_us, entries_[i - begin_index_].oldest_time_us);
  }
  return oldest_us;
}

}  // namespace stepwell
