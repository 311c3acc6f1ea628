#include "base/trace/perfetto_merger.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/trace/begun_slices.h"
#include "base/trace/bounded_text.h"
#include "base/trace/exact_time.h"
#include "base/trace/json_members.h"
#include "base/trace/master_clock.h"
#include "base/trace/merge_rows.h"
#include "base/trace/perfetto_slices.h"
#include "base/trace/perfetto_writer.h"
#include "base/trace/trace_event.h"
#include "base/trace/trace_merger.h"
#include "base/trace/trace_origin.h"

namespace stepwell {
namespace {

using Track = PerfettoWriter::Track;

// Its blocks are full: 3 packs them a fiftieth smaller, and takes an eighth of a merge's time.
constexpr int kPackLevel = 1;
// Asynchronous events' older letters, as the newer ones.
char Newer(char phase) {
  switch (phase) {
    case 'S':
      return 'b';
    case 'F':
      return 'e';
    case 'T':
    case 'p':
      return 'n';
    case 'I':
    case 'R':
      return 'i';
    default:
      return phase;
  }
}

// What a person wants to know of a row's clock, beside its name.
std::string ClockLabel(const PlacedInput& placed) {
  if (!placed.error_ns.has_value()) return "clock error unknown";
  std::string label = "clock error ";
  AppendMicros(*placed.error_ns, label);
  return label + " us";
}

bool ToDouble(std::string_view text, double& number) {
  return absl::SimpleAtod(absl::string_view(text.data(), text.size()), &number);
}

std::string_view OtherOf(const TraceEvent& event, std::string_view name) {
  for (const auto& [each, value] : event.others) {
    if (each == name) return value;
  }
  return {};
}

}  // namespace

struct PerfettoMerger::Impl {
  struct Lane {
    PerfettoSlices::Lane slices = 0;
    Track track = 0;
    BegunSlices begun;
  };
  struct Process {
    std::int64_t pid = MergeRows::kNoRow;
    Track track = 0;
  };

  Impl(const MergePlan& of, Options options, TakeBytes take)
      : plan(of),
        writer({.base_time_ns = of.base_time_ns,
                .is_packed = options.is_packed,
                .pack_level = kPackLevel},
               std::move(take)),
        slices(writer, options.held_bytes_max, [this] { return ++track_count; }),
        rows(of) {}

  // Times are written as what lies between them and the base: that has to fit, too.
  bool CanSay(std::int64_t time_ns) const {
    std::int64_t since_base = 0;
    return !__builtin_sub_overflow(time_ns, plan.base_time_ns, &since_base) && since_base >= 0;
  }

  Process* ProcessOf(std::string_view pid);
  Lane* ThreadOf(const TraceEvent& event);
  Lane* AsyncOf(const TraceEvent& event);
  void TellInput(Track track, std::int64_t time_ns);
  void AppendArgs(std::string_view args, std::string& body);
  std::string BodyOf(const TraceEvent& event);

  bool Take(const TraceEvent& event, std::optional<std::int64_t> time);
  bool TakeMetadata(const TraceEvent& event);
  bool KeepMetadata(std::string_view name, const TraceEvent& event);
  bool TakeWhole(const TraceEvent& event, std::int64_t time_ns);
  bool TakeBegin(Lane* lane, const TraceEvent& event, std::int64_t time_ns);
  bool TakeEnd(Lane* lane, const TraceEvent& event, std::int64_t time_ns);
  bool TakeInstant(Lane* lane, const TraceEvent& event, std::int64_t time_ns);
  bool TakeValues(const TraceEvent& event, std::int64_t time_ns);
  bool TakeFlow(const TraceEvent& event, std::int64_t time_ns);
  void Close(const Lane& lane, const BegunSlices::Slice& begun, std::int64_t end_ns);
  Track CounterOf(const Process& process, const std::string& name, std::string_view unit);
  void EndInput();

