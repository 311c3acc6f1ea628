#include "base/trace/trace_origin.h"

#include <algorithm>
#include <limits>

#include "base/trace/bounded_text.h"
#include "base/trace/exact_time.h"

namespace stepwell {
namespace {

// No barrier takes an hour; sums of two fit.
constexpr std::int64_t kSyncErrorMaxNs = std::int64_t{3600} * 1'000'000'000;

std::optional<std::int32_t> RankOf(std::string_view json) {
  const std::optional<std::int64_t> rank = WholeNumber(json);
  if (!rank.has_value() || *rank < 0 || *rank > std::numeric_limits<std::int32_t>::max()) {
    return std::nullopt;
  }
  return static_cast<std::int32_t>(*rank);
}

}  // namespace

void TraceScan::TakeEvent(std::string_view json) {
  // Of millions of events only the first and the metadata tell something here.
  const bool may_be_metadata = json.find("\"M\"") != std::string_view::npos;
  if (first_ns_.has_value() && !may_be_metadata) return;
  if (!parser_.Parse(json)) return;
  const TraceEvent& event = parser_.event();
  if (event.phase == 'M') {
    TakeMetadata(event);
  } else if (!first_ns_.has_value()) {
    first_ns_ = NsOfMicros(event.time);
  }
}

void TraceScan::TakeMetadata(const TraceEvent& event) {
  const std::optional<std::string> name = TextOfJson(event.name);
  if (!name.has_value()) return;
  if (*name == "process_name") {
    if (origin_.process_names.size() >= kProcessesMax) return;
    const auto said = TextOfJson(MemberOfJson(event.args, "name"));
    if (said.has_value()) origin_.process_names[KeyOfText(event.pid)] = CutText(*said);
  } else if (*name == "global_rank") {
    origin_.rank = RankOf(MemberOfJson(event.args, "value"));
  } else if (*name == "clock_sync_timestamp_us") {
    origin_.sync_time_ns = NsOfMicros(MemberOfJson(event.args, "value"));
  } else if (*name == "clock_sync_error_bound") {
    const std::int64_t error = NsOfMicros(MemberOfJson(event.args, "value")).value_or(0);
    origin_.sync_error_ns = std::clamp(error, std::int64_t{0}, kSyncErrorMaxNs);
  } else if (*name == kMasterClockEvent) {
    const auto number = [&](std::string_view member) {
      return WholeNumber(MemberOfJson(event.args, member));
    };
    const auto at = number("at_ns"), ahead = number("ahead_ns"), error = number("error_ns");
    if (!at.has_value() || !ahead.has_value() || !error.has_value()) return;
    origin_.master_clock.Take({*at, *ahead, *error},
                              TextOfJson(MemberOfJson(event.args, "trial")).value_or(""));
  }
}

void TraceScan::TakeMember(std::string_view name, std::string_view json) {
  if (name == "baseTimeNanoseconds") {
    origin_.base_time_ns = WholeNumber(json).value_or(0);
    origin_.is_native = true;
  } else if (name == "schemaVersion") {
    origin_.is_native = true;
  } else if (name == "distributedInfo") {
    if (const auto rank = RankOf(MemberOfJson(json, "rank")); rank.has_value()) origin_.rank = rank;
  } else if (name == "global_rank") {
    if (const auto rank = RankOf(json); rank.has_value()) origin_.rank = rank;
  } else if (name == "clock_sync_timestamp_us") {
    origin_.sync_time_ns = NsOfMicros(json);
  }
}

TraceOrigin TraceScan::Finish() const {
  TraceOrigin origin = origin_;
  std::int64_t first = 0;
  if (first_ns_.has_value() && !__builtin_add_overflow(*first_ns_, origin.base_time_ns, &first)) {
    origin.first_time_ns = first;
  }
  return origin;
}

}  // namespace stepwell
