// HostileTrace: any bytes as a trace in Perfetto's form, and what holds of each whatever they are: it is read within
// its bounds, however it is cut into pieces, each event that comes of it is JSON, and it is merged as HostileMerge says.
// Header only; pure.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/trace/perfetto_splitter.h"
#include "base/trace/trace_event.h"
#include "base/trace/trace_origin.h"
#include "tests/fuzz/hostile_merge.h"

namespace stepwell::testing {

struct ReadTraceBytes {
  bool is_ok = true;
  std::vector<std::string> events;
};

inline ReadTraceBytes ReadInPieces(std::string_view bytes, std::size_t piece) {
  ReadTraceBytes read;
  PerfettoSplitter splitter(SliceForm::kWhole, [&](std::string_view json) {
    read.events.emplace_back(json);
    return absl::OkStatus();
  });
  while (read.is_ok && !bytes.empty()) {
    const std::string_view next = bytes.substr(0, std::min(piece, bytes.size()));
    bytes.remove_prefix(next.size());
    read.is_ok = splitter.Feed(next).ok();
  }
  const auto form = splitter.Finish();
  STEPWELL_CHECK(form.ok() && form->event_count <= static_cast<std::int64_t>(read.events.size()));
  return read;
}

inline void ReadHostileTrace(std::string_view bytes) {
  const ReadTraceBytes whole = ReadInPieces(bytes, bytes.size() + 1);
  TraceEventParser parser;
  TraceScan scan;
  for (const std::string& json : whole.events) {
    STEPWELL_CHECK(parser.Parse(json));
    scan.TakeEvent(json);
  }
  (void)scan.Finish();
  // What comes before the byte that is none of a trace may come in more or in fewer events.
  const ReadTraceBytes cut = ReadInPieces(bytes, 1 + bytes.size() / 7);
  if (whole.is_ok && cut.is_ok) STEPWELL_CHECK(whole.events == cut.events);
  MergeHostileTraces({bytes, bytes});
}

}  // namespace stepwell::testing
