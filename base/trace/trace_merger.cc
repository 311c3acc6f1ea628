#include "base/trace/trace_merger.h"

#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/trace/bounded_text.h"
#include "base/trace/exact_time.h"

namespace stepwell {
namespace {

constexpr std::size_t kPieceBytes = 256 << 10;
// Perfetto takes a thread 0 for the process, and forces what is no uint32 to 0.
constexpr std::int64_t kTidMax = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kNamedTidMin = 3'000'000'000;  // no system's
// Of an id; the input's number lies above, and both within what a double holds.
constexpr int kIdBits = 40;
constexpr std::int64_t kNoRow = -1;

// Rows of one rank beside each other, the training loop above what native profilers saw.
constexpr std::int64_t kRowsOfRank = 1000;

// FNV-1a: the same in each merge of the same files.
std::uint64_t HashOf(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash ^ hash >> 40;
}

}  // namespace

TraceMerger::TraceMerger(const MergePlan& plan, TakeBytes take)
    : plan_(plan), take_(std::move(take)) {}

absl::Status TraceMerger::Begin() {
  absl::StrAppend(&out_, "{\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":", plan_.base_time_ns,
                  ",\"metadata\":{\"merged_by\":\"stepwell\",\"inputs\":[");
  for (std::size_t i = 0; i < plan_.inputs.size(); ++i) {
    const PlacedInput& input = plan_.inputs[i];
    absl::StrAppend(&out_, i == 0 ? "" : ",", "\n{\"file\":");
    AppendJsonText(input.label, out_);
    absl::StrAppend(&out_, ",\"rank\":", input.rank,
                    ",\"is_native\":", input.is_native ? "true" : "false", ",\"shift_us\":");
    AppendMicros(input.shift_ns, out_);
    absl::StrAppend(&out_, ",\"clock_error_us\":");
    if (input.error_ns.has_value()) {
      AppendMicros(*input.error_ns, out_);
    } else {
      out_ += "null";
    }
    out_ += '}';
  }
  out_ += "]},\n\"traceEvents\":[";
  return HandOver(0);
}

void TraceMerger::BeginInput(std::size_t index) { input_ = index; }

absl::Status TraceMerger::TakeEvent(std::string_view json) {
  if (!parser_.Parse(json)) {
    ++left_out_count_;
    return absl::OkStatus();
  }
  const TraceEvent& event = parser_.event();
  if (IsReplaced(event)) return absl::OkStatus();
  if (WriteEvent(event)) {
    ++written_count_;
  } else {
    ++left_out_count_;
  }
  return HandOver(kPieceBytes);
}

bool TraceMerger::IsReplaced(const TraceEvent& event) {
  if (event.phase != 'M') return false;
  constexpr std::string_view kNames[] = {"\"process_name\"", "\"process_sort_index\"",
                                         "\"global_rank\"", "\"clock_sync_timestamp_us\"",
                                         "\"clock_sync_error_bound\""};
  for (const std::string_view name : kNames) {
    if (event.name == name) return true;
  }
  return false;
}

bool TraceMerger::WriteEvent(const TraceEvent& event) {
  const PlacedInput& input = plan_.inputs[input_];
  std::int64_t time_ns = 0;
  if (event.phase != 'M') {
    const std::optional<std::int64_t> own = NsOfMicros(event.time);
    if (!own.has_value() || __builtin_add_overflow(*own, input.base_time_ns, &time_ns) ||
        __builtin_add_overflow(time_ns, input.shift_ns, &time_ns) ||
        __builtin_sub_overflow(time_ns, plan_.base_time_ns, &time_ns)) {
      return false;
    }
  }
  const std::int64_t pid = PidOf(event.pid);
  const std::int64_t tid = pid == kNoRow ? kNoRow : TidOf(pid, event.tid);
  if (tid == kNoRow) return false;

  out_ += is_first_ ? "\n{\"ph\":\"" : ",\n{\"ph\":\"";
  out_ += event.phase;
  out_ += '"';
  is_first_ = false;
  const auto copy = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) out_.append(",\"").append(name).append("\":").append(value);
  };
  copy("name", event.name);
  copy("cat", event.category);
  if (event.phase != 'M') {
    out_ += ",\"ts\":";
    AppendMicros(time_ns, out_);
  }
  copy("dur", event.duration);
  absl::StrAppend(&out_, ",\"pid\":", pid, ",\"tid\":", tid);
  if (!event.id.empty()) AppendId("id", event.id);
  if (!event.bind_id.empty()) AppendId("bind_id", event.bind_id);
  for (const auto& [name, value] : event.others) copy(name, value);
  copy("args", event.args);
  out_ += '}';
  return true;
}

