// EventBatches: hands on what a splitter cuts to a thread of its own, so that a large trace is read, unpacked and cut
// while what came before is parsed and merged. What is small needs no thread and has none.
//
//   EventBatches batches(takers);
//   TraceSplitter splitter(batches.Gathered());  // Feed() ...
//   STEPWELL_RETURN_IF_ERROR(batches.Finish());  // all is taken, or one of them failed
//
// The takers get all, in its order, by one call after the other, each on some thread; none once Finish has returned. Their
// first failure is what the splitter hears next. At most kBatchesMax batches wait: who cuts waits for who takes. Memory: two
// batches more than that, each of kBatchBytes or one event. Confined to one thread, the one that cuts.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/trace/trace_splitter.h"
#include "base/worker.h"

namespace stepwell {

class EventBatches {
 public:
  static constexpr std::size_t kBatchBytes = 256 << 10;
  static constexpr std::size_t kBatchesMax = 4;

  explicit EventBatches(TraceSplitter::Takers takers);
  // What was not taken by now is not taken any more.
  ~EventBatches();
  EventBatches(const EventBatches&) = delete;
  EventBatches& operator=(const EventBatches&) = delete;

  // For the splitter. They name this: it stays where it is.
  TraceSplitter::Takers Gathered();
  // Once, after the last is cut.
  [[nodiscard]] absl::Status Finish();

 private:
  struct Entry {
    bool is_member = false;
    std::size_t name_bytes = 0;  // of a member
    std::size_t json_bytes = 0;
  };
  struct Batch {
    std::string bytes;
    std::vector<Entry> entries;
  };

  [[nodiscard]] absl::Status Gather(Entry entry, std::string_view name, std::string_view json);
  [[nodiscard]] absl::Status HandOver();
  void Start();
  void TakeAll();
  [[nodiscard]] absl::Status Take(const Batch& batch) const;
  [[nodiscard]] absl::Status TakeSafely(const Batch& batch) const;
  static std::size_t BytesOf(const Batch& batch);

  const TraceSplitter::Takers takers_;
  Batch gathered_;
  bool is_started_ = false;
  bool is_alone_ = false;  // the system has no thread for it

  absl::Mutex mu_;
  std::deque<Batch> waiting_ ABSL_GUARDED_BY(mu_);
  std::vector<Batch> spare_ ABSL_GUARDED_BY(mu_);  // that keep their room
  bool is_over_ ABSL_GUARDED_BY(mu_) = false;      // nothing comes any more
  bool is_given_up_ ABSL_GUARDED_BY(mu_) = false;  // nor is anything taken
  absl::Status failed_ ABSL_GUARDED_BY(mu_);
  Worker worker_;
};

}  // namespace stepwell
