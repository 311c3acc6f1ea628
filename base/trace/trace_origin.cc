#include "base/trace/trace_origin.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/trace/bounded_text.h"
#include "base/trace/exact_time.h"
#include "base/trace/json_members.h"

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

// What a glance at an event tells, a tenth of what parsing it costs.
struct Glance {
  bool may_be_metadata = false;
  // An argument may have been taken for a time.
  bool is_doubtful = false;
  // Whole microseconds, rounded down.
  std::optional<std::int64_t> time_us;
  std::optional<std::int64_t> duration_us;
};

std::optional<std::int64_t> FloorMicros(std::optional<std::int64_t> ns) {
  if (!ns.has_value()) return ns;
  return *ns / 1000 - (*ns % 1000 < 0 ? 1 : 0);
}

// The number behind `"ts"`, of which `rest` is what follows; nothing where that was no member's name.
std::optional<std::int64_t> WholeMicros(std::string_view rest) {
  constexpr std::string_view kBlank = " \t\r\n";
  rest.remove_prefix(std::min(rest.find_first_not_of(kBlank), rest.size()));
  if (rest.empty() || rest.front() != ':') return std::nullopt;
  rest.remove_prefix(1);
  rest.remove_prefix(std::min(rest.find_first_not_of(kBlank), rest.size()));
  if (!rest.empty() && rest.front() == '"') rest.remove_prefix(1);
  std::int64_t micros = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), micros);
  if (error != std::errc()) return std::nullopt;
  const std::string_view number =
      rest.substr(0, std::min(rest.find_first_not_of("+-.eE0123456789"), rest.size()));
  if (number.find_first_of("eE") != std::string_view::npos) return FloorMicros(NsOfMicros(number));
  const bool has_more = end != rest.data() + rest.size() && *end == '.';
  const bool is_below = rest.front() == '-' && has_more;
  return is_below && micros > std::numeric_limits<std::int64_t>::min() ? micros - 1 : micros;
}

Glance GlanceAt(std::string_view json) {
  Glance glance;
  for (std::size_t at = json.find('"'); at != std::string_view::npos; at = json.find('"', at + 1)) {
    const std::string_view word = json.substr(at + 1);
    if (word.starts_with("M\"")) {
      glance.may_be_metadata = true;
    } else if (!glance.time_us && word.starts_with("ts\"")) {
      glance.time_us = WholeMicros(word.substr(3));
    } else if (!glance.duration_us && word.starts_with("dur\"")) {
      glance.duration_us = WholeMicros(word.substr(4));
    } else if (word.starts_with("args\"") && !(glance.time_us && glance.duration_us)) {
      glance.is_doubtful = true;
    }
  }
  return glance;
}

}  // namespace

void TraceScan::TakeEvent(std::string_view json) {
  // Of millions of events only the first and the metadata tell more than their times.
  Glance glance = GlanceAt(json);
  const bool is_read = !first_ns_.has_value() || glance.may_be_metadata || glance.is_doubtful;
  if (is_read) {
    if (!parser_.Parse(json)) return;
    const TraceEvent& event = parser_.event();
    if (event.phase == 'M') return TakeMetadata(event);
    const std::optional<std::int64_t> time_ns = NsOfMicros(event.time);
    if (!time_ns.has_value()) return;
    glance.time_us = FloorMicros(time_ns);
    glance.duration_us = FloorMicros(NsOfMicros(event.duration));
    if (!first_ns_.has_value()) {
      first_ns_ = time_ns;
      begin_us_ = *glance.time_us;
      end_us_ = *glance.time_us + 1;
    }
  }
  if (glance.time_us) Widen(*glance.time_us, glance.duration_us.value_or(0));
}

