#include "storage/journal_ring.h"

#include <algorithm>
#include <utility>

namespace stepwell {
namespace {

JournalSegment ReceivedBy(std::int64_t now_us, JournalSegment found) {
  found.first_time_us = std::min(found.first_time_us, now_us);
  found.last_time_us = std::min(found.last_time_us, now_us);
  return found;
}

}  // namespace

void JournalRing::Start(const std::array<JournalSegment, kSegmentCount>& found,
                        std::int64_t now_us) {
  absl::MutexLock lock(&mu_);
  std::transform(found.begin(), found.end(), segments_.begin(),
                 [now_us](const JournalSegment& each) { return ReceivedBy(now_us, each); });
  const auto rank = [](const JournalSegment& each) {
    return std::pair(!each.is_damaged, each.last_time_us);
  };
  const auto newest = std::max_element(
      found.begin(), found.end(),
      [&](const JournalSegment& a, const JournalSegment& b) { return rank(a) < rank(b); });
  current_ = static_cast<int>(newest - found.begin());
  newest_time_us_ = std::max(newest_time_us_, newest->last_time_us);
}

std::int64_t JournalRing::AscendingTime(std::int64_t time_us) {
  absl::MutexLock lock(&mu_);
  newest_time_us_ = std::max(newest_time_us_ + 1, time_us);
  return newest_time_us_;
}

JournalRing::Entry JournalRing::Enter() {
  absl::MutexLock lock(&mu_);
  ++entered_[current_];
  return Entry(this, current_);
}

void JournalRing::Leave(int segment) {
  absl::MutexLock lock(&mu_);
  --entered_[segment];
}

void JournalRing::NoteWritten(int segment, const JournalSegment& added) {
  absl::MutexLock lock(&mu_);
  JournalSegment& held = segments_[segment];
  if (held.row_count == 0) held.first_time_us = added.last_time_us;
  held.row_count += added.row_count;
  held.bytes += added.bytes;
  held.last_time_us = std::max(held.last_time_us, added.last_time_us);
}

int JournalRing::current() const {
  absl::MutexLock lock(&mu_);
  return current_;
}

JournalSegment JournalRing::segment(int index) const {
  absl::MutexLock lock(&mu_);
  return segments_[index];
}

std::vector<int> JournalRing::Recyclable(std::int64_t before_us) const {
  absl::MutexLock lock(&mu_);
  std::vector<int> recyclable;
  for (int i = 0; i < kSegmentCount; ++i) {
    if (i == current_ || entered_[i] > 0 || segments_[i].is_damaged) continue;
    if (segments_[i].row_count > 0 && segments_[i].last_time_us < before_us) {
      recyclable.push_back(i);
    }
  }
  std::sort(recyclable.begin(), recyclable.end(),
            [this](int a, int b) ABSL_NO_THREAD_SAFETY_ANALYSIS {
              return segments_[a].last_time_us < segments_[b].last_time_us;
            });
  return recyclable;
}

void JournalRing::NoteTruncated(int segment) {
  absl::MutexLock lock(&mu_);
  segments_[segment] = {};
}

void JournalRing::NoteDamaged(int segment) {
  absl::MutexLock lock(&mu_);
  segments_[segment].is_damaged = true;
  if (segment == current_) MoveOnLocked();
}

std::vector<int> JournalRing::Damaged() const {
  absl::MutexLock lock(&mu_);
  std::vector<int> damaged;
  for (int i = 0; i < kSegmentCount; ++i) {
    if (segments_[i].is_damaged) damaged.push_back(i);
  }
  return damaged;
}

void JournalRing::NoteFound(int segment, const JournalSegment& found, std::int64_t now_us) {
  absl::MutexLock lock(&mu_);
  if (entered_[segment] > 0 || !segments_[segment].is_damaged) return;
  segments_[segment] = ReceivedBy(now_us, found);
}

bool JournalRing::FullLocked(std::int64_t now_us) const {
  const JournalSegment& held = segments_[current_];
  if (held.is_damaged) return true;
  if (held.row_count == 0) return false;
  return held.bytes >= limits_.bytes_max || held.row_count >= limits_.row_count_max ||
         now_us - held.first_time_us >= limits_.age_max_us;
}

bool JournalRing::AdvanceIfFull(std::int64_t now_us) {
  absl::MutexLock lock(&mu_);
  return !FullLocked(now_us) || MoveOnLocked();
}

bool JournalRing::MoveOnLocked() {
  for (int step = 1; step < kSegmentCount; ++step) {
    const int next = (current_ + step) % kSegmentCount;
    const JournalSegment& there = segments_[next];
    if (there.row_count > 0 || there.is_damaged || entered_[next] > 0) continue;
    current_ = next;
    return true;
  }
  return false;
}

}  // namespace stepwell
