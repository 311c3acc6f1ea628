// StepCapture: what a training process recorded of the steps that a master asked for, held in memory until all of them are
// over. It stands beside SpanTrace, behind RecordedSamples. Pure; confined to the agent's loop.
//
//   StepCapture capture({});
//   samples.SetCapture(&capture, anchor);      // from here on all is held
//   capture.SetSteps({.first_batch = 120, .step_count = 5});
//   if (capture.is_over()) capture.WriteTo(trace);
//
// Invariant: of each step that ended after it was made, all spans are held or counted as left out, until the steps are known;
// from then on those of the steps, and what lies outside any step while they ran. So ranks that were asked at different
// moments, and go at different speeds, have the same steps in common: the first that none of them had begun to forget. It
// survives a rank that is far ahead when the steps are told (it has held them), and one that is far behind (it waits).
// The steps themselves are held apart: however many spans there are, none of the kStepsMax that are wanted is refused for them, and what
// lies outside any step has a bound of its own. Losses of the rings while the steps ran count as left out, too.
// Memory: the bounds of Options, 40 bytes each, twice spans_max values of 32, each name once; of all captures CaptureRoom's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "client/agent/capture_room.h"
#include "client/agent/span_sink.h"

namespace stepwell::agent {

class StepCapture final : public SpanSink {
 public:
  // That one may ask for, and that are held of a process whatever room there is.
  static constexpr std::int32_t kStepsMax = 1000;

  struct Options {
    std::size_t spans_max = 200'000;    // within steps
    std::size_t outside_max = 50'000;   // outside any
    std::size_t steps_max = 100'000;    // the process's own
    std::shared_ptr<CaptureRoom> room;  // shared with others; null: as much as these say
  };
  // REQUIRES: first_batch >= 0, step_count > 0.
  struct Steps {
    std::int32_t first_batch = 0;
    std::int32_t step_count = 0;

    std::int64_t last_batch() const { return std::int64_t{first_batch} + step_count - 1; }
  };
  struct Totals {
    std::int32_t first_batch = -1;  // -1: no step
    std::int32_t last_batch = -1;
    std::int32_t step_count = 0;
    std::int64_t span_count = 0;  // steps among them
    // Spans of the steps that found no room, those outside any step where some of them ran meanwhile, and events that
    // the rings lost while the steps ran.
    std::int64_t left_out_count = 0;
    std::int64_t epoch = -1;  // as recorded last; -1: not meanwhile
  };

  explicit StepCapture(Options options) : options_(std::move(options)) {}
  ~StepCapture() override;
  StepCapture(const StepCapture&) = delete;
  StepCapture& operator=(const StepCapture&) = delete;

  void EnterThread(const SpanThread& thread) override;
  void AddSpan(std::string_view name, std::int64_t begin_ns, std::int64_t end_ns,
               std::int32_t batch) override;
  void AddStep(std::int64_t begin_ns, std::int64_t end_ns, std::int32_t batch) override;
  void AddInstant(std::string_view name, std::int64_t time_ns, std::int32_t batch) override;
  void AddValue(const std::string& series, const std::string& unit, std::int64_t time_ns,
                double value) override;
  void AddLoss(std::int64_t event_count, std::int64_t first_ns, std::int64_t last_ns) override;

  // Once. What is held of others goes.
  void SetSteps(const Steps& steps);
  bool has_steps() const { return steps_.has_value(); }
  // A step of the last batch ended, or of a later one: what ended before it on other threads comes with the next
  // drain of their rings.
  bool is_over() const { return steps_ && newest_batch_ >= steps_->last_batch(); }
  // Of the last step of the process itself that ended since it was made; -1: none.
  std::int32_t newest_batch() const { return newest_batch_; }

  // REQUIRES: has_steps().
  Totals totals() const;
  // In the order in which they came: the spans of the steps, those outside any step that ran while the steps did, and
  // the values of that time.
  void WriteTo(SpanSink& sink) const;

 private:
  enum class Kind : std::uint8_t { kSpan, kStep, kInstant };
  struct Span {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    std::uint64_t order = 0;  // in which it came
    std::uint32_t thread = 0;
    std::uint32_t name = 0;
    std::int32_t batch = -1;
    Kind kind = Kind::kSpan;
  };
  struct Value {
    std::int64_t time_ns = 0;
    double value = 0;
    std::uint32_t series = 0;
    std::uint32_t unit = 0;
    std::uint64_t order = 0;  // as a span's
  };
  struct Loss {
    std::int64_t event_count = 0;
    std::int64_t first_ns = 0;
    std::int64_t last_ns = 0;
  };
  struct Window {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
  };

  bool IsWanted(std::int32_t batch) const;
  void Hold(const Span& span, std::string_view name);
  void HoldStep(const Span& span);
  void PushTo(std::deque<Span>& spans, Span span, std::string_view name);
  void GiveUpFirst(std::deque<Span>& spans);
  void CountGivenUp(const Span& span);
  void CountValueGivenUp(std::int64_t time_ns);
  bool IsRoomFull() const { return options_.room != nullptr && options_.room->is_full(); }
  void TakeRoom(std::int64_t bytes);
  std::uint32_t NumberOf(std::string_view text);
  bool IsKnown(std::string_view text) const;
  std::optional<Window> FindWindow() const;
  std::int64_t LeftOutCount(const Window& window) const;
  static bool IsWithin(const Window& window, const Span& span);

  const Options options_;
  std::optional<Steps> steps_;
  std::deque<Span> own_steps_;
  std::deque<Span> spans_;    // within steps
  std::deque<Span> outside_;  // within none
  std::uint64_t next_order_ = 0;
  std::deque<Value> values_;
  std::vector<SpanThread> threads_;
  std::uint32_t thread_ = 0;
  std::vector<std::string> texts_;
  absl::flat_hash_map<std::string, std::uint32_t> numbers_;
  std::int32_t newest_batch_ = -1;
  // What found no room or made it, by batch; a few of the lowest are together.
  std::map<std::int32_t, std::int64_t> given_up_;
  // Of what lies outside any step: the last end, and how many.
  std::int64_t outside_given_up_until_ns_ = INT64_MIN;
  std::int64_t outside_given_up_count_ = 0;
  std::int64_t values_given_up_until_ns_ = INT64_MIN;
  std::int64_t values_given_up_count_ = 0;
  std::deque<Loss> losses_;
  std::int64_t held_bytes_ = 0;  // of the room
};

}  // namespace stepwell::agent
