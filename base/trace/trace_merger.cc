#include "base/trace/trace_merger.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/trace/exact_time.h"
#include "base/trace/json_members.h"

namespace stepwell {
namespace {

constexpr std::size_t kPieceBytes = 256 << 10;

// As Kineto tells whose a trace is, for those who look there; of several ranks none.
std::string RankInfoOf(const MergePlan& plan) {
  const auto is_other = [&](const PlacedInput& input) {
    return input.rank != plan.inputs.front().rank;
  };
  if (plan.inputs.empty() || std::any_of(plan.inputs.begin(), plan.inputs.end(), is_other)) {
    return "";
  }
  return absl::StrCat(",\"distributedInfo\":{\"rank\":", plan.inputs.front().rank, "}");
}

// Of a native profiler and nothing else, for who merges it once more.
bool IsNative(const MergePlan& plan) {
  return std::all_of(plan.inputs.begin(), plan.inputs.end(),
                     [](const PlacedInput& input) { return input.is_native; });
}

// {"local":"0x1"} or {"global":"0x1"}, kept apart between inputs; anything else as it was written.
std::string MergedId2(std::size_t input, std::string_view id2) {
  for (const char* kind : {"local", "global"}) {
    const std::string_view id = MemberOf(id2, kind);
    if (!id.empty()) {
      return absl::StrFormat("{\"%s\":\"0x%x\"}", kind, MergedId(input, id));
    }
  }
  return std::string(id2);
}

}  // namespace

TraceMerger::TraceMerger(const MergePlan& plan, TakeBytes take)
    : plan_(plan), take_(std::move(take)), rows_(plan) {}

absl::Status TraceMerger::Begin() {
  absl::StrAppend(&out_, "{\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":", plan_.base_time_ns,
                  RankInfoOf(plan_), ",\"metadata\":{\"merged_by\":\"stepwell\",\"is_native\":",
                  IsNative(plan_) ? "true" : "false", ",\"inputs\":[");
  for (std::size_t i = 0; i < plan_.inputs.size(); ++i) {
    const PlacedInput& input = plan_.inputs[i];
    absl::StrAppend(&out_, i == 0 ? "" : ",", "\n{\"file\":");
    AppendJsonText(input.label, out_);
    absl::StrAppend(&out_, ",\"rank\":", input.rank,
                    ",\"is_native\":", input.is_native ? "true" : "false", ",\"shift_us\":");
    AppendMicros(input.shift_ns, out_);
    if (input.drift != 0) absl::StrAppend(&out_, ",\"drift_us_per_s\":", input.drift * 1e6);
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

absl::Status TraceMerger::BeginInput(std::size_t index) {
  const absl::Status ended = EndInput();
  input_ = index;
  last_ns_ = plan_.base_time_ns;
  BeginWindow();
  return ended;
}

absl::Status TraceMerger::EndInput() {
  for (auto& [thread, depth] : std::exchange(open_, {})) {
    for (; depth > 0; --depth) {
      BeginObject('E');
      out_ += ",\"ts\":";
      AppendMicros(last_ns_ - plan_.base_time_ns, out_);
      absl::StrAppend(&out_, ",\"pid\":", thread.first, ",\"tid\":", thread.second,
                      ",\"args\":{\"unfinished\":true}}");
      if (const absl::Status status = HandOver(kPieceBytes); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status TraceMerger::TakeEvent(std::string_view json) {
  if (!parser_.Parse(json)) {
    ++left_out_count_;
    return absl::OkStatus();
  }
  const TraceEvent& event = parser_.event();
  if (IsReplacedByMerge(event, plan_)) return absl::OkStatus();
  if (WriteEvent(event)) {
    ++written_count_;
  } else {
    ++left_out_count_;
  }
  return HandOver(kPieceBytes);
}

bool IsReplacedByMerge(const TraceEvent& event, const MergePlan& plan) {
  if (event.phase != 'M') return false;
  if (event.name == "\"master_clock\"" || event.name == "\"wall_clock\"" ||
      event.name == "\"machine\"") {
    // Whose clock it is and what that exchanged with its master is told on where all of it is of one.
    return !std::all_of(plan.inputs.begin(), plan.inputs.end(), [](const PlacedInput& each) {
      return each.shift_ns == 0 && each.drift == 0 && each.error_ns == 0;
    });
  }
  constexpr std::string_view kNames[] = {"\"process_name\"", "\"process_sort_index\"",
                                         "\"global_rank\"", "\"clock_sync_timestamp_us\"",
                                         "\"clock_sync_error_bound\""};
  for (const std::string_view name : kNames) {
    if (event.name == name) return true;
  }
  return false;
}

bool TraceMerger::WriteEvent(const TraceEvent& event) {
  std::int64_t time_ns = 0;
  std::int64_t duration_ns = 0;
  bool rewrites_duration = false;
  const bool has_time = event.phase != 'M' || !event.time.empty();
  if (has_time) {
    const std::optional<std::int64_t> merged = MergedTimeNs(plan_.inputs[input_], event.time);
    if (!merged.has_value() || __builtin_sub_overflow(*merged, plan_.base_time_ns, &time_ns)) {
      return false;
    }
    // Far before all others, as a broken clock has it: no viewer shows what lies before the base.
    // What begins or ends stays, for the other would be another's.
    const bool is_half = event.phase == 'B' || event.phase == 'E';
    if (event.phase != 'M' && !is_half && time_ns < 0) return false;
    if (event.phase != 'M' && time_ns >= 0) NoteTime(*merged);
    last_ns_ = std::max(last_ns_, *merged);
    // Copied as it was written, digit by digit, unless its clock drifts.
    rewrites_duration = plan_.inputs[input_].drift != 0 && !event.duration.empty();
    if (rewrites_duration || (!open_.empty() && !event.duration.empty())) {
      duration_ns = MergedDurationNs(plan_.inputs[input_], event.time, event.duration).value_or(0);
    }
    std::int64_t end_ns = 0;
    // What is open ends behind it.
    if (!open_.empty() && !__builtin_add_overflow(*merged, duration_ns, &end_ns)) {
      last_ns_ = std::max(last_ns_, end_ns);
    }
  }
  const std::int64_t pid = PidOf(event.pid);
  const std::int64_t tid = pid == MergeRows::kNoRow ? pid : TidOf(pid, event.tid);
  if (tid == MergeRows::kNoRow || !Nest(event.phase, pid, tid)) return false;

  BeginObject(event.phase);
  const auto copy = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) out_.append(",\"").append(name).append("\":").append(value);
  };
  copy("name", event.name);
  copy("cat", event.category);
  if (has_time) {
    out_ += ",\"ts\":";
    AppendMicros(time_ns, out_);
  }
  if (rewrites_duration) {
    out_ += ",\"dur\":";
    AppendMicros(duration_ns, out_);
  } else {
    copy("dur", event.duration);
  }
  absl::StrAppend(&out_, ",\"pid\":", pid, ",\"tid\":", tid);
  if (!event.id.empty()) absl::StrAppend(&out_, ",\"id\":", MergedId(input_, event.id));
  if (!event.bind_id.empty()) {
    absl::StrAppend(&out_, ",\"bind_id\":", MergedId(input_, event.bind_id));
  }
  for (const auto& [name, value] : event.others) {
    if (name == "id2") {
      copy(name, MergedId2(input_, value));
    } else {
      copy(name, value);
    }
  }
  copy("args", event.args);
  out_ += '}';
  return true;
}

void TraceMerger::BeginObject(char phase) {
  out_ += is_first_ ? "\n{\"ph\":\"" : ",\n{\"ph\":\"";
  out_ += phase;
  out_ += '"';
  is_first_ = false;
}

bool TraceMerger::Nest(char phase, std::int64_t pid, std::int64_t tid) {
  if (phase != 'B' && phase != 'E') return true;
  const auto found = open_.find({pid, tid});
  if (phase == 'E') {
    if (found == open_.end() || found->second == 0) return false;
    --found->second;
    return true;
  }
  if (found != open_.end()) {
    ++found->second;
    return true;
  }
  if (open_.size() >= MergeRows::kRowsMax) return false;
  open_.emplace(std::pair(pid, tid), 1);
  return true;
}

std::int64_t TraceMerger::PidOf(std::string_view pid) {
  const MergeRows::Row row = rows_.ProcessOf(input_, pid);
  if (row.is_new) {
    WriteProcess(row.number, rows_.ProcessName(input_, pid), rows_.SortIndex(input_));
  }
  return row.number;
}

void TraceMerger::WriteProcess(std::int64_t pid, std::string_view name, std::int64_t sort_index) {
  std::string json;
  AppendJsonText(name, json);
  WriteMetadata("process_name", pid, 0, "name", json);
  WriteMetadata("process_sort_index", pid, 0, "sort_index", absl::StrCat(sort_index));
}

std::int64_t TraceMerger::TidOf(std::int64_t pid, std::string_view tid) {
  const MergeRows::Row row = rows_.ThreadOf(pid, tid);
  if (row.is_new && !tid.empty()) {
    std::string json;
    AppendJsonText(MergeRows::ThreadName(tid), json);
    WriteMetadata("thread_name", pid, row.number, "name", json);
  }
  return row.number;
}

absl::Status TraceMerger::BeginCounter(const MergedCounter& counter) {
  if (const absl::Status ended = EndInput(); !ended.ok()) return ended;
  const auto [pid, is_new] = counter_pids_.try_emplace(counter.process, MergeRows::kNoRow);
  if (is_new) {
    pid->second = rows_.AddProcess().number;
    if (pid->second != MergeRows::kNoRow) {
      WriteProcess(pid->second, counter.process, MergeRows::kCounterSortIndex);
    }
  }
  counter_.pid = pid->second;
  counter_.begin = "{\"ph\":\"C\",\"name\":";
  const bool has_unit = !counter.unit.empty();
  AppendJsonText(has_unit ? absl::StrCat(counter.name, " (", counter.unit, ")") : counter.name,
                 counter_.begin);
  absl::StrAppend(&counter_.begin, ",\"pid\":", counter_.pid, ",\"tid\":0,\"ts\":");
  return HandOver(kPieceBytes);
}

absl::Status TraceMerger::TakeCount(std::int64_t time_ns, double value) {
  std::int64_t since_base = 0;
  if (counter_.pid == MergeRows::kNoRow || !std::isfinite(value) ||
      __builtin_sub_overflow(time_ns, plan_.base_time_ns, &since_base)) {
    ++left_out_count_;
    return absl::OkStatus();
  }
  out_ += is_first_ ? "\n" : ",\n";
  is_first_ = false;
  out_ += counter_.begin;
  AppendMicros(since_base, out_);
  char digits[32];
  const std::to_chars_result number = std::to_chars(digits, digits + sizeof digits, value);
  out_ += ",\"args\":{\"value\":";
  out_.append(digits, number.ptr);
  out_ += "}}";
  ++written_count_;
  return HandOver(kPieceBytes);
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
  if (const absl::Status ended = EndInput(); !ended.ok()) return ended;
  out_ += "\n]}\n";
  return HandOver(0);
}

}  // namespace stepwell
