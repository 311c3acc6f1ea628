#include "base/trace/perfetto_splitter.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/trace/bounded_text.h"
#include "base/trace/exact_time.h"
#include "base/trace/gzip_block.h"
#include "base/trace/master_clock.h"
#include "base/trace/perfetto_fields.h"
#include "base/trace/proto_bytes.h"
#include "base/trace/trace_event.h"

namespace stepwell {
namespace {

namespace arg = perfetto::arg;
namespace clock = perfetto::clock;
namespace descriptor = perfetto::descriptor;
namespace event = perfetto::event;
namespace interned = perfetto::interned;
namespace packet = perfetto::packet;

constexpr std::size_t kBlockBytesMax = 64 << 20;
// Packed packets hold packets, and no packed ones.
constexpr int kDepthMax = 1;
// Of a packet; those that are read are below.
constexpr std::uint32_t kPacketFieldMax = 1'000;
// A trace has some ten clocks.
constexpr std::size_t kClocksMax = 1'000;
// Of what is kept beside its text, about.
constexpr std::size_t kSequenceBytes = 256;
constexpr std::size_t kTextBytes = 64;
constexpr std::size_t kClockBytes = 64;
constexpr std::size_t kTrackBytes = 160;
enum Type : std::uint64_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };

// The last field of that number.
ProtoField FieldOf(std::string_view message, std::uint32_t number) {
  ProtoField field, found;
  while (TakeProtoField(message, field)) {
    if (field.number == number) found = field;
  }
  return found;
}

const std::string* TextOf(
    const std::map<std::uint32_t, absl::flat_hash_map<std::uint64_t, std::string>>& texts,
    std::uint32_t kind, std::uint64_t number) {
  const auto of_kind = texts.find(kind);
  if (of_kind == texts.end()) return nullptr;
  const auto found = of_kind->second.find(number);
  return found == of_kind->second.end() ? nullptr : &found->second;
}

void AppendNumber(double value, std::string& json) {
  if (std::isfinite(value)) {
    json += absl::StrFormat("%.17g", value);
  } else {
    json += "null";
  }
}

}  // namespace

bool PerfettoSplitter::IsPerfetto(std::string_view begin) {
  if (begin.size() < kBeginBytes || begin[0] != '\n') return false;
  const auto is_one_of = [](char c, std::string_view which) {
    return which.find(c) != std::string_view::npos;
  };
  // The packet's length, or what stands behind a line feed; its first field, or what goes on so.
  if (is_one_of(begin[1], " \t\r\n")) return !is_one_of(begin[2], " \t\r\n{[");
  if (is_one_of(begin[1], "{[")) return !is_one_of(begin[2], " \t\r\n\"{}[]");
  return true;
}

absl::Status PerfettoSplitter::Feed(std::string_view bytes) {
  form_.byte_count += static_cast<std::int64_t>(bytes.size());
  held_ += bytes;
  std::string_view rest = held_;
  STEPWELL_RETURN_IF_ERROR(TakePackets(rest, 0));
  held_.erase(0, held_.size() - rest.size());
  if (held_.size() > kPacketBytesMax) {
    return absl::InvalidArgumentError("this is no Perfetto trace: a packet has more than 16 MiB");
  }
  return absl::OkStatus();
}

absl::StatusOr<TraceForm> PerfettoSplitter::Finish() {
  form_.is_cut = !held_.empty();
  form_.clock = has_realtime_ ? "REALTIME" : "BOOTTIME";
  for (const std::string& begin : slices_.TakeUnfinished()) {
    STEPWELL_RETURN_IF_ERROR(Tell(begin));
  }
  STEPWELL_RETURN_IF_ERROR(TellFlows());
  return form_;
}

absl::Status PerfettoSplitter::TellFlows() {
  for (const HeldFlows::Step& step : flows_.TakeSteps()) {
    std::string json =
        absl::StrCat("{\"ph\":\"", std::string(1, step.phase),
                     "\",\"name\":\"flow\",\"cat\":\"flow\",\"id\":", step.number, ",\"ts\":");
    AppendMicros(step.point.time_ns, json);
    AppendPlace(step.point.track, json);
    // To the slice around it, not to the next one.
    json += step.phase == 's' ? "}" : ",\"bp\":\"e\"}";
    STEPWELL_RETURN_IF_ERROR(Tell(json));
  }
  form_.flows_left_out += flows_.alone_count();
  return absl::OkStatus();
}

