// PerfettoWriter: a trace in Perfetto's protobuf, packet by packet. A file is a row of packets, each whole in itself:
// it grows by appending alone, and one that was cut reads up to its last whole packet.
//
//   PerfettoWriter writer({.base_time_ns = 0}, take);
//   writer.DescribeProcess(track, {.pid = 1, .name = "rank 0", .labels = {}});
//   std::string body;
//   writer.AppendName("forward", body);
//   writer.AppendArg("batch", std::int64_t{7}, body);
//   writer.BeginSlice(track, time_ns, body);
//   writer.EndSlice(track, end_ns);
//   STEPWELL_RETURN_IF_ERROR(writer.HandOver(0));
//
// Packets may come in any order of time: who reads sorts them, those of one time as they were written. Slices of one
// track nest. Texts that repeat are written once (interned) and named by number. Confined to one thread. Memory: those
// texts, at most kTextsMax and kTextsBytesMax of each kind (others are written where they are said), and a block.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/trace/trace_bytes.h"

namespace stepwell {

class PerfettoWriter {
 public:
  // Of a process, a thread, a counter or a row of either; above 0, distinct within a file.
  using Track = std::uint64_t;

  static constexpr std::size_t kTextsMax = 100'000;
  static constexpr std::size_t kTextsBytesMax = 8 << 20;
  // Packets are packed together in blocks of about so many bytes; a reader takes blocks below 512 KiB.
  static constexpr std::size_t kBlockBytes = 64 << 10;

  struct Options {
    // What its times count from, since 1970. Times before it cannot be said.
    std::int64_t base_time_ns = 0;
    // Blocks are packed (deflate); not where the whole file is.
    bool is_packed = true;
    // Of zlib's. Blocks of few slices that are kept: 3 packs them a fifth smaller than 1, and takes half the time of 6.
    int pack_level = 3;
  };
  struct Process {
    std::int64_t pid = 0;
    std::string_view name = {};
    std::vector<std::string> labels = {};  // beside its name
    // Where it stands among others, the lowest first. Nothing: as viewers like.
    std::optional<std::int64_t> sort_index = {};
  };
  struct Thread {
    std::int64_t pid = 0;
    std::int64_t tid = 0;
    std::string_view name = {};
  };

  PerfettoWriter(Options options, TakeBytes take);

  // A track may be described again, with a name that was not known before.
  void DescribeProcess(Track track, const Process& process);
  void DescribeThread(Track track, const Thread& thread);
  void DescribeRow(Track track, Track parent, std::string_view name);
  void DescribeCounter(Track track, Track parent, std::string_view name, std::string_view unit);

  // What an event says beside its track and time: appended to its body.
  void AppendName(std::string_view name, std::string& body);
  void AppendCategory(std::string_view category, std::string& body);
  void AppendArg(std::string_view name, std::int64_t value, std::string& body);
  void AppendArg(std::string_view name, double value, std::string& body);
  void AppendArg(std::string_view name, bool value, std::string& body);
  void AppendArg(std::string_view name, std::string_view text, std::string& body);
  // An object or a list.
  void AppendArgJson(std::string_view name, std::string_view json, std::string& body);
  // Events with one id are joined by arrows, in the order of their times.
  static void AppendFlow(std::uint64_t id, bool is_end, std::string& body);

  // `time_ns` since 1970, not before the base.
  void BeginSlice(Track track, std::int64_t time_ns, std::string_view body);
  void EndSlice(Track track, std::int64_t time_ns);
  void AddInstant(Track track, std::int64_t time_ns, std::string_view body);
  void AddCount(Track track, std::int64_t time_ns, double value);

  // Hands on what was written where it is at least so many bytes, before they are packed: what a crash may lose.
  [[nodiscard]] absl::Status HandOver(std::size_t at_least);
  // Of what was written and not handed on.
  std::size_t held_bytes() const { return out_.size() + interned_.size(); }

 private:
  struct Texts {
    absl::flat_hash_map<std::string, std::uint64_t> numbers;
    std::size_t byte_count = 0;
  };
  enum class EventType { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };

  // Writes either the number of `text` or, where there are too many, the text itself.
  void AppendText(Texts& texts, std::uint32_t interned_field, std::uint32_t number_field,
                  std::uint32_t text_field, std::string_view text, std::string& body);
  void BeginArg(std::string_view name, std::string& arg);
  void AddEvent(EventType type, Track track, std::int64_t time_ns, std::string_view body);
  void AddDescriptor(std::string_view descriptor);
  void AddPacket(std::string& packet);
  void AddBegin();

  const Options options_;
  const TakeBytes take_;
  Texts names_;
  Texts categories_;
  Texts arg_names_;
  std::string interned_;  // said with the next packet
  std::string out_;
  std::string packet_;
  std::string event_;
};

}  // namespace stepwell
