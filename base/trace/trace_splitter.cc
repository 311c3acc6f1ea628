#include "base/trace/trace_splitter.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace stepwell {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

absl::Status NoTrace(const char* what, char c) {
  return absl::InvalidArgumentError(
      absl::StrCat("this is no Chrome trace: ", what, " expected, found ",
                   c >= ' ' && c <= '~' ? absl::StrCat("'", std::string(1, c), "'")
                                        : absl::StrCat("byte ", static_cast<unsigned char>(c))));
}

// Which bytes a scan inside a value has to look at.
struct Marks {
  bool is_mark[256] = {};
  constexpr explicit Marks(std::string_view marks) {
    for (const char c : marks) is_mark[static_cast<unsigned char>(c)] = true;
  }
  std::size_t Next(std::string_view bytes, std::size_t at) const {
    while (at < bytes.size() && !is_mark[static_cast<unsigned char>(bytes[at])]) ++at;
    return at;
  }
};
constexpr Marks kInString("\"\\");
constexpr Marks kInValue("\"{}[]");
constexpr Marks kAfterScalar(",]} \t\r\n");

}  // namespace

TraceSplitter::TraceSplitter(Takers takers) : takers_(std::move(takers)) {}

absl::Status TraceSplitter::Feed(std::string_view bytes) {
  form_.byte_count += static_cast<std::int64_t>(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    if (is_inside_) {
      STEPWELL_ASSIGN_OR_RETURN(at, TakeInside(bytes, at));
      continue;
    }
    const char c = bytes[at];
    if (IsSpace(c)) {
      ++at;
      continue;
    }
    const bool was_inside = is_inside_;
    STEPWELL_RETURN_IF_ERROR(TakeOutside(c, bytes, at));
    // What just opened is scanned from its own first byte.
    if (is_inside_ == was_inside) ++at;
  }
  return absl::OkStatus();
}

void TraceSplitter::Open(char c) {
  is_inside_ = true;
  is_in_string_ = is_escaped_ = is_over_ = false;
  is_scalar_ = c != '{' && c != '[' && c != '"';
  depth_ = 0;
  held_.clear();
}

absl::Status TraceSplitter::TakeOutside(char c, std::string_view bytes, std::size_t at) {
  switch (state_) {
    case State::kBegin:
      // A byte order mark is no part of JSON, but some write it.
      if (c == '\xef' || c == '\xbb' || c == '\xbf') return absl::OkStatus();
      if (c == '[') {
        form_.is_array = has_events_ = true;
        state_ = State::kEvents;
        return absl::OkStatus();
      }
      if (c != '{') return NoTrace("'{' or '['", c);
      state_ = State::kName;
      return absl::OkStatus();
    case State::kName:
      if (c == ',') return absl::OkStatus();
      if (c == '}') {
        state_ = State::kEnd;
        return absl::OkStatus();
      }
      if (c != '"') return NoTrace("a member's name", c);
      Open(c);
      is_name_ = true;
      is_event_ = false;
      return absl::OkStatus();
    case State::kColon:
      if (c != ':') return NoTrace("':'", c);
      state_ = State::kValue;
      return absl::OkStatus();
    case State::kValue:
      if (name_ == "traceEvents" && c == '[') {
        has_events_ = true;
        state_ = State::kEvents;
        return absl::OkStatus();
      }
      if (c == ',' || c == '}' || c == ']') return NoTrace("a value", c);
      Open(c);
      is_name_ = is_event_ = false;
      return absl::OkStatus();
    case State::kAfterValue:
      if (c != ',' && c != '}') return NoTrace("',' or '}'", c);
      state_ = c == ',' ? State::kName : State::kEnd;
      return absl::OkStatus();
    case State::kEvents:
      if (c == ',') return absl::OkStatus();
      if (c == ']') {
        state_ = form_.is_array ? State::kEnd : State::kAfterValue;
        return absl::OkStatus();
      }
      if (c == '}' || c == ':') return NoTrace("an event", c);
      Open(c);
      is_name_ = false;
      is_event_ = c == '{';
      return absl::OkStatus();
    case State::kEnd:
      break;
  }
  return NoTrace("the end", bytes[at]);
}

absl::StatusOr<std::size_t> TraceSplitter::TakeInside(std::string_view bytes, std::size_t at) {
  const std::size_t begin = at;
  bool is_whole = false;
  if (is_scalar_) {
    at = kAfterScalar.Next(bytes, at);
    is_whole = at < bytes.size();
  } else {
    while (at < bytes.size() && !is_whole) {
      if (is_escaped_) {
        is_escaped_ = false;
        ++at;
        continue;
      }
      at = (is_in_string_ ? kInString : kInValue).Next(bytes, at);
      if (at == bytes.size()) break;
      const char c = bytes[at++];
      if (c == '\\') {
        is_escaped_ = true;
      } else if (c == '"') {
        is_in_string_ = !is_in_string_;
        is_whole = depth_ == 0 && !is_in_string_;
      } else if (c == '{' || c == '[') {
        is_over_ = ++depth_ > kDepthMax || is_over_;
      } else {
        is_whole = --depth_ <= 0;
      }
    }
  }
  const std::string_view part = bytes.substr(begin, at - begin);
  is_over_ = is_over_ || held_.size() + part.size() > kEventBytesMax;
  if (is_whole) {
    STEPWELL_RETURN_IF_ERROR(Close(part));
  } else if (is_over_) {
    held_.clear();
  } else {
    held_.append(part);
  }
  return at;
}

absl::Status TraceSplitter::Close(std::string_view tail) {
  is_inside_ = false;
  // Nearly every event lies within one piece, and is not copied.
  if (!held_.empty()) held_.append(tail);
  const std::string_view whole = held_.empty() ? tail : std::string_view(held_);
  if (is_name_) {
    state_ = State::kColon;
    name_ = is_over_ ? "" : std::string(whole.substr(1, whole.size() - 2));
    return absl::OkStatus();
  }
  const bool is_of_events = state_ == State::kEvents;
  if (!is_of_events) state_ = State::kAfterValue;
  if (is_over_ || (is_of_events && !is_event_)) {
    ++form_.passed_over;
    return absl::OkStatus();
  }
  if (!is_of_events) return takers_.member ? takers_.member(name_, whole) : absl::OkStatus();
  ++form_.event_count;
  return takers_.event ? takers_.event(whole) : absl::OkStatus();
}

absl::StatusOr<TraceForm> TraceSplitter::Finish() {
  if (form_.byte_count == 0) return absl::InvalidArgumentError("this is empty, no Chrome trace");
  if (!has_events_) {
    return absl::InvalidArgumentError("this is no Chrome trace: it has no list named traceEvents");
  }
  form_.is_cut = state_ != State::kEnd;
  return form_;
}

}  // namespace stepwell
