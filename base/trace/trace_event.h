// TraceEvent: one event of a Chrome trace, as slices of its own bytes: what nobody has to change is copied as it
// was written, so no number loses a digit on its way through a merge.
//
//   TraceEventParser parser;
//   if (parser.Parse(json)) Use(parser.event());
//
// A parser is confined to one thread; its event is valid until the next Parse, as long as `json` is.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"

namespace stepwell {

// Every slice is JSON as it was written, a string with its quotes; empty: the event has none.
struct TraceEvent {
  char phase = 0;  // X B E i I C M b n e s t f ...
  std::string_view name;
  std::string_view category;
  std::string_view time;      // microseconds
  std::string_view duration;  // microseconds
  std::string_view pid;
  std::string_view tid;
  std::string_view args;
  std::string_view id;       // of flows and of asynchronous events
  std::string_view bind_id;  // of flows, in their second version
  // All others, by their names as they were written, without quotes.
  std::vector<std::pair<std::string_view, std::string_view>> others;
};

class TraceEventParser {
 public:
  TraceEventParser();
  ~TraceEventParser();
  TraceEventParser(const TraceEventParser&) = delete;
  TraceEventParser& operator=(const TraceEventParser&) = delete;

  // False: it is no JSON object in UTF-8, or has no phase of one letter. Of members that are there twice the
  // last counts. REQUIRES: no more brackets within brackets than TraceSplitter lets through.
  bool Parse(std::string_view json);
  const TraceEvent& event() const { return event_; }

 private:
  struct Impl;

  const std::unique_ptr<Impl> impl_;
  TraceEvent event_;
};

// What a JSON string says; nothing if it is none.
std::optional<std::string> TextOfJson(std::string_view json);
// The same of a slice of an event, in `scratch` only where something is escaped; anything else as it is written.
std::string_view TextOf(std::string_view json, std::string& scratch);
// The value of a member of a JSON object, as it was written; empty: it has none, or is no object. The last of
// several.
std::string_view MemberOfJson(std::string_view json, std::string_view name);
// Each member of a JSON object: its name without quotes and its value, both as they were written. False: it is none.
bool ForEachJsonMember(std::string_view json,
                       absl::FunctionRef<void(std::string_view name, std::string_view value)> take);
// `text` in quotes, as JSON has it; what is no UTF-8 becomes U+FFFD.
void AppendJsonText(std::string_view text, std::string& json);

}  // namespace stepwell
