// TraceOrigin: what a trace says of where and when it was taken, gathered in a first pass over it. A merge needs it
// before it writes the first event: names of processes, and the clock.
//
//   TraceScan scan;
//   TraceSplitter splitter({.event = [&](auto json) { scan.TakeEvent(json); return absl::OkStatus(); },
//                           .member = [&](auto name, auto json) { scan.TakeMember(name, json); ... }});
//
// Confined to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/trace/interval_set.h"
#include "base/trace/master_clock.h"
#include "base/trace/trace_event.h"

namespace stepwell {

// Metadata of what an agent recorded: the name of its machine as `name`, its kernel's boot id as `boot_id`, and whose spans it
// are, as `writer`: each where it is known.
inline constexpr char kMachineEvent[] = "machine";

// Metadata likewise: the machine's wall clock was `ahead_ns` ahead of the trace's times, for it was set since these began.
inline constexpr char kWallClockEvent[] = "wall_clock";

struct TraceOrigin {
  // Further apart clocks are believed to show one time where something ties them, and events of one trace not at all.
  static constexpr std::int64_t kApartMaxNs = std::int64_t{30} * 24 * 3600 * 1'000'000'000;

  // A profiler of the framework (Kineto), not the training loop.
  bool is_native = false;
  // What all its times are counted from: nanoseconds since 1970 (Kineto's baseTimeNanoseconds), or 0.
  std::int64_t base_time_ns = 0;
  // The first event's with a time, base included; not always the earliest.
  std::optional<std::int64_t> first_time_ns;
  // From its earliest event to the latest end of one, base included, rounded outwards to microseconds: of those within
  // kApartMaxNs of the first. Where there is a first one it lies within.
  Interval window;
  std::optional<std::int32_t> rank;
  // Composer's synchronisation: its own clock as all ranks left a barrier, and how far that may be off.
  std::optional<std::int64_t> sync_time_ns;
  std::int64_t sync_error_ns = 0;
  // By the agent's exchanges with its master.
  MasterClock master_clock;
  // From the least to the most that the wall clock was ahead of its times, none included.
  Interval wall_ahead = {};
  // Whose clock it is, where its agent wrote that; cut.
  std::string machine;
  // The kernel of that clock, likewise: containers and namespaces have none of their own.
  std::string boot_id;
  // Names of processes, cut, by KeyOfText of their pid as it was written; at most kProcessesMax.
  std::map<std::string, std::string, std::less<>> process_names;
};

class TraceScan {
 public:
  static constexpr std::size_t kProcessesMax = 10'000;

  void TakeEvent(std::string_view json);
  void TakeMember(std::string_view name, std::string_view json);
  // After the last event: the base may come behind them.
  TraceOrigin Finish() const;

 private:
  void TakeMetadata(const TraceEvent& event);
  void Widen(std::int64_t begin_us, std::int64_t length_us);

  TraceEventParser parser_;
  TraceOrigin origin_;
  std::optional<std::int64_t> first_ns_;  // without the base
  // Likewise, and of those of reasonable distance to the first.
  std::int64_t begin_us_ = 0;
  std::int64_t end_us_ = 0;
  bool is_ours_ = false;
};

}  // namespace stepwell
