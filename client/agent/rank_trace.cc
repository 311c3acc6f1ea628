#include "client/agent/rank_trace.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "client/agent/master_reading.h"

namespace stepwell::agent {
namespace {

// Spans begin before an agent sees their process, not by more than that.
constexpr std::int64_t kEarlierNs = std::int64_t{3600} * 1'000'000'000;
// Half of it is how far drifts are guessed.
constexpr absl::Duration kClockInterval = absl::Seconds(10);

}  // namespace

RankTrace::RankTrace(const WriterIdentity& identity, LeaveTrace leave)
    : identity_(identity),
      leave_(std::move(leave)),
      options_{.directory = identity.tracing.directory,
               .rank = identity.rank,
               .kept_max = identity.tracing.kept_max},
      spans_({.rank = identity.rank,
              .pid = 0,
              .base_time_ns = identity.opened_time_us * 1000 - kEarlierNs},
             [this](std::string_view packet) { return Append(packet); }) {}

absl::Status RankTrace::Append(std::string_view packet) {
  if (file_ == nullptr) {
    STEPWELL_ASSIGN_OR_RETURN(file_, TraceFile::Create(options_));
  }
  return file_->Append(packet);
}

void RankTrace::NoteClock(const ClockOffset& offset, const Clock& clock, const ClockAnchor& anchor,
                          When when) {
  const bool has_spans = file_ != nullptr || !spans_.is_empty();
  if (has_failed_ || !has_spans || anchor.monotonic_ns == 0) return;
  const absl::Duration monotonic = clock.Monotonic();
  if (when == When::kIfDue && monotonic < clock_due_) return;
  const std::optional<MasterClock::Reading> reading = ReadMasterClock(anchor, offset, clock);
  if (!reading) return;
  clock_due_ = monotonic + kClockInterval;
  spans_.AddMasterClock(*reading, absl::StrCat(identity_.project, "/", identity_.trial));
}

void RankTrace::Flush() {
  if (has_failed_ || (file_ == nullptr && spans_.is_empty())) return;
  if (const absl::Status flushed = spans_.Flush(); !flushed.ok()) Complain(flushed);
}

void RankTrace::Finish() {
  Flush();
  if (file_ == nullptr) return;
  const auto name = file_->Finish({.epoch = spans_.epoch(), .batch = spans_.last_batch()});
  if (!name.ok()) return Complain(name.status());
  log::Info("trace_recorded", {{"directory", options_.directory},
                               {"file", *name},
                               {"spans", spans_.span_count()},
                               {"bytes", file_->bytes()}});
  if (!identity_.tracing.uploads) return;
  const auto number = [](std::int64_t known) {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(known, -1, INT32_MAX));
  };
  leave_({.writer = identity_,
          .path = absl::StrCat(options_.directory, "/", *name),
          .epoch = number(spans_.epoch()),
          .first_batch = spans_.first_batch(),
          .last_batch = spans_.last_batch()});
}

void RankTrace::Complain(const absl::Status& status) {
  has_failed_ = true;
  log::Warning("trace_not_recorded",
               {{"directory", options_.directory}, {"why", std::string(status.message())}});
}

}  // namespace stepwell::agent
