// PerfettoSplitter: reads Perfetto's protobuf as events of Chrome's form, so that all that reads traces reads those
// that Stepwell recorded, too. Slices become B and E, instants i, counters C, names of processes and threads M;
// arguments stay where they are texts or numbers. A file that ends too early gives its whole packets.
//
// Read are track events with their interned names, their tracks, clock snapshots and packed packets (deflate); what other
// sources of Perfetto write (the scheduler, heaps) is passed over and counted. Flows are left out.
//
//   PerfettoSplitter splitter([&](std::string_view json) { return merger.TakeEvent(json); });
//   STEPWELL_RETURN_IF_ERROR(splitter.Feed(piece));  // ...
//   const TraceForm form = splitter.Finish();
//
// Confined to one thread. Memory: a packet, and names and tracks, at most kKeptMax of each.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/trace/trace_splitter.h"

namespace stepwell {

class PerfettoSplitter {
 public:
  using TakeEvent = std::function<absl::Status(std::string_view json)>;

  // Larger packets are no viewer's.
  static constexpr std::size_t kPacketBytesMax = 16 << 20;
  static constexpr std::size_t kKeptMax = 1'000'000;

  explicit PerfettoSplitter(TakeEvent take) : take_(std::move(take)) {}

  // kInvalidArgument: these are no packets.
  [[nodiscard]] absl::Status Feed(std::string_view bytes);
  TraceForm Finish();

  // How many bytes tell whether a file is one, and whether it is: JSON may begin with a line feed, too.
  static constexpr std::size_t kBeginBytes = 3;
  static bool IsPerfetto(std::string_view begin);

 private:
  struct Track {
    std::uint64_t parent = 0;
    std::int64_t pid = 0;
    std::int64_t tid = 0;
    bool is_process = false;
    bool is_counter = false;
    std::string name = {};
  };
  // What packets of one sequence say by number.
  struct Sequence {
    std::map<std::uint32_t, absl::flat_hash_map<std::uint64_t, std::string>> texts;
    std::map<std::uint64_t, std::int64_t> clock_offsets;  // to be added for time since 1970
    std::uint64_t clock = 0;
    std::uint64_t track = 0;
  };

  [[nodiscard]] absl::Status TakePackets(std::string_view& bytes, int depth);
  [[nodiscard]] absl::Status TakePacket(std::string_view packet, int depth);
  [[nodiscard]] absl::Status TakeTrack(std::string_view descriptor);
  void TakeClocks(std::string_view snapshot, Sequence& sequence);
  void TakeInterned(std::string_view interned, Sequence& sequence);
  [[nodiscard]] absl::Status TakeTrackEvent(std::string_view event, std::int64_t time_ns,
                                            Sequence& sequence);
  std::string ArgsOf(std::string_view event, const Sequence& sequence) const;
  void AppendPlace(std::uint64_t track, std::string& json) const;
  [[nodiscard]] absl::Status Tell(const std::string& json);

  const TakeEvent take_;
  std::string held_;
  std::map<std::uint64_t, Track> tracks_;
  std::map<std::uint64_t, Sequence> sequences_;
  TraceForm form_;
};

}  // namespace stepwell
