#include "server/sample_merge.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace stepwell {

bool SampleMerge::ComesAfter(const Cursor& a, const Cursor& b) {
  return ComesBefore(b.run[b.at], a.run[a.at]);
}

void SampleMerge::Add(SampleRun run) {
  if (run.empty()) return;
  heap_.push_back({std::move(run), 0});
  std::push_heap(heap_.begin(), heap_.end(), ComesAfter);
}

Sample SampleMerge::Take() {
  STEPWELL_CHECK(!heap_.empty());
  // Nearly always one run alone: no heap work then.
  if (heap_.size() > 1) std::pop_heap(heap_.begin(), heap_.end(), ComesAfter);
  Cursor& cursor = heap_.back();
  const Sample sample = cursor.run[cursor.at++];
  if (cursor.at == cursor.run.size()) {
    heap_.pop_back();
  } else if (heap_.size() > 1) {
    std::push_heap(heap_.begin(), heap_.end(), ComesAfter);
  }
  return sample;
}

}  // namespace stepwell