void TraceScan::Widen(std::int64_t begin_us, std::int64_t length_us) {
  constexpr std::int64_t kApartMaxUs = TraceOrigin::kApartMaxNs / 1000;
  const std::int64_t first_us = *first_ns_ / 1000;
  std::int64_t apart = 0;
  std::int64_t end_us = 0;
  if (__builtin_sub_overflow(begin_us, first_us, &apart) || apart > kApartMaxUs ||
      apart < -kApartMaxUs) {
    return;
  }
  begin_us_ = std::min(begin_us_, begin_us);
  // Rounded up: its own fraction and that of its length.
  length_us = std::clamp(length_us, std::int64_t{0}, kApartMaxUs) + 2;
  if (!__builtin_add_overflow(begin_us, length_us, &end_us)) end_us_ = std::max(end_us_, end_us);
}

void TraceScan::TakeMetadata(const TraceEvent& event) {
  const std::optional<std::string> name = TextOfJson(event.name);
  if (!name.has_value()) return;
  if (*name == "process_name") {
    if (origin_.process_names.size() >= kProcessesMax) return;
    const auto said = TextOfJson(MemberOf(event.args, "name"));
    if (said.has_value()) origin_.process_names[KeyOfText(event.pid)] = CutText(*said);
  } else if (*name == kMachineEvent) {
    const auto text = [&](std::string_view member) {
      return CutText(TextOfJson(MemberOf(event.args, member)).value_or(""));
    };
    origin_.machine = text("name");
    origin_.boot_id = text("boot_id");
  } else if (*name == "global_rank") {
    origin_.rank = RankOf(MemberOf(event.args, "value"));
  } else if (*name == "clock_sync_timestamp_us") {
    origin_.sync_time_ns = NsOfMicros(MemberOf(event.args, "value"));
  } else if (*name == "clock_sync_error_bound") {
    const std::int64_t error = NsOfMicros(MemberOf(event.args, "value")).value_or(0);
    origin_.sync_error_ns = std::clamp(error, std::int64_t{0}, kSyncErrorMaxNs);
  } else if (*name == kWallClockEvent) {
    constexpr std::int64_t kSetMaxNs = std::int64_t{24} * 366 * 24 * 3600 * 1'000'000'000;
    const std::int64_t said = WholeNumber(MemberOf(event.args, "ahead_ns")).value_or(0);
    const std::int64_t ahead = std::clamp(said, -kSetMaxNs, kSetMaxNs);
    origin_.wall_ahead.begin = std::min(origin_.wall_ahead.begin, ahead);
    origin_.wall_ahead.end = std::max(origin_.wall_ahead.end, ahead);
  } else if (*name == kMasterClockEvent) {
    const auto number = [&](std::string_view member) {
      return WholeNumber(MemberOf(event.args, member));
    };
    const auto at = number("at_ns"), ahead = number("ahead_ns"), error = number("error_ns");
    if (!at.has_value() || !ahead.has_value() || !error.has_value()) return;
    origin_.master_clock.Take({*at, *ahead, *error},
                              CutText(TextOfJson(MemberOf(event.args, "trial")).value_or("")));
  }
}

void TraceScan::TakeMember(std::string_view name, std::string_view json) {
  if (name == "metadata") {
    // What a merge wrote of inputs that were the training loop's is not a native profiler's, for all its base.
    is_ours_ = TextOfJson(MemberOfJson(json, "merged_by")) == "stepwell" &&
               MemberOfJson(json, "is_native") == "false";
  } else if (name == "baseTimeNanoseconds") {
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
  if (is_ours_) origin.is_native = false;
  std::int64_t first = 0;
  if (!first_ns_.has_value() || __builtin_add_overflow(*first_ns_, origin.base_time_ns, &first)) {
    return origin;
  }
  origin.first_time_ns = first;
  // Of times at the end of what 64 bits hold there is no window but the first event.
  const auto place = [&](std::int64_t us) {
    std::int64_t ns = 0;
    return __builtin_mul_overflow(us, 1000, &ns) ||
                   __builtin_add_overflow(ns, origin.base_time_ns, &ns)
               ? first
               : ns;
  };
  origin.window = {place(begin_us_), place(end_us_)};
  return origin;
}

}  // namespace stepwell
