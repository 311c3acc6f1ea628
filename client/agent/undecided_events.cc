#include "client/agent/undecided_events.h"

#include <utility>

namespace stepwell::agent {

void UndecidedEvents::Add(Event event) {
  held_bytes_ += BytesOf(event);
  events_.push_back(std::move(event));
}

void UndecidedEvents::AddSpan(const SpanThread& thread, std::string_view name,
                              std::int64_t begin_ns, std::int64_t end_ns, std::int32_t batch) {
  Add({.kind = Kind::kSpan,
       .thread = thread,
       .name = std::string(name),
       .unit = {},
       .begin_ns = begin_ns,
       .end_ns = end_ns,
       .batch = batch,
       .value = 0});
}

void UndecidedEvents::AddInstant(const SpanThread& thread, std::string_view name,
                                 std::int64_t time_ns, std::int32_t batch) {
  Add({.kind = Kind::kInstant,
       .thread = thread,
       .name = std::string(name),
       .unit = {},
       .begin_ns = time_ns,
       .end_ns = time_ns,
       .batch = batch,
       .value = 0});
}

void UndecidedEvents::AddValue(const std::string& series, const std::string& unit,
                               std::int64_t time_ns, double value) {
  Add({.kind = Kind::kValue,
       .thread = {},
       .name = series,
       .unit = unit,
       .begin_ns = time_ns,
       .end_ns = time_ns,
       .batch = -1,
       .value = value});
}

std::size_t UndecidedEvents::BytesOf(const Event& event) {
  return sizeof(Event) + event.name.size() + event.unit.size();
}

void UndecidedEvents::TellOne(const Event& event, SpanSink& sink) {
  if (event.kind == Kind::kValue) {
    return sink.AddValue(event.name, event.unit, event.begin_ns, event.value);
  }
  sink.EnterThread(event.thread);
  if (event.kind == Kind::kSpan) {
    sink.AddSpan(event.name, event.begin_ns, event.end_ns, event.batch);
  } else {
    sink.AddInstant(event.name, event.begin_ns, event.batch);
  }
}

void UndecidedEvents::Tell(const std::function<SpanSink&(std::int64_t begin_ns)>& sink_of) {
  held_bytes_ = 0;
  for (const Event& event : std::exchange(events_, {})) TellOne(event, sink_of(event.begin_ns));
}

void UndecidedEvents::TellBefore(std::int64_t begin_ns, SpanSink& sink) {
  std::erase_if(events_, [&](const Event& event) {
    if (event.begin_ns >= begin_ns) return false;
    TellOne(event, sink);
    held_bytes_ -= BytesOf(event);
    return true;
  });
}

}  // namespace stepwell::agent
