#include "client/agent/span_trace.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

// Spans are flushed many times a second: what is held meanwhile is small.
constexpr std::size_t kHeldBytesMax = 8 << 20;

}  // namespace

SpanTrace::SpanTrace(Options options, TakeBytes take)
    : options_(options),
      writer_({.base_time_ns = options.base_time_ns, .is_packed = true}, std::move(take)),
      slices_(writer_, kHeldBytesMax, [this] { return ++track_count_; }),
      process_(++track_count_),
      epoch_(options.epoch) {}

void SpanTrace::SetPid(std::int64_t pid) {
  if (!is_described_) options_.pid = pid;
}

std::int64_t SpanTrace::pid() const { return options_.pid > 0 ? options_.pid : options_.rank + 1; }

void SpanTrace::Describe() {
  if (std::exchange(is_described_, true)) return;
  const std::string name = absl::StrCat("training, rank ", options_.rank);
  writer_.DescribeProcess(process_, {.pid = pid(), .name = name, .labels = {}});
}

SpanTrace::Row& SpanTrace::RowOf(const Thread& thread) {
  const auto [found, is_new] = rows_.try_emplace(thread);
  if (!is_new) return found->second;
  Describe();
  const PerfettoWriter::Track track = ++track_count_;
  const auto made_up = static_cast<std::int64_t>(rows_.size()) - 1;
  found->second = {.track = track,
                   .lane = slices_.AddLane(track),
                   .number = thread.id != 0 ? std::int64_t{thread.id} : made_up};
  std::string name = absl::StrCat("thread ", thread.index);
  if (thread.worker >= 0) name = absl::StrCat("worker ", thread.worker, " ", name);
  if (thread.id != 0) {
    writer_.DescribeThread(track, {.pid = pid(), .tid = thread.id, .name = name});
  } else {
    writer_.DescribeRow(track, process_, name);
  }
  return found->second;
}

void SpanTrace::EnterThread(const Thread& thread) {
  thread_ = thread;
  row_ = nullptr;
}

const SpanTrace::Row* SpanTrace::EnteredRow() {
  if (!thread_) return nullptr;
  is_empty_ = false;
  if (row_ == nullptr) row_ = &RowOf(*thread_);
  return row_;
}

std::string SpanTrace::BodyOf(std::string_view name, std::int32_t batch, const Row& row) {
  std::string body;
  writer_.AppendName(name, body);
  if (epoch_ >= 0) writer_.AppendArg("epoch", epoch_, body);
  if (batch >= 0) writer_.AppendArg("batch", std::int64_t{batch}, body);
  writer_.AppendArg("rank", std::int64_t{options_.rank}, body);
  writer_.AppendArg("thread", row.number, body);
  return body;
}

void SpanTrace::AddSpan(std::string_view name, std::int64_t begin_ns, std::int64_t end_ns,
                        std::int32_t batch) {
  if (begin_ns < options_.base_time_ns || end_ns < begin_ns) return;
  if (const Row* row = EnteredRow(); row != nullptr) {
    slices_.Add(row->lane, {begin_ns, end_ns}, BodyOf(name, batch, *row));
  }
}

void SpanTrace::AddInstant(std::string_view name, std::int64_t time_ns, std::int32_t batch) {
  if (time_ns < options_.base_time_ns) return;
  if (const Row* row = EnteredRow(); row != nullptr) {
    writer_.AddInstant(row->track, time_ns, BodyOf(name, batch, *row));
  }
}

void SpanTrace::AddStep(std::int64_t begin_ns, std::int64_t end_ns, std::int32_t batch) {
  AddSpan("step", begin_ns, end_ns, batch);
  if (first_batch_ < 0) first_batch_ = batch;
  if (batch > last_batch_) last_batch_ = batch;
}

void SpanTrace::AddValue(const std::string& series, const std::string& unit, std::int64_t time_ns,
                         double value) {
  if (!std::isfinite(value) || time_ns < options_.base_time_ns) return;
  if (series == "epoch" && value >= 0 && value < 2e9) epoch_ = static_cast<std::int64_t>(value);
  auto found = counters_.find(series);
  if (found == counters_.end()) {
    if (counters_.size() >= kCountersMax) return;
    Describe();
    found = counters_.emplace(series, ++track_count_).first;
    writer_.DescribeCounter(found->second, process_, series, unit);
  }
  writer_.AddCount(found->second, time_ns, value);
}

void SpanTrace::AddMasterClock(const MasterClock::Reading& reading, std::string_view trial) {
  if (reading.at_ns < options_.base_time_ns) return;
  Describe();
  std::string body;
  writer_.AppendName(kMasterClockEvent, body);
  writer_.AppendCategory(kMetadataCategory, body);
  writer_.AppendArg("at_ns", reading.at_ns, body);
  writer_.AppendArg("ahead_ns", reading.ahead_ns, body);
  writer_.AppendArg("error_ns", reading.error_ns, body);
  writer_.AppendArg("trial", trial, body);
  writer_.AddInstant(process_, reading.at_ns, body);
}

absl::Status SpanTrace::Flush() {
  STEPWELL_RETURN_IF_ERROR(slices_.WriteAll());
  return writer_.HandOver(0);
}

}  // namespace stepwell::agent
