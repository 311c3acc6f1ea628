#include "base/trace/perfetto_writer.h"

#include <algorithm>
#include <utility>

#include "base/trace/gzip_block.h"
#include "base/trace/perfetto_fields.h"
#include "base/trace/proto_bytes.h"

namespace stepwell {
namespace {

namespace trace = perfetto::trace;
namespace packet = perfetto::packet;
namespace clock = perfetto::clock;
namespace descriptor = perfetto::descriptor;
namespace event = perfetto::event;
namespace arg = perfetto::arg;
namespace interned = perfetto::interned;

// All packets are of one sequence: what is interned holds for it.
constexpr std::uint64_t kSequence = 1;
constexpr std::uint64_t kStateCleared = 1;
constexpr std::uint64_t kNeedsState = 2;
// Ours, counting from the base: its times are six bytes instead of nine.
constexpr std::uint64_t kOwnClock = 64;

// A block with an event of megabytes is not packed: readers bound what they unpack at 512 KiB.
constexpr std::size_t kPackedMax = 512 << 10;

std::string ClockOf(std::uint64_t id, std::int64_t time_ns) {
  std::string clock;
  AppendProtoInt(clock::kId, id, clock);
  AppendProtoInt(clock::kTime, static_cast<std::uint64_t>(time_ns), clock);
  return clock;
}

}  // namespace

PerfettoWriter::PerfettoWriter(Options options, TakeBytes take)
    : options_(options), take_(std::move(take)) {
  AddBegin();
}

void PerfettoWriter::AddBegin() {
  std::string snapshot;
  AppendProtoBytes(clock::kClocks, ClockOf(clock::kRealtime, options_.base_time_ns), snapshot);
  AppendProtoBytes(clock::kClocks, ClockOf(kOwnClock, 0), snapshot);
  AppendProtoInt(clock::kPrimaryTraceClock, clock::kRealtime, snapshot);
  std::string defaults;
  AppendProtoInt(packet::kTimestampClockId, kOwnClock, defaults);
  std::string begin;
  AppendProtoBytes(packet::kClockSnapshot, snapshot, begin);
  AppendProtoInt(packet::kSequenceId, kSequence, begin);
  AppendProtoInt(packet::kSequenceFlags, kStateCleared, begin);
  AppendProtoBytes(packet::kDefaults, defaults, begin);
  AppendProtoInt(packet::kFirstOnSequence, 1, begin);
  AppendProtoBytes(trace::kPacket, begin, out_);
}

void PerfettoWriter::DescribeProcess(Track track, const Process& process) {
  std::string inner;
  AppendProtoInt(descriptor::kPid, static_cast<std::uint64_t>(process.pid), inner);
  if (process.sort_index.has_value()) {
    // An int32: what is beyond stands with the last.
    const std::int64_t index = std::clamp<std::int64_t>(*process.sort_index, INT32_MIN, INT32_MAX);
    AppendProtoInt(descriptor::kSortIndex, static_cast<std::uint64_t>(index), inner);
  }
  AppendProtoBytes(descriptor::kProcessName, process.name, inner);
  for (const std::string& label : process.labels) {
    AppendProtoBytes(descriptor::kProcessLabels, label, inner);
  }
  std::string bytes;
  AppendProtoInt(descriptor::kUuid, track, bytes);
  AppendProtoBytes(descriptor::kProcess, inner, bytes);
  AddDescriptor(bytes);
}

void PerfettoWriter::DescribeThread(Track track, const Thread& thread) {
  std::string inner;
  AppendProtoInt(descriptor::kPid, static_cast<std::uint64_t>(thread.pid), inner);
  AppendProtoInt(descriptor::kTid, static_cast<std::uint64_t>(thread.tid), inner);
  if (!thread.name.empty()) AppendProtoBytes(descriptor::kThreadName, thread.name, inner);
  std::string bytes;
  AppendProtoInt(descriptor::kUuid, track, bytes);
  AppendProtoBytes(descriptor::kThread, inner, bytes);
  AddDescriptor(bytes);
}

void PerfettoWriter::DescribeRow(Track track, Track parent, std::string_view name) {
  std::string bytes;
  AppendProtoInt(descriptor::kUuid, track, bytes);
  AppendProtoInt(descriptor::kParent, parent, bytes);
  AppendProtoBytes(descriptor::kName, name, bytes);
  AddDescriptor(bytes);
}

void PerfettoWriter::DescribeCounter(Track track, Track parent, std::string_view name,
                                     std::string_view unit) {
  std::string counter;
  if (!unit.empty()) AppendProtoBytes(descriptor::kUnitName, unit, counter);
  std::string bytes;
  AppendProtoInt(descriptor::kUuid, track, bytes);
  AppendProtoInt(descriptor::kParent, parent, bytes);
  AppendProtoBytes(descriptor::kName, name, bytes);
  AppendProtoBytes(descriptor::kCounter, counter, bytes);
  AddDescriptor(bytes);
}

void PerfettoWriter::AddDescriptor(std::string_view descriptor) {
  packet_.clear();
  AppendProtoBytes(packet::kTrackDescriptor, descriptor, packet_);
  AddPacket(packet_);
}

void PerfettoWriter::AppendText(Texts& texts, std::uint32_t interned_field,
                                std::uint32_t number_field, std::uint32_t text_field,
                                std::string_view text, std::string& body) {
  const auto found = texts.numbers.find(absl::string_view(text.data(), text.size()));
  if (found != texts.numbers.end()) return AppendProtoInt(number_field, found->second, body);
  if (texts.numbers.size() >= kTextsMax || texts.byte_count + text.size() > kTextsBytesMax) {
    return AppendProtoBytes(text_field, text, body);
  }
  texts.byte_count += text.size();
  const std::uint64_t number = texts.numbers.size() + 1;
  texts.numbers.emplace(text, number);
  std::string entry;
  AppendProtoInt(interned::kNumber, number, entry);
  AppendProtoBytes(interned::kText, text, entry);
  AppendProtoBytes(interned_field, entry, interned_);
  AppendProtoInt(number_field, number, body);
}

void PerfettoWriter::AppendName(std::string_view name, std::string& body) {
  AppendText(names_, interned::kNames, event::kNameNumber, event::kName, name, body);
}

void PerfettoWriter::AppendCategory(std::string_view category, std::string& body) {
  AppendText(categories_, interned::kCategories, event::kCategoryNumbers, event::kCategories,
             category, body);
}

void PerfettoWriter::BeginArg(std::string_view name, std::string& arg) {
  AppendText(arg_names_, interned::kArgNames, arg::kNameNumber, arg::kName, name, arg);
}

void PerfettoWriter::AppendArg(std::string_view name, std::int64_t value, std::string& body) {
  std::string arg;
  BeginArg(name, arg);
  AppendProtoInt(arg::kInt, static_cast<std::uint64_t>(value), arg);
  AppendProtoBytes(event::kArgs, arg, body);
}

void PerfettoWriter::AppendArg(std::string_view name, double value, std::string& body) {
  std::string arg;
  BeginArg(name, arg);
  AppendProtoDouble(arg::kDouble, value, arg);
  AppendProtoBytes(event::kArgs, arg, body);
}

void PerfettoWriter::AppendArg(std::string_view name, bool value, std::string& body) {
  std::string arg;
  BeginArg(name, arg);
  AppendProtoInt(arg::kBool, value ? 1 : 0, arg);
  AppendProtoBytes(event::kArgs, arg, body);
}

void PerfettoWriter::AppendArg(std::string_view name, std::string_view text, std::string& body) {
  std::string arg;
  BeginArg(name, arg);
  AppendProtoBytes(arg::kString, text, arg);
  AppendProtoBytes(event::kArgs, arg, body);
}

void PerfettoWriter::AppendArgJson(std::string_view name, std::string_view json,
                                   std::string& body) {
  std::string arg;
  BeginArg(name, arg);
  AppendProtoBytes(arg::kJson, json, arg);
  AppendProtoBytes(event::kArgs, arg, body);
}

void PerfettoWriter::AppendFlow(std::uint64_t id, bool is_end, std::string& body) {
  AppendProtoFixed64(is_end ? event::kTerminatingFlows : event::kFlows, id, body);
}

void PerfettoWriter::BeginSlice(Track track, std::int64_t time_ns, std::string_view body) {
  AddEvent(EventType::kBegin, track, time_ns, body);
}

void PerfettoWriter::EndSlice(Track track, std::int64_t time_ns) {
  AddEvent(EventType::kEnd, track, time_ns, {});
}

void PerfettoWriter::AddInstant(Track track, std::int64_t time_ns, std::string_view body) {
  AddEvent(EventType::kInstant, track, time_ns, body);
}

void PerfettoWriter::AddCount(Track track, std::int64_t time_ns, double value) {
  std::string body;
  AppendProtoDouble(event::kDoubleCounter, value, body);
  AddEvent(EventType::kCounter, track, time_ns, body);
}

void PerfettoWriter::AddEvent(EventType type, Track track, std::int64_t time_ns,
                              std::string_view body) {
  event_.clear();
  AppendProtoInt(event::kType, static_cast<std::uint64_t>(type), event_);
  AppendProtoInt(event::kTrack, track, event_);
  event_ += body;
  packet_.clear();
  AppendProtoInt(packet::kTimestamp, static_cast<std::uint64_t>(time_ns - options_.base_time_ns),
                 packet_);
  AppendProtoBytes(packet::kTrackEvent, event_, packet_);
  AddPacket(packet_);
}

void PerfettoWriter::AddPacket(std::string& packet) {
  AppendProtoInt(packet::kSequenceId, kSequence, packet);
  AppendProtoInt(packet::kSequenceFlags, kNeedsState, packet);
  if (!interned_.empty()) {
    AppendProtoBytes(packet::kInternedData, interned_, packet);
    interned_.clear();
  }
  AppendProtoBytes(trace::kPacket, packet, out_);
}

absl::Status PerfettoWriter::HandOver(std::size_t at_least) {
  if (out_.empty() || out_.size() < at_least) return absl::OkStatus();
  if (options_.is_packed && out_.size() < kPackedMax) {
    std::string packed;
    AppendProtoBytes(packet::kCompressedPackets, PackedBlock(out_, options_.pack_level), packed);
    out_.clear();
    AppendProtoBytes(trace::kPacket, packed, out_);
  }
  const absl::Status status = take_(out_);
  out_.clear();
  return status;
}

}  // namespace stepwell
