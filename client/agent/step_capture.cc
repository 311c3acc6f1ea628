#include "client/agent/step_capture.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/check.h"
#include "client/agent/epoch_log.h"

namespace stepwell::agent {
namespace {

constexpr char kStepName[] = "step";
// Of a name beside its two texts, about.
constexpr std::int64_t kNameOverhead = 160;
// Batches whose spans were given up, twice what one can ask for; of each, about.
constexpr std::size_t kGivenUpMax = 2'000;
constexpr std::int64_t kGivenUpBytes = 64;
constexpr std::size_t kLossesMax = 1'000;

}  // namespace

void StepCapture::EnterThread(const SpanThread& thread) {
  const auto found = std::find(threads_.begin(), threads_.end(), thread);
  thread_ = static_cast<std::uint32_t>(found - threads_.begin());
  if (found == threads_.end()) threads_.push_back(thread);
}

std::uint32_t StepCapture::NumberOf(std::string_view text) {
  const auto next = static_cast<std::uint32_t>(texts_.size());
  const auto [found, is_new] = numbers_.try_emplace(std::string(text), next);
  if (is_new) {
    texts_.emplace_back(text);
    TakeRoom(kNameOverhead + 2 * static_cast<std::int64_t>(text.size()));
  }
  return found->second;
}

bool StepCapture::IsKnown(std::string_view text) const {
  return numbers_.contains(absl::string_view(text.data(), text.size()));
}

StepCapture::~StepCapture() {
  if (options_.room != nullptr) options_.room->Add(-held_bytes_);
}

void StepCapture::TakeRoom(std::int64_t bytes) {
  if (options_.room == nullptr) return;
  held_bytes_ += bytes;
  options_.room->Add(bytes);
}

// Those outside any step may have run while the steps did: that is known once these are over.
bool StepCapture::IsWanted(std::int32_t batch) const {
  return batch < 0 || !steps_ ||
         (batch >= steps_->first_batch && std::int64_t{batch} <= steps_->last_batch());
}

void StepCapture::AddSpan(std::string_view name, std::int64_t begin_ns, std::int64_t end_ns,
                          std::int32_t batch) {
  if (!threads_.empty() && end_ns >= begin_ns && IsWanted(batch)) {
    Hold({.begin_ns = begin_ns, .end_ns = end_ns, .thread = thread_, .batch = batch}, name);
  }
}

void StepCapture::AddInstant(std::string_view name, std::int64_t time_ns, std::int32_t batch) {
  if (!threads_.empty() && IsWanted(batch)) {
    Hold({.begin_ns = time_ns,
          .end_ns = time_ns,
          .thread = thread_,
          .batch = batch,
          .kind = Kind::kInstant},
         name);
  }
}

void StepCapture::AddStep(std::int64_t begin_ns, std::int64_t end_ns, std::int32_t batch) {
  if (threads_.empty() || end_ns < begin_ns) return;
  // A worker counts its steps by itself: they are spans.
  const bool is_own = threads_[thread_].worker < 0;
  if (is_own) newest_batch_ = batch;
  if (!IsWanted(batch)) return;
  const Span span{.begin_ns = begin_ns,
                  .end_ns = end_ns,
                  .thread = thread_,
                  .batch = batch,
                  .kind = is_own ? Kind::kStep : Kind::kSpan};
  if (is_own) {
    HoldStep(span);
  } else {
    Hold(span, kStepName);
  }
}

// Whatever else there is: of those that are wanted there are few, and without them nothing else is of use.
void StepCapture::HoldStep(const Span& span) {
  const std::size_t most = IsRoomFull() ? kStepsMax : options_.steps_max;
  if (own_steps_.size() >= most) {
    // Once the steps are told, only one whose batches come again and again has so many.
    if (steps_) return CountGivenUp(span);
    GiveUpFirst(own_steps_);
  }
  PushTo(own_steps_, span, kStepName);
}

void StepCapture::Hold(const Span& span, std::string_view name) {
  // Its name would have no room, which nothing gives back.
  if (IsRoomFull() && !IsKnown(name)) return CountGivenUp(span);
  const bool is_within = span.batch >= 0;
  std::deque<Span>& spans = is_within ? spans_ : outside_;
  if (spans.size() >= (is_within ? options_.spans_max : options_.outside_max) || IsRoomFull()) {
    // While nobody knows the steps the oldest is the one that is least wanted, and always of what lies outside any.
    if (spans.empty() || (is_within && steps_)) return CountGivenUp(span);
    GiveUpFirst(spans);
  }
  PushTo(spans, span, name);
}

void StepCapture::PushTo(std::deque<Span>& spans, Span span, std::string_view name) {
  span.name = NumberOf(name);
  span.order = next_order_++;
  spans.push_back(span);
  TakeRoom(sizeof(Span));
}

void StepCapture::GiveUpFirst(std::deque<Span>& spans) {
  CountGivenUp(spans.front());
  spans.pop_front();
  TakeRoom(-std::int64_t{sizeof(Span)});
}

void StepCapture::CountGivenUp(const Span& span) {
  if (span.batch < 0) {
    outside_given_up_until_ns_ = std::max(outside_given_up_until_ns_, span.end_ns);
    ++outside_given_up_count_;
    return;
  }
  if (++given_up_[span.batch] == 1) TakeRoom(kGivenUpBytes);
  if (given_up_.size() <= kGivenUpMax) return;
  // Rather counted too many than too few.
  const auto lowest = given_up_.begin();
  std::next(lowest)->second += lowest->second;
  given_up_.erase(lowest);
  TakeRoom(-kGivenUpBytes);
}

void StepCapture::AddValue(const std::string& series, const std::string& unit, std::int64_t time_ns,
                           double value) {
  if (values_.size() >= 2 * options_.spans_max || IsRoomFull()) {
    if (values_.empty() || !IsKnown(series) || !IsKnown(unit)) return CountValueGivenUp(time_ns);
    CountValueGivenUp(values_.front().time_ns);
    values_.pop_front();
    TakeRoom(-std::int64_t{sizeof(Value)});
  }
  values_.push_back({time_ns, value, NumberOf(series), NumberOf(unit), next_order_++});
  TakeRoom(sizeof(Value));
}

void StepCapture::CountValueGivenUp(std::int64_t time_ns) {
  values_given_up_until_ns_ = std::max(values_given_up_until_ns_, time_ns);
  ++values_given_up_count_;
}

void StepCapture::AddLoss(std::int64_t event_count, std::int64_t first_ns, std::int64_t last_ns) {
  if (losses_.size() >= kLossesMax) {
    Loss& last = losses_.back();
    last.event_count += event_count;
    last.first_ns = std::min(last.first_ns, first_ns);
    last.last_ns = std::max(last.last_ns, last_ns);
    return;
  }
  losses_.push_back({event_count, first_ns, last_ns});
}

void StepCapture::SetSteps(const Steps& steps) {
  STEPWELL_CHECK(steps.first_batch >= 0 && steps.step_count > 0);
  steps_ = steps;
  for (std::deque<Span>* spans : {&own_steps_, &spans_}) {
    const std::size_t gone =
        std::erase_if(*spans, [this](const Span& span) { return !IsWanted(span.batch); });
    TakeRoom(-static_cast<std::int64_t>(gone * sizeof(Span)));
  }
}

// From the first of the steps' begin to the last one's end, on whichever threads they ran.
std::optional<StepCapture::Window> StepCapture::FindWindow() const {
  std::optional<Window> window;
  for (const Span& span : own_steps_) {
    if (!window) window = Window{span.begin_ns, span.end_ns};
    window->begin_ns = std::min(window->begin_ns, span.begin_ns);
    window->end_ns = std::max(window->end_ns, span.end_ns);
  }
  return window;
}

bool StepCapture::IsWithin(const Window& window, const Span& span) {
  return span.batch >= 0 || (span.end_ns >= window.begin_ns && span.begin_ns <= window.end_ns);
}

std::int64_t StepCapture::LeftOutCount(const Window& window) const {
  std::int64_t count = 0;
  for (const auto& [batch, given_up] : given_up_) count += IsWanted(batch) ? given_up : 0;
  if (outside_given_up_until_ns_ >= window.begin_ns) count += outside_given_up_count_;
  if (values_given_up_until_ns_ >= window.begin_ns) count += values_given_up_count_;
  for (const Loss& loss : losses_) {
    const bool is_of_window = loss.last_ns >= window.begin_ns && loss.first_ns <= window.end_ns;
    count += is_of_window ? loss.event_count : 0;
  }
  return count;
}

StepCapture::Totals StepCapture::totals() const {
  STEPWELL_CHECK(has_steps());
  Totals totals;
  const std::optional<Window> window = FindWindow();
  if (!window) return totals;
  totals.left_out_count = LeftOutCount(*window);
  totals.span_count = static_cast<std::int64_t>(own_steps_.size() + spans_.size());
  for (const Span& span : outside_) totals.span_count += IsWithin(*window, span) ? 1 : 0;
  std::set<std::int32_t> batches;
  for (const Span& step : own_steps_) batches.insert(step.batch);
  totals.first_batch = *batches.begin();
  totals.last_batch = *batches.rbegin();
  totals.step_count = static_cast<std::int32_t>(batches.size());
  for (const Value& value : values_) {
    if (value.time_ns > window->end_ns || texts_[value.series] != kEpochSeries) continue;
    if (value.value >= 0 && value.value < 2e9)
      totals.epoch = static_cast<std::int64_t>(value.value);
  }
  return totals;
}

void StepCapture::WriteTo(SpanSink& sink) const {
  const std::optional<Window> window = FindWindow();
  if (!window) return;
  // Among the spans, as they came: one of them is the epoch, of what follows.
  auto value = values_.begin();
  const auto add_values_before = [&](std::uint64_t order) {
    for (; value != values_.end() && value->order < order; ++value) {
      if (value->time_ns < window->begin_ns || value->time_ns > window->end_ns) continue;
      sink.AddValue(texts_[value->series], texts_[value->unit], value->time_ns, value->value);
    }
  };
  std::vector<const Span*> in_order;
  for (const std::deque<Span>* spans : {&own_steps_, &spans_, &outside_}) {
    for (const Span& span : *spans) {
      if (IsWithin(*window, span)) in_order.push_back(&span);
    }
  }
  std::sort(in_order.begin(), in_order.end(),
            [](const Span* a, const Span* b) { return a->order < b->order; });
  for (const Span* span : in_order) {
    add_values_before(span->order);
    sink.EnterThread(threads_[span->thread]);
    switch (span->kind) {
      case Kind::kSpan:
        sink.AddSpan(texts_[span->name], span->begin_ns, span->end_ns, span->batch);
        break;
      case Kind::kStep:
        sink.AddStep(span->begin_ns, span->end_ns, span->batch);
        break;
      case Kind::kInstant:
        sink.AddInstant(texts_[span->name], span->begin_ns, span->batch);
        break;
    }
  }
  add_values_before(next_order_);
}

}  // namespace stepwell::agent
