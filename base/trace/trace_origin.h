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

#include "base/trace/master_clock.h"
#include "base/trace/trace_event.h"

namespace stepwell {

struct TraceOrigin {
  // A profiler of the framework (Kineto), not the training loop.
  bool is_native = false;
  // What all its times are counted from: nanoseconds since 1970 (Kineto's baseTimeNanoseconds), or 0.
  std::int64_t base_time_ns = 0;
  // The first event's with a time, base included; not always the earliest.
  std::optional<std::int64_t> first_time_ns;
  std::optional<std::int32_t> rank;
  // Composer's synchronisation: its own clock as all ranks left a barrier, and how far that may be off.
  std::optional<std::int64_t> sync_time_ns;
  std::int64_t sync_error_ns = 0;
  // By the agent's exchanges with its master.
  MasterClock master_clock;
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

  TraceEventParser parser_;
  TraceOrigin origin_;
  std::optional<std::int64_t> first_ns_;  // without the base
};

}  // namespace stepwell
