// UndecidedEvents: what other threads did, and what was recorded, between two cycles of a trace while nobody knows yet whether
// the next has begun: a step's events come once it is over. Held in order, with their threads, until that is known. Stands
// within RankTrace. A value of the agent's loop. Memory: kMax events and their names.
//
//   if (!undecided.is_full()) undecided.AddSpan(thread, "load", begin_ns, end_ns, -1);
//   undecided.Tell([&](std::int64_t begin_ns) -> SpanSink& { return begin_ns < left_ns ? before : next; });
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "client/agent/span_sink.h"

namespace stepwell::agent {

class UndecidedEvents {
 public:
  static constexpr std::size_t kMax = 10'000;

  // REQUIRES of each: !is_full().
  void AddSpan(const SpanThread& thread, std::string_view name, std::int64_t begin_ns,
               std::int64_t end_ns, std::int32_t batch);
  void AddInstant(const SpanThread& thread, std::string_view name, std::int64_t time_ns,
                  std::int32_t batch);
  // Of no thread.
  void AddValue(const std::string& series, const std::string& unit, std::int64_t time_ns,
                double value);

  // All of them, each to the one that `sink_of` names for its begin; none is left. The sinks' threads are others then.
  void Tell(const std::function<SpanSink&(std::int64_t begin_ns)>& sink_of);
  // Those that began before; the others stay.
  void TellBefore(std::int64_t begin_ns, SpanSink& sink);
  bool is_full() const { return events_.size() >= kMax; }
  // About.
  std::size_t held_bytes() const { return held_bytes_; }

 private:
  enum class Kind { kSpan, kInstant, kValue };
  struct Event {
    Kind kind = Kind::kSpan;
    SpanThread thread = {};
    std::string name;  // of a value, its series
    std::string unit;
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    std::int32_t batch = -1;
    double value = 0;
  };
  void Add(Event event);
  static void TellOne(const Event& event, SpanSink& sink);
  static std::size_t BytesOf(const Event& event);

  std::vector<Event> events_;
  std::size_t held_bytes_ = 0;
};

}  // namespace stepwell::agent
