#include "base/trace/event_batches.h"

#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "base/status_macros.h"

namespace stepwell {

EventBatches::EventBatches(TraceSplitter::Takers takers) : takers_(std::move(takers)) {}

EventBatches::~EventBatches() {
  {
    const absl::MutexLock lock(&mu_);
    is_given_up_ = true;
  }
  worker_.Join();
}

TraceSplitter::Takers EventBatches::Gathered() {
  TraceSplitter::Takers gathered;
  gathered.event = [this](std::string_view json) {
    return Gather({.is_member = false, .name_bytes = 0, .json_bytes = json.size()}, {}, json);
  };
  if (takers_.member) {
    gathered.member = [this](std::string_view name, std::string_view json) {
      return Gather({.is_member = true, .name_bytes = name.size(), .json_bytes = json.size()}, name,
                    json);
    };
  }
  return gathered;
}

absl::Status EventBatches::Finish() {
  if (!is_started_ || is_alone_) return Take(std::exchange(gathered_, {}));
  absl::Status last = HandOver();
  {
    const absl::MutexLock lock(&mu_);
    is_over_ = true;
  }
  worker_.Join();
  const absl::MutexLock lock(&mu_);
  return failed_.ok() ? last : failed_;
}

absl::Status EventBatches::Gather(Entry entry, std::string_view name, std::string_view json) {
  gathered_.entries.push_back(entry);
  gathered_.bytes += name;
  gathered_.bytes += json;
  return BytesOf(gathered_) < kBatchBytes ? absl::OkStatus() : HandOver();
}

std::size_t EventBatches::BytesOf(const Batch& batch) {
  return batch.bytes.size() + batch.entries.size() * sizeof(Entry);
}

absl::Status EventBatches::HandOver() {
  if (!is_started_) Start();
  if (is_alone_) {
    const absl::Status taken = Take(gathered_);
    gathered_.bytes.clear();
    gathered_.entries.clear();
    return taken;
  }
  const auto has_room = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return waiting_.size() < kBatchesMax || !failed_.ok();
  };
  const absl::MutexLock lock(&mu_, absl::Condition(&has_room));
  STEPWELL_RETURN_IF_ERROR(failed_);
  waiting_.push_back(std::exchange(gathered_, {}));
  if (!spare_.empty()) {
    gathered_ = std::move(spare_.back());
    spare_.pop_back();
  }
  return absl::OkStatus();
}

void EventBatches::Start() {
  is_started_ = true;
  try {
    worker_ = Worker("trace-events", [this] { TakeAll(); });
  } catch (const std::system_error&) {
    is_alone_ = true;
  }
}

void EventBatches::TakeAll() {
  const auto has_news = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return !waiting_.empty() || is_over_ || is_given_up_;
  };
  while (true) {
    Batch batch;
    {
      const absl::MutexLock lock(&mu_, absl::Condition(&has_news));
      if (is_given_up_ || waiting_.empty()) return;
      batch = std::move(waiting_.front());
      waiting_.pop_front();
    }
    const absl::Status taken = TakeSafely(batch);
    const bool is_large = BytesOf(batch) > 2 * kBatchBytes;
    batch.bytes.clear();
    batch.entries.clear();
    const absl::MutexLock lock(&mu_);
    if (!taken.ok()) {
      failed_ = taken;
      return;
    }
    // An event of megabytes leaves its room to nobody.
    if (!is_large) spare_.push_back(std::move(batch));
  }
}

// A thread's own: nobody above it would hear of what is thrown here.
absl::Status EventBatches::TakeSafely(const Batch& batch) const {
  try {
    return Take(batch);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("no memory for the events of a trace");
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

absl::Status EventBatches::Take(const Batch& batch) const {
  std::string_view rest = batch.bytes;
  for (const Entry& entry : batch.entries) {
    const std::string_view name = rest.substr(0, entry.name_bytes);
    const std::string_view json = rest.substr(entry.name_bytes, entry.json_bytes);
    rest.remove_prefix(entry.name_bytes + entry.json_bytes);
    STEPWELL_RETURN_IF_ERROR(entry.is_member ? takers_.member(name, json) : takers_.event(json));
  }
  return absl::OkStatus();
}

}  // namespace stepwell
