// PerfettoMerging: traces of Chrome's form merged into Perfetto's, and read back. Header only.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/trace/perfetto_merger.h"
#include "base/trace/trace_reading.h"
#include "tests/unit/base/trace/perfetto_reading.h"
#include "tests/unit/base/trace/plan_of_texts.h"

namespace stepwell::testing {

struct Merged {
  std::string bytes;
  PerfettoTrace trace;
  std::int64_t written = 0;
  std::int64_t left_out = 0;
};

inline Merged Merge(const std::vector<std::string>& texts, PerfettoMerger::Options options = {}) {
  Merged merged;
  const MergePlan plan = PlanOf(texts);
  PerfettoMerger merger(plan, options, [&](std::string_view bytes) {
    merged.bytes += bytes;
    return absl::OkStatus();
  });
  EXPECT_TRUE(merger.Begin().ok());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_TRUE(merger.BeginInput(i).ok());
    const auto form = ReadTrace(
        SourceOf(texts[i]),
        {.event = [&](std::string_view json) { return merger.TakeEvent(json); }, .member = {}});
    EXPECT_TRUE(form.ok()) << form.status();
  }
  EXPECT_TRUE(merger.End().ok());
  merged.trace = PerfettoReading::Read(merged.bytes);
  merged.written = merger.written_count();
  merged.left_out = merger.left_out_count();
  return merged;
}

// One rank's, whose events are `events`.
inline std::string Trace(int rank, const std::string& events) {
  return absl::StrCat("{\"distributedInfo\":{\"rank\":", rank, "},\"traceEvents\":[", events, "]}");
}

}  // namespace stepwell::testing
