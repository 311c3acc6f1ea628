// What a trace in Perfetto's form says, read with protobuf's own reader and the published numbers of fields, as a
// viewer reads it: packets sorted by time, those of one time as they were written.
#pragma once

#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stepwell::testing {

using google::protobuf::UnknownField;

// Fields by number; to be copied.
class Fields {
 public:
  Fields() = default;
  explicit Fields(const std::string& bytes) { EXPECT_TRUE(set_->ParseFromString(bytes)); }
  int field_count() const { return set_->field_count(); }
  const UnknownField& field(int index) const { return set_->field(index); }

 private:
  std::shared_ptr<google::protobuf::UnknownFieldSet> set_ =
      std::make_shared<google::protobuf::UnknownFieldSet>();
};

struct PerfettoEvent {
  std::uint64_t track = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = -1;  // -1: it has none
  std::size_t depth = 0;
  bool is_instant = false;
  std::string name;
  std::string category;
  std::map<std::string, std::string> args;
  std::vector<std::uint64_t> flows, ended_flows;
};
struct PerfettoTrack {
  std::string name, unit, label;
  std::int64_t pid = 0;
  std::int64_t tid = 0;
  std::uint64_t parent = 0;
  std::int64_t sort_index = 0;
  bool is_process = false, is_thread = false, is_counter = false;
};
struct PerfettoTrace {
  std::map<std::uint64_t, PerfettoTrack> tracks;
  std::vector<PerfettoEvent> events;  // in order of time
  std::map<std::uint64_t, std::vector<std::pair<std::int64_t, double>>> counts;
  std::int64_t orphan_ends = 0;
  bool is_whole = true;  // it ends with a packet

  std::vector<PerfettoEvent> Named(const std::string& name) const {
    std::vector<PerfettoEvent> found;
    std::copy_if(events.begin(), events.end(), std::back_inserter(found),
                 [&](const PerfettoEvent& each) { return each.name == name; });
    return found;
  }
  // "rank 0 · training": of the process that a track is of.
  std::string ProcessOf(std::uint64_t track) const {
    const PerfettoTrack& at = tracks.at(track);
    if (at.is_process) return at.name;
    if (at.parent != 0) return ProcessOf(at.parent);
    for (const auto& [uuid, each] : tracks) {
      if (each.is_process && each.pid == at.pid) return each.name;
    }
    return "";
  }
};

class PerfettoReading {
 public:
  static PerfettoTrace Read(const std::string& bytes) {
    PerfettoReading reading;
    reading.TakePackets(bytes);
    reading.Finish();
    return std::move(reading.trace_);
  }

 private:
  struct Point {
    std::int64_t time_ns = 0;
    Fields event;
    std::uint64_t track = 0;
  };