void TraceMerger::AppendId(std::string_view name, std::string_view id) {
  std::optional<std::int64_t> number = WholeNumber(id);
  std::uint64_t hex = 0;
  if (!number.has_value() && absl::SimpleHexAtoi(TextOfJson(id).value_or(""), &hex)) {
    number = static_cast<std::int64_t>(hex);
  }
  constexpr std::uint64_t kMask = (std::uint64_t{1} << kIdBits) - 1;
  std::uint64_t value = static_cast<std::uint64_t>(number.value_or(-1));
  // What is no number of that size becomes one; two of them in a file are one in a million million.
  if (value > kMask) value = HashOf(id) & kMask;
  out_.append(",\"").append(name);
  absl::StrAppend(&out_, "\":", ((input_ + 1) << kIdBits) | value);
}

std::int64_t TraceMerger::PidOf(std::string_view pid) {
  const std::int32_t lane = plan_.inputs[input_].lane;
  const std::pair key(lane, KeyOfText(pid));
  const auto found = pids_.find(key);
  if (found != pids_.end()) return found->second;
  if (pids_.size() >= kRowsMax) return kNoRow;
  const auto row = static_cast<std::int64_t>(pids_.size()) + 1;
  pids_.emplace(key, row);
  WriteProcess(row, pid);
  return row;
}

void TraceMerger::WriteProcess(std::int64_t pid, std::string_view original) {
  const PlacedInput& input = plan_.inputs[input_];
  const auto named = input.process_names.find(KeyOfText(original));
  std::string name = absl::StrCat("rank ", input.rank);
  if (named != input.process_names.end() && !named->second.empty()) {
    absl::StrAppend(&name, " · ", named->second);
  } else if (input.is_native) {
    absl::StrAppend(&name, " · process ",
                    CutText(TextOfJson(original).value_or(std::string(original))));
  }
  std::string json;
  AppendJsonText(name, json);
  WriteMetadata("process_name", pid, 0, "name", json);
  const std::int64_t sort_index =
      input.rank * kRowsOfRank + (input.is_native ? kRowsOfRank / 2 : 0);
  WriteMetadata("process_sort_index", pid, 0, "sort_index", absl::StrCat(sort_index));
}

std::int64_t TraceMerger::TidOf(std::int64_t pid, std::string_view tid) {
  const std::optional<std::int64_t> number = WholeNumber(tid);
  if (number.has_value() && *number > 0 && *number <= kTidMax) return *number;
  const std::pair key(pid, KeyOfText(tid));
  const auto found = tids_.find(key);
  if (found != tids_.end()) return found->second;
  if (tids_.size() >= kRowsMax) return kNoRow;
  const std::int64_t row = kNamedTidMin + static_cast<std::int64_t>(tids_.size());
  tids_.emplace(key, row);
  if (!tid.empty()) {
    std::string json;
    AppendJsonText(CutText(TextOfJson(tid).value_or("thread " + std::string(tid))), json);
    WriteMetadata("thread_name", pid, row, "name", json);
  }
  return row;
}

void TraceMerger::WriteMetadata(std::string_view name, std::int64_t pid, std::int64_t tid,
                                std::string_view key, std::string_view json_value) {
  out_ += is_first_ ? "\n{\"ph\":\"M\",\"name\":\"" : ",\n{\"ph\":\"M\",\"name\":\"";
  out_ += name;
  absl::StrAppend(&out_, "\",\"pid\":", pid, ",\"tid\":", tid);
  out_.append(",\"args\":{\"").append(key).append("\":").append(json_value).append("}}");
  is_first_ = false;
}

absl::Status TraceMerger::HandOver(std::size_t at_least) {
  if (out_.size() < at_least) return absl::OkStatus();
  const absl::Status status = take_(out_);
  out_.clear();
  return status;
}

absl::Status TraceMerger::End() {
  out_ += "\n]}\n";
  return HandOver(0);
}

}  // namespace stepwell