  const MergePlan& plan;
  PerfettoWriter writer;
  PerfettoSlices slices;
  MergeRows rows;
  TraceEventParser parser;
  std::size_t input = 0;
  std::int64_t last_ns = 0;  // of the input
  bool is_input_told = false;
  Track track_count = 0;
  std::map<std::int64_t, Process> processes;
  std::map<std::string, Process> counted;
  std::map<std::pair<std::int64_t, std::int64_t>, Lane> threads;
  std::map<std::pair<std::int64_t, std::string>, Lane> asyncs;
  absl::flat_hash_map<std::pair<Track, std::string>, Track> counters;
  Track counter = 0;
  BegunSlices::Room begun_room;
  std::int64_t written_count = 0;
  std::int64_t left_out_count = 0;
};

PerfettoMerger::PerfettoMerger(const MergePlan& plan, Options options, TakeBytes take)
    : impl_(std::make_unique<Impl>(plan, options, std::move(take))) {}
PerfettoMerger::~PerfettoMerger() = default;

absl::Status PerfettoMerger::Begin() { return impl_->writer.HandOver(0); }

absl::Status PerfettoMerger::BeginInput(std::size_t index) {
  impl_->EndInput();
  BeginWindow();
  impl_->input = index;
  impl_->last_ns = impl_->plan.base_time_ns;
  impl_->is_input_told = false;
  return impl_->slices.WriteAll();
}

absl::Status PerfettoMerger::TakeEvent(std::string_view json) {
  Impl& impl = *impl_;
  if (!impl.parser.Parse(json)) {
    ++impl.left_out_count;
    return absl::OkStatus();
  }
  const TraceEvent& event = impl.parser.event();
  if (IsReplacedByMerge(event, impl.plan)) return absl::OkStatus();
  std::optional<std::int64_t> time;
  if (event.phase != 'M') time = MergedTimeNs(impl.plan.inputs[impl.input], event.time);
  if (time.has_value() && impl.CanSay(*time)) NoteTime(*time);
  const bool is_flow = event.phase == 's' || event.phase == 't' || event.phase == 'f';
  STEPWELL_RETURN_IF_ERROR(impl.slices.WriteSome(is_flow));
  if (!impl.Take(event, time)) ++impl.left_out_count;
  return impl.writer.HandOver(PerfettoWriter::kBlockBytes);
}

absl::Status PerfettoMerger::BeginCounter(const MergedCounter& counter) {
  Impl& impl = *impl_;
  auto [found, is_new] = impl.counted.try_emplace(counter.process);
  Impl::Process& process = found->second;
  if (is_new) process = {.pid = impl.rows.AddProcess().number, .track = ++impl.track_count};
  const bool has_room = process.pid != MergeRows::kNoRow;
  if (is_new && has_room) {
    impl.writer.DescribeProcess(
        process.track,
        {.pid = process.pid, .name = counter.process, .sort_index = MergeRows::kCounterSortIndex});
  }
  impl.counter = has_room ? impl.CounterOf(process, counter.name, counter.unit) : 0;
  return impl.writer.HandOver(PerfettoWriter::kBlockBytes);
}

absl::Status PerfettoMerger::TakeCount(std::int64_t time_ns, double value) {
  Impl& impl = *impl_;
  if (impl.counter == 0 || !std::isfinite(value) || !impl.CanSay(time_ns)) {
    ++impl.left_out_count;
    return absl::OkStatus();
  }
  impl.writer.AddCount(impl.counter, time_ns, value);
  ++impl.written_count;
  return impl.writer.HandOver(PerfettoWriter::kBlockBytes);
}

absl::Status PerfettoMerger::End() {
  impl_->EndInput();
  STEPWELL_RETURN_IF_ERROR(impl_->slices.WriteAll());
  return impl_->writer.HandOver(0);
}

std::int64_t PerfettoMerger::written_count() const {
  return impl_->written_count + impl_->slices.written_count();
}
std::int64_t PerfettoMerger::left_out_count() const {
  return impl_->left_out_count + impl_->slices.left_out_count();
}

PerfettoMerger::Impl::Process* PerfettoMerger::Impl::ProcessOf(std::string_view pid) {
  const MergeRows::Row row = rows.ProcessOf(input, pid);
  if (row.number == MergeRows::kNoRow) return nullptr;
  Process& process = processes[row.number];
  if (row.is_new) {
    process = {.pid = row.number, .track = ++track_count};
    writer.DescribeProcess(process.track, {.pid = row.number,
                                           .name = rows.ProcessName(input, pid),
                                           .labels = {ClockLabel(plan.inputs[input])},
                                           .sort_index = rows.SortIndex(input)});
  }
  return &process;
}

// How it was placed, for who asks in a query or clicks.
void PerfettoMerger::Impl::TellInput(Track track, std::int64_t time_ns) {
  const PlacedInput& placed = plan.inputs[input];
  std::string body;
  writer.AppendName("input", body);
  writer.AppendArg("file", std::string_view(placed.label), body);
  writer.AppendArg("rank", std::int64_t{placed.rank}, body);
  writer.AppendArg("is_native", placed.is_native, body);
  writer.AppendArg("shift_ns", placed.shift_ns, body);
  if (placed.drift != 0) writer.AppendArg("drift_us_per_s", placed.drift * 1e6, body);
  if (placed.error_ns.has_value()) {
    writer.AppendArg("clock_error_ns", *placed.error_ns, body);
  } else {
    writer.AppendArg("clock_error_ns", std::string_view("unknown"), body);
  }
  writer.AddInstant(track, time_ns, body);
}

PerfettoMerger::Impl::Lane* PerfettoMerger::Impl::ThreadOf(const TraceEvent& event) {
  const Process* process = ProcessOf(event.pid);
  if (process == nullptr) return nullptr;
  const MergeRows::Row row = rows.ThreadOf(process->pid, event.tid);
  if (row.number == MergeRows::kNoRow) return nullptr;
  const auto [found, is_new] = threads.try_emplace({process->pid, row.number});
  Lane& lane = found->second;
  if (!is_new) return &lane;
  if (threads.size() + asyncs.size() > MergeRows::kRowsMax) {
    threads.erase(found);
    return nullptr;
  }
  lane.track = ++track_count;
  lane.slices = slices.AddLane(lane.track);
  const std::string name =
      row.is_new && !event.tid.empty() ? MergeRows::ThreadName(event.tid) : std::string();
  writer.DescribeThread(lane.track, {.pid = process->pid, .tid = row.number, .name = name});
  return &lane;
}

PerfettoMerger::Impl::Lane* PerfettoMerger::Impl::AsyncOf(const TraceEvent& event) {
  const Process* process = ProcessOf(event.pid);
  if (process == nullptr) return nullptr;
  const std::string_view id = event.id.empty() ? OtherOf(event, "id2") : event.id;
  std::string key = absl::StrCat(input, "\n", CutText(event.category), "\n", KeyOfText(id));
  const auto [found, is_new] = asyncs.try_emplace({process->pid, std::move(key)});
  Lane& lane = found->second;
  if (!is_new) return &lane;
  if (threads.size() + asyncs.size() > MergeRows::kRowsMax) {
    asyncs.erase(found);
    return nullptr;
  }
  lane.track = ++track_count;
  lane.slices = slices.AddLane(lane.track);
  std::string scratch;
  writer.DescribeRow(lane.track, process->track, CutText(TextOf(event.name, scratch)));
  return &lane;
}

void PerfettoMerger::Impl::AppendArgs(std::string_view args, std::string& body) {
  std::string name_scratch;
  std::string scratch;
  for (JsonMembers members(args); members.Next();) {
    const std::string_view written = members.name();
    const std::string_view value = members.value();
    std::string_view name = written;
    if (written.find('\\') != std::string_view::npos) {
      name_scratch = TextOfJson("\"" + std::string(written) + "\"").value_or(std::string(written));
      name = name_scratch;
    }
    double number = 0;
    if (value.front() == '"') {
      writer.AppendArg(name, TextOf(value, scratch), body);
    } else if (const auto whole = WholeNumber(value); whole.has_value()) {
      writer.AppendArg(name, *whole, body);
    } else if (value == "true" || value == "false") {
      writer.AppendArg(name, value == "true", body);
    } else if (ToDouble(value, number)) {
      writer.AppendArg(name, number, body);
    } else {
      writer.AppendArgJson(name, value, body);
    }
  }
}

std::string PerfettoMerger::Impl::BodyOf(const TraceEvent& event) {
  std::string body;
  std::string scratch;
  if (!event.name.empty()) writer.AppendName(TextOf(event.name, scratch), body);
  if (!event.category.empty() && event.category != "\"\"") {
    writer.AppendCategory(TextOf(event.category, scratch), body);
  }
  if (!event.args.empty()) AppendArgs(event.args, body);
  return body;
}

bool PerfettoMerger::Impl::Take(const TraceEvent& event, std::optional<std::int64_t> time) {
  if (event.phase == 'M') return TakeMetadata(event);
  if (!time.has_value()) return false;
  const char phase = Newer(event.phase);
  const bool is_half = phase == 'B' || phase == 'E' || phase == 'b' || phase == 'e';
  // Its other half would be another's: it stands at the base.
  if (is_half && *time < plan.base_time_ns) time = plan.base_time_ns;
  if (!CanSay(*time)) return false;
  last_ns = std::max(last_ns, *time);
  if (!is_input_told) {
    if (const Process* process = ProcessOf(event.pid); process != nullptr) {
      TellInput(process->track, *time);
    }
    is_input_told = true;
  }
  switch (phase) {
    case 'X':
      return TakeWhole(event, *time);
    case 'B':
      return TakeBegin(ThreadOf(event), event, *time);
    case 'E':
      return TakeEnd(ThreadOf(event), event, *time);
    case 'i':
      return TakeInstant(ThreadOf(event), event, *time);
    case 'C':
      return TakeValues(event, *time);
    case 'b':
      return TakeBegin(AsyncOf(event), event, *time);
    case 'e':
      return TakeEnd(AsyncOf(event), event, *time);
    case 'n':
      return TakeInstant(AsyncOf(event), event, *time);
    case 's':
    case 't':
    case 'f':
      return TakeFlow(event, *time);
    default:
      return false;
  }
}

// Whose clock it is, in the form in which an agent writes it. Without a time of its own it stands nowhere.
bool PerfettoMerger::Impl::KeepMetadata(std::string_view name, const TraceEvent& event) {
  const std::optional<std::int64_t> at_ns = MergedTimeNs(plan.inputs[input], event.time);
  const Process* process = ProcessOf(event.pid);
  if (!at_ns.has_value() || !CanSay(*at_ns) || process == nullptr) return false;
  std::string body;
  writer.AppendName(name, body);
  writer.AppendCategory(kMetadataCategory, body);
  AppendArgs(event.args, body);
  writer.AddInstant(process->track, *at_ns, body);
  return true;
}

bool PerfettoMerger::Impl::TakeMetadata(const TraceEvent& event) {
  for (const char* name : {kMasterClockEvent, kWallClockEvent, kMachineEvent}) {
    if (event.name == absl::StrCat("\"", name, "\"")) return KeepMetadata(name, event);
  }
  if (event.name != "\"thread_name\"") return true;
  const auto name = TextOfJson(MemberOf(event.args, "name"));
  const Lane* lane = name.has_value() ? ThreadOf(event) : nullptr;
  if (lane == nullptr) return false;
  const std::int64_t pid = ProcessOf(event.pid)->pid;
  writer.DescribeThread(
      lane->track,
      {.pid = pid, .tid = rows.ThreadOf(pid, event.tid).number, .name = CutText(*name)});
  return true;
}

bool PerfettoMerger::Impl::TakeWhole(const TraceEvent& event, std::int64_t time_ns) {
  Lane* lane = ThreadOf(event);
  const std::int64_t duration = std::max<std::int64_t>(
      MergedDurationNs(plan.inputs[input], event.time, event.duration).value_or(0), 0);
  std::int64_t end_ns = 0;
  if (lane == nullptr || __builtin_add_overflow(time_ns, duration, &end_ns) || !CanSay(end_ns)) {
    return false;
  }
  last_ns = std::max(last_ns, end_ns);
  std::string body = BodyOf(event);
  if (!event.bind_id.empty()) {
    const bool goes_in = OtherOf(event, "flow_in") == "true";
    PerfettoWriter::AppendFlow(MergedId(input, event.bind_id),
                               goes_in && OtherOf(event, "flow_out") != "true", body);
  }
  slices.Add(lane->slices, {time_ns, end_ns}, body);
  return true;
}

bool PerfettoMerger::Impl::TakeBegin(Lane* lane, const TraceEvent& event, std::int64_t time_ns) {
  return lane != nullptr && lane->begun.Begin({.name = KeyOfText(event.name),
                                               .begin_ns = time_ns,
                                               .has_args = !event.args.empty(),
                                               .body = BodyOf(event)},
                                              begun_room);
}

bool PerfettoMerger::Impl::TakeEnd(Lane* lane, const TraceEvent& event, std::int64_t time_ns) {
  if (lane == nullptr) return false;
  std::optional<BegunSlices::Slice> begun =
      lane->begun.End(event.name.empty() ? std::string() : KeyOfText(event.name), begun_room);
  if (!begun.has_value()) return false;
  // Most writers say the same at both.
  if (!begun->has_args) AppendArgs(event.args, begun->body);
  Close(*lane, *begun, time_ns);
  return true;
}

void PerfettoMerger::Impl::Close(const Lane& lane, const BegunSlices::Slice& begun,
                                 std::int64_t end_ns) {
  slices.Add(lane.slices, {begun.begin_ns, std::max(begun.begin_ns, end_ns)}, begun.body);
}

bool PerfettoMerger::Impl::TakeInstant(Lane* lane, const TraceEvent& event, std::int64_t time_ns) {
  if (lane == nullptr) return false;
  const std::string_view scope = OtherOf(event, "s");
  const bool is_of_process = scope == "\"p\"" || scope == "\"g\"";
  const Track track = is_of_process ? ProcessOf(event.pid)->track : lane->track;
  writer.AddInstant(track, time_ns, BodyOf(event));
  ++written_count;
  return true;
}

bool PerfettoMerger::Impl::TakeValues(const TraceEvent& event, std::int64_t time_ns) {
  const Process* process = ProcessOf(event.pid);
  if (process == nullptr) return false;
  std::string scratch;
  std::string name = CutText(TextOf(event.name, scratch));
  if (!event.id.empty()) absl::StrAppend(&name, " ", CutText(TextOf(event.id, scratch)));
  bool is_any = false;
  for (JsonMembers members(event.args); members.Next();) {
    const std::string_view key = members.name();
    double number = 0;
    if (!ToDouble(TextOf(members.value(), scratch), number) || !std::isfinite(number)) continue;
    // A counter of Perfetto's form has one value, which is read under that name.
    const std::string full = key == "value" ? name : absl::StrCat(name, " ", CutText(key));
    const Track track = CounterOf(*process, full, "");
    if (track == 0) continue;
    writer.AddCount(track, time_ns, number);
    is_any = true;
  }
  if (is_any) ++written_count;
  return is_any;
}

Track PerfettoMerger::Impl::CounterOf(const Process& process, const std::string& name,
                                      std::string_view unit) {
  if (counters.size() >= MergeRows::kRowsMax) {
    const auto found = counters.find({process.track, name});
    return found == counters.end() ? 0 : found->second;
  }
  const auto [found, is_new] = counters.try_emplace({process.track, name}, track_count + 1);
  if (is_new) writer.DescribeCounter(++track_count, process.track, name, unit);
  return found->second;
}

bool PerfettoMerger::Impl::TakeFlow(const TraceEvent& event, std::int64_t time_ns) {
  const Lane* lane = ThreadOf(event);
  if (lane == nullptr) return false;
  slices.AddFlow(lane->slices, time_ns, MergedFlowId(input, event), event.phase == 'f');
  return true;
}

// What has no end by now ends with the last that the input tells.
void PerfettoMerger::Impl::EndInput() {
  const auto close_all = [this](auto& lanes) {
    for (auto& [key, lane] : lanes) {
      while (std::optional<BegunSlices::Slice> begun = lane.begun.TakeInnermost(begun_room)) {
        writer.AppendArg("unfinished", true, begun->body);
        Close(lane, *begun, last_ns);
      }
      lane.begun = {};  // and the room that it took
    }
  };
  close_all(threads);
  close_all(asyncs);
}

}  // namespace stepwell
