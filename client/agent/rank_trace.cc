#include "client/agent/rank_trace.h"

#include <string>

#include "base/log.h"
#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

// Spans begin before an agent sees their process, not by more than that.
constexpr std::int64_t kEarlierNs = std::int64_t{3600} * 1'000'000'000;

}  // namespace

RankTrace::RankTrace(const WriterIdentity& identity)
    : options_{.directory = identity.tracing.directory,
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
}

void RankTrace::Complain(const absl::Status& status) {
  has_failed_ = true;
  log::Warning("trace_not_recorded",
               {{"directory", options_.directory}, {"why", std::string(status.message())}});
}

}  // namespace stepwell::agent
