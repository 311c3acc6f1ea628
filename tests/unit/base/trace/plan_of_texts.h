// What a merge makes of traces that a test has as texts.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/trace/merge_plan.h"
#include "base/trace/trace_reading.h"

namespace stepwell::testing {

// `text` outlives it.
inline TraceSource SourceOf(const std::string& text) {
  return [&text](const TakeBytes& take) { return take(text); };
}

// Each by what it says of itself, named by its index.
inline MergePlan PlanOf(const std::vector<std::string>& texts) {
  std::vector<MergeInput> inputs;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    MergeInput& input = inputs.emplace_back();
    input.label = absl::StrCat(i);
    const auto scanned = ScanTrace(SourceOf(texts[i]));
    EXPECT_TRUE(scanned.ok()) << scanned.status();
    input.origin = scanned->origin;
  }
  const auto plan = PlanMerge(inputs, MergeAlignment::kClock);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *plan;
}

}  // namespace stepwell::testing
