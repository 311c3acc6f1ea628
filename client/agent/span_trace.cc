#include "client/agent/span_trace.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/agent/epoch_log.h"

namespace stepwell::agent {
namespace {

// Spans are flushed many times a second: what is held meanwhile is small.
constexpr std::size_t kHeldBytesMax = 8 << 20;
// Who records nothing but epochs has a trace once they are so many bytes.
constexpr std::size_t kEpochBytesMax = 64 << 10;
// Of a process that begins new ones without end.
constexpr SpanThread kFurtherThreads = {.worker = -2};

}  // namespace

SpanTrace::Output::Output(const Options& options, PerfettoWriter::Track& track_count,
                          TakeBytes take)
    : writer({.base_time_ns = options.base_time_ns, .is_packed = true}, std::move(take)),
      slices(writer, kHeldBytesMax, [&track_count] { return ++track_count; }) {}

SpanTrace::SpanTrace(Options options, TakeBytes take)
    : options_(options), take_(std::move(take)), process_(++track_count_), epoch_(options.epoch) {
  out_.emplace(options, track_count_, [this](std::string_view packet) { return Take(packet); });
}

// What is no slice is in the writer's bytes as it is added, a slice once it is written: before anything is handed over.
absl::Status SpanTrace::Take(std::string_view packet) {
  STEPWELL_RETURN_IF_ERROR(take_(packet));
  taken_count_ = unsliced_count_ + out_->slices.written_count();
  return absl::OkStatus();
}

std::int64_t SpanTrace::left_out_count() const {
  return is_closed() ? added_count_ - taken_count_ : 0;
}

std::size_t SpanTrace::held_bytes() const {
  return is_closed() ? 0 : out_->writer.held_bytes() + out_->slices.held_bytes();
}

void SpanTrace::SetPid(std::int64_t pid) {
  if (!is_described_) options_.pid = pid;
}

std::int64_t SpanTrace::pid() const { return options_.pid > 0 ? options_.pid : options_.rank + 1; }

void SpanTrace::Describe() {
  if (std::exchange(is_described_, true)) return;
  const std::string name = absl::StrCat("training, rank ", options_.rank);
  out_->writer.DescribeProcess(process_, {.pid = pid(), .name = name, .labels = {}});
}

void SpanTrace::Close() {
  out_.reset();
  rows_.clear();
  row_ = nullptr;
  counters_.clear();
}

SpanTrace::Row& SpanTrace::RowOf(const Thread& entered) {
  const bool has_room = rows_.size() < kRowsMax || rows_.contains(entered);
  const Thread& thread = has_room ? entered : kFurtherThreads;
  const auto [found, is_new] = rows_.try_emplace(thread);
  if (!is_new) return found->second;
  Describe();
  const PerfettoWriter::Track track = ++track_count_;
  const auto made_up = static_cast<std::int64_t>(rows_.size()) - 1;
  found->second = {.track = track,
                   .lane = out_->slices.AddLane(track),
                   .number = thread.id != 0 ? std::int64_t{thread.id} : made_up};
  std::string name = absl::StrCat("thread ", thread.index);
  if (thread.worker >= 0) name = absl::StrCat("worker ", thread.worker, " ", name);
  if (!has_room) name = "further threads";
  if (thread.id != 0) {
    out_->writer.DescribeThread(track, {.pid = pid(), .tid = thread.id, .name = name});
  } else {
    out_->writer.DescribeRow(track, process_, name);
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
  ++added_count_;
  if (is_closed()) return nullptr;
  if (row_ == nullptr) row_ = &RowOf(*thread_);
  return row_;
}

std::string SpanTrace::BodyOf(std::string_view name, std::int32_t batch, const Row& row) {
  std::string body;
  out_->writer.AppendName(name, body);
  if (epoch_ >= 0) out_->writer.AppendArg("epoch", epoch_, body);
  if (batch >= 0) out_->writer.AppendArg("batch", std::int64_t{batch}, body);
  out_->writer.AppendArg("rank", std::int64_t{options_.rank}, body);
  out_->writer.AppendArg("thread", row.number, body);
  return body;
}

void SpanTrace::AddSpan(std::string_view name, std::int64_t begin_ns, std::int64_t end_ns,
                        std::int32_t batch) {
  if (begin_ns < options_.base_time_ns || end_ns < begin_ns) return;
  if (const Row* row = EnteredRow(); row != nullptr) {
    TellSource(begin_ns);
    out_->slices.Add(row->lane, {begin_ns, end_ns}, BodyOf(name, batch, *row));
  }
}

// With what comes first, for a viewer shows everything from the first time on.
void SpanTrace::TellSource(std::int64_t time_ns) {
  if (std::exchange(is_source_told_, true)) return;
  const Source& source = options_.source;
  std::string body;
  out_->writer.AppendName(kMachineEvent, body);
  out_->writer.AppendCategory(kMetadataCategory, body);
  bool is_known = false;
  const auto tell = [&](std::string_view name, std::string_view value) {
    if (value.empty()) return;
    is_known = true;
    out_->writer.AppendArg(name, value, body);
  };
  tell("name", source.machine);
  tell("boot_id", source.boot_id);
  tell("writer", source.writer);
  if (is_known) out_->writer.AddInstant(process_, time_ns, body);
}

void SpanTrace::AddInstant(std::string_view name, std::int64_t time_ns, std::int32_t batch) {
  if (time_ns < options_.base_time_ns) return;
  if (const Row* row = EnteredRow(); row != nullptr) {
    TellSource(time_ns);
    out_->writer.AddInstant(row->track, time_ns, BodyOf(name, batch, *row));
    ++unsliced_count_;
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
  if (series == kEpochSeries && value >= 0 && value < 2e9)
    epoch_ = static_cast<std::int64_t>(value);
  if (is_closed()) return void(++added_count_);
  auto found = counters_.find(series);
  if (found == counters_.end()) {
    if (counters_.size() >= kCountersMax) return;
    Describe();
    found = counters_.emplace(series, ++track_count_).first;
    out_->writer.DescribeCounter(found->second, process_, series, unit);
  }
  TellSource(time_ns);
  is_empty_ = is_empty_ && series == kEpochSeries && held_bytes() < kEpochBytesMax;
  out_->writer.AddCount(found->second, time_ns, value);
  ++added_count_;
  ++unsliced_count_;
}

void SpanTrace::AddMasterClock(const MasterClock::Reading& reading, std::string_view trial) {
  if (is_closed() || reading.at_ns < options_.base_time_ns) return;
  Describe();
  std::string body;
  out_->writer.AppendName(kMasterClockEvent, body);
  out_->writer.AppendCategory(kMetadataCategory, body);
  out_->writer.AppendArg("at_ns", reading.at_ns, body);
  out_->writer.AppendArg("ahead_ns", reading.ahead_ns, body);
  out_->writer.AppendArg("error_ns", reading.error_ns, body);
  out_->writer.AppendArg("trial", trial, body);
  out_->writer.AddInstant(process_, reading.at_ns, body);
}

void SpanTrace::AddWallClock(std::int64_t at_ns, std::int64_t ahead_ns) {
  if (is_closed() || at_ns < options_.base_time_ns) return;
  Describe();
  std::string body;
  out_->writer.AppendName(kWallClockEvent, body);
  out_->writer.AppendCategory(kMetadataCategory, body);
  out_->writer.AppendArg("ahead_ns", ahead_ns, body);
  out_->writer.AddInstant(process_, at_ns, body);
}

absl::Status SpanTrace::Flush() {
  if (is_closed()) return absl::OkStatus();
  absl::Status status = out_->slices.WriteAll();
  if (status.ok()) status = out_->writer.HandOver(0);
  if (!status.ok()) Close();
  return status;
}

}  // namespace stepwell::agent