void PerfettoSplitter::HoldFlows(std::string_view bytes, std::uint64_t track,
                                 std::int64_t time_ns) {
  if (slice_form_ != SliceForm::kWhole) return;
  ProtoField field;
  while (TakeProtoField(bytes, field)) {
    const bool is_end = field.number == event::kTerminatingFlows;
    if (field.number != event::kFlows && !is_end) continue;
    if (!flows_.Add({.id = field.value, .time_ns = time_ns, .track = track, .is_end = is_end})) {
      ++form_.flows_left_out;
    }
  }
}

absl::Status PerfettoSplitter::TakePackets(std::string_view& bytes, int depth) {
  ProtoField field;
  while (TakeProtoField(bytes, field)) {
    if (field.number == perfetto::trace::kPacket) {
      STEPWELL_RETURN_IF_ERROR(TakePacket(field.bytes, depth));
    } else {
      ++form_.passed_over;
    }
  }
  // A packet begins here, of which more may come; anything else never becomes one.
  const bool may_go_on = bytes.empty() || bytes.front() == '\n';
  return may_go_on ? absl::OkStatus()
                   : absl::InvalidArgumentError("this is no Perfetto trace: a packet expected");
}

absl::Status PerfettoSplitter::TakePacket(std::string_view packet_bytes, int depth) {
  std::map<std::uint32_t, ProtoField> fields;
  ProtoField field;
  for (std::string_view rest = packet_bytes; TakeProtoField(rest, field);) {
    if (field.number <= kPacketFieldMax) fields[field.number] = field;
  }
  if (const auto packed = fields.find(packet::kCompressedPackets); packed != fields.end()) {
    const auto block =
        depth < kDepthMax ? UnpackedBlock(packed->second.bytes, kBlockBytesMax) : std::nullopt;
    if (!block.has_value()) {
      ++form_.passed_over;
      return absl::OkStatus();
    }
    std::string_view rest = *block;
    return TakePackets(rest, depth + 1);
  }
  const auto number = [&](std::uint32_t which) {
    const auto found = fields.find(which);
    return found == fields.end() ? std::nullopt : std::optional(found->second.value);
  };
  const std::uint64_t id = number(packet::kSequenceId).value_or(0);
  if (!sequences_.contains(id) && (sequences_.size() >= kKeptMax || !Keeps(kSequenceBytes))) {
    return absl::OkStatus();
  }
  Sequence& sequence = sequences_[id];
  if ((number(packet::kSequenceFlags).value_or(0) & 1) != 0) {
    sequence.texts.clear();
    kept_bytes_ -= std::exchange(sequence.texts_bytes, 0);
  }
  if (const auto found = fields.find(packet::kDefaults); found != fields.end()) {
    sequence.clock = FieldOf(found->second.bytes, packet::kTimestampClockId).value;
    sequence.track =
        FieldOf(FieldOf(found->second.bytes, packet::kTrackEvent).bytes, event::kTrack).value;
  }
  if (const auto found = fields.find(packet::kClockSnapshot); found != fields.end()) {
    TakeClocks(found->second.bytes, sequence);
  }
  if (const auto found = fields.find(packet::kInternedData); found != fields.end()) {
    TakeInterned(found->second.bytes, sequence);
  }
  if (const auto found = fields.find(packet::kTrackDescriptor); found != fields.end()) {
    STEPWELL_RETURN_IF_ERROR(TakeTrack(found->second.bytes));
  }
  if (const auto found = fields.find(packet::kTrackEvent); found != fields.end()) {
    const std::uint64_t clock_id = number(packet::kTimestampClockId).value_or(sequence.clock);
    const auto offset = sequence.clock_offsets.find(clock_id);
    const std::uint64_t time =
        number(packet::kTimestamp).value_or(0) +
        static_cast<std::uint64_t>(offset == sequence.clock_offsets.end() ? 0 : offset->second);
    return TakeTrackEvent(found->second.bytes, static_cast<std::int64_t>(time), sequence);
  }
  return absl::OkStatus();
}

void PerfettoSplitter::TakeClocks(std::string_view snapshot, Sequence& sequence) {
  std::map<std::uint64_t, std::uint64_t> times;
  ProtoField field;
  while (TakeProtoField(snapshot, field)) {
    if (field.number != clock::kClocks || times.size() >= kClocksMax) continue;
    times[FieldOf(field.bytes, clock::kId).value] = FieldOf(field.bytes, clock::kTime).value;
  }
  const auto realtime = times.find(clock::kRealtime);
  if (realtime == times.end()) return;
  has_realtime_ = true;
  for (const auto& [id, time] : times) {
    if (!sequence.clock_offsets.contains(id) && !Keeps(kClockBytes)) continue;
    sequence.clock_offsets[id] = static_cast<std::int64_t>(realtime->second - time);
  }
}

