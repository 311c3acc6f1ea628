// PerfettoSplitter: reads Perfetto's protobuf as events of Chrome's form, so that all that reads traces reads those
// that Stepwell recorded, too. Slices become X, told with their ends (those without one B, at last), instants i,
// counters C, names of processes and threads M, flows s, t and f behind all else; arguments stay where they are texts or
// numbers. A file that ends too early gives its whole packets.
//
// Read are track events with their interned names, their tracks, clock snapshots and packed packets (deflate); what other
// sources of Perfetto write (the scheduler, heaps) is passed over and counted.
//
//   PerfettoSplitter splitter(SliceForm::kWhole, [&](std::string_view json) { return merger.TakeEvent(json); });
//   STEPWELL_RETURN_IF_ERROR(splitter.Feed(piece));  // ...
//   STEPWELL_ASSIGN_OR_RETURN(const TraceForm form, splitter.Finish());
//
// Confined to one thread. Memory: a packet, names and tracks, at most kKeptMax of each and kKeptBytesMax of all (what
// comes then has no name, and counts as passed over), slices that are open and flows, by their own bounds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/trace/held_flows.h"
#include "base/trace/open_slices.h"
#include "base/trace/trace_splitter.h"

namespace stepwell {

// What slices are told as.
enum class SliceForm {
  kWhole,       // X, at their ends
  kBeginsEnds,  // B and E, in the order of the file: for who asks when it begins
};

class PerfettoSplitter {
 public:
  using TakeEvent = std::function<absl::Status(std::string_view json)>;

  // Larger packets are no viewer's.
  static constexpr std::size_t kPacketBytesMax = 16 << 20;
  static constexpr std::size_t kKeptMax = 1'000'000;
  static constexpr std::size_t kKeptBytesMax = 64 << 20;

  PerfettoSplitter(SliceForm slice_form, TakeEvent take)
      : slice_form_(slice_form), take_(std::move(take)) {}

  // kInvalidArgument: these are no packets.
  [[nodiscard]] absl::Status Feed(std::string_view bytes);
  // Once, after the last Feed.
  [[nodiscard]] absl::StatusOr<TraceForm> Finish();

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
    std::size_t texts_bytes = 0;
    std::map<std::uint64_t, std::int64_t> clock_offsets;  // to be added for time since 1970
    std::uint64_t clock = 0;
    std::uint64_t track = 0;
  };

  [[nodiscard]] absl::Status TakePackets(std::string_view& bytes, int depth);
  [[nodiscard]] absl::Status TakePacket(std::string_view packet, int depth);
  [[nodiscard]] absl::Status TakeTrack(std::string_view descriptor);
  [[nodiscard]] absl::Status TellSortIndex(std::uint64_t track, std::int64_t index);
  void TakeClocks(std::string_view snapshot, Sequence& sequence);
  void TakeInterned(std::string_view interned, Sequence& sequence);
  bool Keeps(std::size_t bytes);
  [[nodiscard]] absl::Status TakeTrackEvent(std::string_view event, std::int64_t time_ns,
                                            Sequence& sequence);
  std::string ArgsOf(std::string_view event, const Sequence& sequence) const;
  void AppendPlace(std::uint64_t track, std::string& json) const;
  void HoldFlows(std::string_view event, std::uint64_t track, std::int64_t time_ns);
  [[nodiscard]] absl::Status TellFlows();
  [[nodiscard]] absl::Status Tell(const std::string& json);

  const SliceForm slice_form_;
  const TakeEvent take_;
  OpenSlices slices_;
  HeldFlows flows_;
  std::string held_;
  bool has_realtime_ = false;
  std::map<std::uint64_t, Track> tracks_;
  std::map<std::uint64_t, Sequence> sequences_;
  std::size_t kept_bytes_ = 0;  // of sequences, their texts and tracks
  TraceForm form_;
};

}  // namespace stepwell
