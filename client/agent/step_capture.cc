#include "client/agent/step_capture.h"

#include <algorithm>
#include <set>

#include "base/check.h"

namespace stepwell::agent {
namespace {

constexpr char kStepName[] = "step";
constexpr char kEpochSeries[] = "epoch";

}  // namespace

void StepCapture::EnterThread(const SpanThread& thread) {
  const auto found = std::find(threads_.begin(), threads_.end(), thread);
  thread_ = static_cast<std::uint32_t>(found - threads_.begin());
  if (found == threads_.end()) threads_.push_back(thread);
}

std::uint32_t StepCapture::NumberOf(std::string_view text) {
  const auto next = static_cast<std::uint32_t>(texts_.size());
  const auto [found, is_new] = numbers_.try_emplace(std::string(text), next);
  if (is_new) texts_.emplace_back(text);
  return found->second;
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

void StepCapture::AddStep(std::int64_t begin_ns, std::int64_t end_ns, std::int32_t batch) {
  if (threads_.empty() || end_ns < begin_ns) return;
  // A worker counts its steps by itself: they are spans.
  const bool is_own = threads_[thread_].worker < 0;
  if (is_own) newest_batch_ = batch;
  if (!IsWanted(batch)) return;
  Hold({.begin_ns = begin_ns,
        .end_ns = end_ns,
        .thread = thread_,
        .batch = batch,
        .is_step = is_own},
       kStepName);
}

void StepCapture::Hold(Span span, std::string_view name) {
  if (spans_.size() >= options_.spans_max) {
    // While nobody knows the steps, or the first of them has not come, the oldest is the one that is least wanted.
    if (steps_ && spans_.front().batch >= 0) {
      ++left_out_count_;
      return;
    }
    given_up_until_ns_ = std::max(given_up_until_ns_, spans_.front().end_ns);
    ++given_up_count_;
    spans_.pop_front();
  }
  span.name = NumberOf(name);
  spans_.push_back(span);
}

void StepCapture::AddValue(const std::string& series, const std::string& unit, std::int64_t time_ns,
                           double value) {
  if (values_.size() >= 2 * options_.spans_max) values_.pop_front();
  values_.push_back({time_ns, value, NumberOf(series), NumberOf(unit)});
}

void StepCapture::SetSteps(const Steps& steps) {
  STEPWELL_CHECK(steps.first_batch >= 0 && steps.step_count > 0);
  steps_ = steps;
  std::erase_if(spans_, [this](const Span& span) { return !IsWanted(span.batch); });
}

// From the first of the steps' begin to the last one's end, on whichever threads they ran.
std::optional<StepCapture::Window> StepCapture::FindWindow() const {
  std::optional<Window> window;
  for (const Span& span : spans_) {
    if (!span.is_step) continue;
    if (!window) window = Window{span.begin_ns, span.end_ns};
    window->begin_ns = std::min(window->begin_ns, span.begin_ns);
    window->end_ns = std::max(window->end_ns, span.end_ns);
  }
  return window;
}

bool StepCapture::IsWithin(const Window& window, const Span& span) {
  return span.batch >= 0 || (span.end_ns >= window.begin_ns && span.begin_ns <= window.end_ns);
}

StepCapture::Totals StepCapture::totals() const {
  STEPWELL_CHECK(has_steps());
  Totals totals;
  totals.left_out_count = left_out_count_;
  const std::optional<Window> window = FindWindow();
  if (!window) return totals;
  if (given_up_until_ns_ >= window->begin_ns) totals.left_out_count += given_up_count_;
  std::set<std::int32_t> batches;
  for (const Span& span : spans_) {
    if (!IsWithin(*window, span)) continue;
    ++totals.span_count;
    if (!span.is_step) continue;
    batches.insert(span.batch);
    if (totals.first_batch < 0) totals.first_batch = span.batch;
    totals.first_batch = std::min(totals.first_batch, span.batch);
    totals.last_batch = std::max(totals.last_batch, span.batch);
  }
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
  // First, for one of them is the epoch.
  for (const Value& value : values_) {
    if (value.time_ns < window->begin_ns || value.time_ns > window->end_ns) continue;
    sink.AddValue(texts_[value.series], texts_[value.unit], value.time_ns, value.value);
  }
  for (const Span& span : spans_) {
    if (!IsWithin(*window, span)) continue;
    sink.EnterThread(threads_[span.thread]);
    if (span.is_step) {
      sink.AddStep(span.begin_ns, span.end_ns, span.batch);
    } else {
      sink.AddSpan(texts_[span.name], span.begin_ns, span.end_ns, span.batch);
    }
  }
}

}  // namespace stepwell::agent