void PerfettoSplitter::TakeInterned(std::string_view interned_bytes, Sequence& sequence) {
  ProtoField field;
  while (TakeProtoField(interned_bytes, field)) {
    if (field.number > interned::kArgNames) continue;
    auto& texts = sequence.texts[field.number];
    const std::uint64_t number = FieldOf(field.bytes, interned::kNumber).value;
    const std::string_view text = FieldOf(field.bytes, interned::kText).bytes;
    const auto known = texts.find(number);
    const std::size_t was = known == texts.end() ? 0 : kTextBytes + known->second.size();
    kept_bytes_ -= was;
    sequence.texts_bytes -= was;
    // What was said before under that number holds no more.
    if (texts.size() >= kKeptMax || !Keeps(kTextBytes + text.size())) {
      texts.erase(number);
      continue;
    }
    sequence.texts_bytes += kTextBytes + text.size();
    texts[number] = text;
  }
}

bool PerfettoSplitter::Keeps(std::size_t bytes) {
  if (kept_bytes_ + bytes > kKeptBytesMax) {
    ++form_.passed_over;
    return false;
  }
  kept_bytes_ += bytes;
  return true;
}

absl::Status PerfettoSplitter::TakeTrack(std::string_view bytes) {
  const std::uint64_t uuid = FieldOf(bytes, descriptor::kUuid).value;
  if (!tracks_.contains(uuid) && (tracks_.size() >= kKeptMax || !Keeps(kTrackBytes))) {
    return absl::OkStatus();
  }
  Track& track = tracks_[uuid];
  track.parent = FieldOf(bytes, descriptor::kParent).value;
  std::string_view name = FieldOf(bytes, descriptor::kName).bytes;
  track.is_counter |= FieldOf(bytes, descriptor::kCounter).number != 0;
  const std::string_view process = FieldOf(bytes, descriptor::kProcess).bytes;
  const std::string_view thread = FieldOf(bytes, descriptor::kThread).bytes;
  if (!process.empty()) {
    track.is_process = true;
    track.pid = FieldOf(process, descriptor::kPid).AsInt();
    name = FieldOf(process, descriptor::kProcessName).bytes;
  } else if (!thread.empty()) {
    track.pid = FieldOf(thread, descriptor::kPid).AsInt();
    track.tid = FieldOf(thread, descriptor::kTid).AsInt();
    name = FieldOf(thread, descriptor::kThreadName).bytes;
  }
  if (!name.empty()) {
    kept_bytes_ -= track.name.size();
    track.name = CutText(name);
    if (!Keeps(track.name.size())) track.name.clear();
  }
  if (const ProtoField index = FieldOf(process, descriptor::kSortIndex); index.number != 0) {
    STEPWELL_RETURN_IF_ERROR(TellSortIndex(uuid, index.AsInt()));
  }
  if ((process.empty() && thread.empty()) || track.name.empty()) return absl::OkStatus();
  std::string json =
      absl::StrCat("{\"ph\":\"M\",\"name\":\"", process.empty() ? "thread" : "process", "_name\"");
  AppendPlace(uuid, json);
  json += ",\"args\":{\"name\":";
  AppendJsonText(track.name, json);
  json += "}}";
  return take_(json);
}

absl::Status PerfettoSplitter::TellSortIndex(std::uint64_t uuid, std::int64_t index) {
  std::string json = R"({"ph":"M","name":"process_sort_index")";
  AppendPlace(uuid, json);
  absl::StrAppend(&json, R"(,"args":{"sort_index":)", index, "}}");
  return take_(json);
}

// Rows of a thread or process that are none themselves get a name for a number: whoever merges gives them one.
void PerfettoSplitter::AppendPlace(std::uint64_t uuid, std::string& json) const {
  const auto own = tracks_.find(uuid);
  const Track* at = own == tracks_.end() ? nullptr : &own->second;
  const bool is_row = at == nullptr || (!at->is_process && at->pid == 0);
  // Rows within rows; more than a few are none.
  for (int up = 0; up < 8 && at != nullptr && at->parent != 0 && at->pid == 0; ++up) {
    const auto parent = tracks_.find(at->parent);
    if (parent == tracks_.end()) break;
    at = &parent->second;
  }
  absl::StrAppend(&json, ",\"pid\":", at == nullptr ? 0 : at->pid, ",\"tid\":");
  if (is_row && own != tracks_.end() && !own->second.is_counter) {
    AppendJsonText(absl::StrCat(own->second.name, " ", uuid), json);
  } else {
    absl::StrAppend(&json, at == nullptr ? 0 : at->tid != 0 ? at->tid : at->pid);
  }
}

