// TraceSplitter: cuts a Chrome trace into its events, from pieces of any size and in bounded memory. It looks
// for where things end and at nothing else: whoever takes an event judges it.
//
// Both forms are read: an array of events, and an object whose "traceEvents" is one. A file that ends too
// early (a process that died) gives what it has: the last, cut event is left out.
//
//   TraceSplitter splitter({.event = ..., .member = ...});
//   STEPWELL_RETURN_IF_ERROR(splitter.Feed(piece));  // ...
//   STEPWELL_ASSIGN_OR_RETURN(const TraceForm form, splitter.Finish());
//
// Confined to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stepwell {

struct TraceForm {
  bool is_array = false;
  bool is_cut = false;  // it ends before its last bracket
  std::int64_t event_count = 0;
  std::int64_t passed_over = 0;  // things beside events, and events over the bounds
  // Of Perfetto's form: flows that join nothing, and those past what is held of them.
  std::int64_t flows_left_out = 0;
  std::int64_t byte_count = 0;
  // What the times of one in Perfetto's form count by, by Perfetto's names; empty: JSON does not tell.
  std::string clock = {};
};

class TraceSplitter {
 public:
  // Larger ones are passed over and counted.
  static constexpr std::size_t kEventBytesMax = 4 << 20;
  // Brackets within brackets.
  static constexpr int kDepthMax = 64;

  struct Takers {
    // An event's bytes, from its { to its }; valid during the call. A status ends the reading.
    std::function<absl::Status(std::string_view json)> event;
    // A member of the object beside its events: its name, without quotes and as it is written, and its value.
    std::function<absl::Status(std::string_view name, std::string_view json)> member;
  };

  explicit TraceSplitter(Takers takers);

  // kInvalidArgument: this is no trace; nothing more is read then.
  [[nodiscard]] absl::Status Feed(std::string_view bytes);
  // Once, after the last Feed. kInvalidArgument: there was nothing, or no list of events.
  [[nodiscard]] absl::StatusOr<TraceForm> Finish();

 private:
  enum class State { kBegin, kName, kColon, kValue, kAfterValue, kEvents, kEnd };

  [[nodiscard]] absl::Status TakeOutside(char c, std::string_view bytes, std::size_t at);
  // Within a value that is taken or passed over: the bytes of `bytes` from `at` that belong to it.
  [[nodiscard]] absl::StatusOr<std::size_t> TakeInside(std::string_view bytes, std::size_t at);
  void Open(char c);
  [[nodiscard]] absl::Status Close(std::string_view tail);

  const Takers takers_;
  State state_ = State::kBegin;
  TraceForm form_;
  bool has_events_ = false;

  // What is open: an event, a member's value or name, something beside events.
  bool is_inside_ = false;
  bool is_event_ = false;
  bool is_name_ = false;
  bool is_scalar_ = false;
  bool is_in_string_ = false;
  bool is_escaped_ = false;
  bool is_over_ = false;  // a bound: passed over
  int depth_ = 0;
  std::string held_;  // of earlier pieces
  std::string name_;
};

}  // namespace stepwell