  static const UnknownField* Of(const Fields& set, int number) {
    for (int i = 0; i < set.field_count(); ++i) {
      if (set.field(i).number() == number) return &set.field(i);
    }
    return nullptr;
  }
  static std::uint64_t Int(const Fields& set, int number) {
    const UnknownField* field = Of(set, number);
    return field == nullptr ? 0 : field->varint();
  }
  static std::string Text(const Fields& set, int number) {
    const UnknownField* field = Of(set, number);
    return field == nullptr ? "" : field->length_delimited();
  }
  static Fields Message(const std::string& bytes) { return Fields(bytes); }
  static std::string Unpacked(const std::string& packed) {
    std::string bytes(4 << 20, '\0');
    uLongf size = bytes.size();
    EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(bytes.data()), &size,
                         reinterpret_cast<const Bytef*>(packed.data()), packed.size()),
              Z_OK);
    bytes.resize(size);
    return bytes;
  }

  // Packet by packet, as far as they are whole.
  void TakePackets(const std::string& bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
      ASSERT_EQ(bytes[at], '\x0a');
      std::size_t size = 0, next = at + 1;
      int shift = 0;
      bool is_size_whole = false;
      while (next < bytes.size()) {
        const auto byte = static_cast<unsigned char>(bytes[next++]);
        size |= static_cast<std::size_t>(byte & 0x7f) << shift;
        shift += 7;
        is_size_whole = (byte & 0x80) == 0;
        if (is_size_whole) break;
      }
      if (!is_size_whole || next + size > bytes.size()) {
        trace_.is_whole = false;
        return;
      }
      TakePacket(Message(bytes.substr(next, size)));
      at = next + size;
    }
  }

  void TakePacket(const Fields& packet) {
    if (const UnknownField* packed = Of(packet, 50); packed != nullptr) {
      EXPECT_LT(packed->length_delimited().size(), 512u << 10);
      return TakePackets(Unpacked(packed->length_delimited()));
    }
    EXPECT_EQ(Int(packet, 10), 1u) << "its sequence";
    if (const UnknownField* snapshot = Of(packet, 6); snapshot != nullptr) {
      const Fields clocks = Message(snapshot->length_delimited());
      EXPECT_EQ(Int(clocks, 2), 1u);
      base_ns_ = static_cast<std::int64_t>(Int(Message(clocks.field(0).length_delimited()), 2));
      EXPECT_EQ(Int(packet, 13), 1u);
      EXPECT_EQ(Int(Message(Text(packet, 59)), 58), 64u);
      return;
    }
    EXPECT_EQ(Int(packet, 13), 2u);
    TakeInterned(Message(Text(packet, 12)));
    if (Of(packet, 60) != nullptr) TakeTrack(Message(Text(packet, 60)));
    if (Of(packet, 11) != nullptr) {
      const Fields event = Message(Text(packet, 11));
      points_.push_back(
          {base_ns_ + static_cast<std::int64_t>(Int(packet, 8)), event, Int(event, 11)});
    }
  }

  void TakeInterned(const Fields& interned) {
    for (int i = 0; i < interned.field_count(); ++i) {
      const Fields entry = Message(interned.field(i).length_delimited());
      const bool is_new =
          texts_[interned.field(i).number()].emplace(Int(entry, 1), Text(entry, 2)).second;
      EXPECT_TRUE(is_new) << Text(entry, 2);
    }
  }

  void TakeTrack(const Fields& descriptor) {
    PerfettoTrack& track = trace_.tracks[Int(descriptor, 1)];
    if (!Text(descriptor, 2).empty()) track.name = Text(descriptor, 2);
    track.parent = Int(descriptor, 5);
    EXPECT_TRUE(track.parent == 0 || trace_.tracks.contains(track.parent));
    if (Of(descriptor, 3) != nullptr) {
      const Fields process = Message(Text(descriptor, 3));
      track.is_process = true;
      track.pid = static_cast<std::int64_t>(Int(process, 1));
      track.name = Text(process, 6);
      track.label = Text(process, 8);
      track.sort_index = static_cast<std::int64_t>(Int(process, 3));
    }
    if (Of(descriptor, 4) != nullptr) {
      const Fields thread = Message(Text(descriptor, 4));
      track.is_thread = true;
      track.pid = static_cast<std::int64_t>(Int(thread, 1));
      track.tid = static_cast<std::int64_t>(Int(thread, 2));
      if (!Text(thread, 5).empty()) track.name = Text(thread, 5);
    }
    if (Of(descriptor, 8) != nullptr) {
      track.is_counter = true;
      track.unit = Text(Message(Text(descriptor, 8)), 6);
    }
  }

  std::string Named(const Fields& set, int number_field, int text_field, int kind) {
    if (Of(set, number_field) == nullptr) return Text(set, text_field);
    const auto found = texts_[kind].find(Int(set, number_field));
    EXPECT_NE(found, texts_[kind].end());
    return found == texts_[kind].end() ? "" : found->second;
  }

  PerfettoEvent EventOf(const Point& point) {
    PerfettoEvent event;
    event.track = point.track;
    event.begin_ns = point.time_ns;
    event.name = Named(point.event, 10, 23, 2);
    event.category = Named(point.event, 3, 22, 1);
    for (int i = 0; i < point.event.field_count(); ++i) {
      const UnknownField& field = point.event.field(i);
      if (field.number() == 47) event.flows.push_back(field.fixed64());
      if (field.number() == 48) event.ended_flows.push_back(field.fixed64());
      if (field.number() != 4) continue;
      const Fields arg = Message(field.length_delimited());
      std::string& value = event.args[Named(arg, 1, 10, 3)];
      value = Text(arg, 6) + Text(arg, 9);
      if (Of(arg, 2) != nullptr) value = Int(arg, 2) != 0 ? "true" : "false";
      if (Of(arg, 4) != nullptr) value = std::to_string(static_cast<std::int64_t>(Int(arg, 4)));
      if (const UnknownField* number = Of(arg, 5); number != nullptr) {
        value = std::to_string(std::bit_cast<double>(number->fixed64()));
      }
    }
    return event;
  }

  void Finish() {
    std::stable_sort(points_.begin(), points_.end(),
                     [](const Point& a, const Point& b) { return a.time_ns < b.time_ns; });
    std::map<std::uint64_t, std::vector<std::size_t>> open;
    for (const Point& point : points_) {
      EXPECT_TRUE(trace_.tracks.contains(point.track)) << point.track;
      std::vector<std::size_t>& stack = open[point.track];
      switch (Int(point.event, 9)) {
        case 1:
          trace_.events.push_back(EventOf(point));
          trace_.events.back().depth = stack.size();
          stack.push_back(trace_.events.size() - 1);
          break;
        case 2:
          if (stack.empty()) {
            ++trace_.orphan_ends;
            break;
          }
          trace_.events[stack.back()].end_ns = point.time_ns;
          stack.pop_back();
          break;
        case 3:
          trace_.events.push_back(EventOf(point));
          trace_.events.back().is_instant = true;
          break;
        case 4:
          EXPECT_TRUE(trace_.tracks[point.track].is_counter);
          trace_.counts[point.track].emplace_back(
              point.time_ns, std::bit_cast<double>(Of(point.event, 44)->fixed64()));
          break;
        default:
          ADD_FAILURE() << "an event of no type";
      }
    }
  }

  PerfettoTrace trace_;
  std::vector<Point> points_;
  std::map<int, std::map<std::uint64_t, std::string>> texts_;
  std::int64_t base_ns_ = 0;
};

}  // namespace stepwell::testing