absl::Status PerfettoSplitter::TakeTrackEvent(std::string_view bytes, std::int64_t time_ns,
                                              Sequence& sequence) {
  std::uint64_t type = 0;
  std::uint64_t uuid = sequence.track;
  std::optional<double> value;
  std::string_view name, category;
  ProtoField field;
  for (std::string_view rest = bytes; TakeProtoField(rest, field);) {
    const std::string* text = nullptr;
    switch (field.number) {
      case event::kType:
        type = field.value;
        break;
      case event::kTrack:
        uuid = field.value;
        break;
      case event::kNameNumber:
        text = TextOf(sequence.texts, interned::kNames, field.value);
        if (text != nullptr) name = *text;
        break;
      case event::kName:
        name = field.bytes;
        break;
      case event::kCategoryNumbers:
        text = TextOf(sequence.texts, interned::kCategories, field.value);
        if (text != nullptr) category = *text;
        break;
      case event::kCategories:
        category = field.bytes;
        break;
      case event::kCounter:
        value = static_cast<double>(field.AsInt());
        break;
      case event::kDoubleCounter:
        value = field.AsDouble();
        break;
      default:
        break;
    }
  }
  constexpr const char* kPhases[] = {nullptr, "B", "E", "i", "C"};
  if (type < kBegin || type > kCounter) {
    ++form_.passed_over;
    return absl::OkStatus();
  }
  const bool is_metadata = type == kInstant && category == kMetadataCategory;
  std::string json;
  const auto track = tracks_.find(uuid);
  if (type == kCounter && track != tracks_.end()) name = track->second.name;
  if (!name.empty()) {
    json += ",\"name\":";
    AppendJsonText(name, json);
  }
  if (!category.empty()) {
    json += ",\"cat\":";
    AppendJsonText(category, json);
  }
  json += ",\"ts\":";
  AppendMicros(time_ns, json);
  AppendPlace(uuid, json);
  if (type == kInstant) {
    json += track != tracks_.end() && track->second.is_process ? ",\"s\":\"p\"" : ",\"s\":\"t\"";
  }
  std::string args;
  if (type == kCounter) {
    args = "\"value\":";
    AppendNumber(value.value_or(0), args);
  } else {
    args = ArgsOf(bytes, sequence);
    HoldFlows(bytes, uuid, time_ns);
  }
  if (slice_form_ == SliceForm::kWhole && type == kBegin) {
    const std::string told = slices_.Begin(uuid, time_ns, std::move(json), std::move(args));
    return told.empty() ? absl::OkStatus() : Tell(told);
  }
  if (slice_form_ == SliceForm::kWhole && type == kEnd) {
    return Tell(slices_.End(uuid, time_ns, json, args));
  }
  json = absl::StrCat("{\"ph\":\"", is_metadata ? "M" : kPhases[type], "\"", json);
  if (!args.empty()) absl::StrAppend(&json, ",\"args\":{", args, "}");
  json += '}';
  return is_metadata ? take_(json) : Tell(json);
}

std::string PerfettoSplitter::ArgsOf(std::string_view bytes, const Sequence& sequence) const {
  std::string args;
  ProtoField field;
  while (TakeProtoField(bytes, field)) {
    if (field.number != event::kArgs) continue;
    std::string_view name;
    std::string value;
    ProtoField part;
    for (std::string_view rest = field.bytes; TakeProtoField(rest, part);) {
      const std::string* text = nullptr;
      switch (part.number) {
        case arg::kNameNumber:
          text = TextOf(sequence.texts, interned::kArgNames, part.value);
          if (text != nullptr) name = *text;
          break;
        case arg::kName:
          name = part.bytes;
          break;
        case arg::kBool:
          value = part.value != 0 ? "true" : "false";
          break;
        case arg::kUint:
          value = absl::StrCat(part.value);
          break;
        case arg::kInt:
          value = absl::StrCat(part.AsInt());
          break;
        case arg::kDouble:
          value.clear();  // of several the last counts
          AppendNumber(part.AsDouble(), value);
          break;
        case arg::kString:
        case arg::kJson:
          value.clear();
          AppendJsonText(part.bytes, value);
          break;
        default:
          break;
      }
    }
    if (name.empty() || value.empty()) continue;
    if (!args.empty()) args += ',';
    AppendJsonText(name, args);
    absl::StrAppend(&args, ":", value);
  }
  return args;
}

absl::Status PerfettoSplitter::Tell(const std::string& json) {
  if (json.size() > TraceSplitter::kEventBytesMax) {
    ++form_.passed_over;
    return absl::OkStatus();
  }
  ++form_.event_count;
  return take_(json);
}

}  // namespace stepwell
