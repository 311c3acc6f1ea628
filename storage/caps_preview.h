// CapsPreview: what a sweep would take from one trial, reckoned from its lines of the ledger. A core;
// PgCapsStore reads the lines. In the order of a sweep: ages, samples per series, bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "storage/cap_removals.h"
#include "storage/caps.h"
#include "storage/keep_classes.h"

namespace stepwell {

// A line of the ledger.
struct PreviewLine {
  std::int32_t received_day = 0;
  std::int16_t keep_class = 0;
  std::string metric_group = {};
  std::int64_t sample_count = 0;
  std::int64_t byte_count = 0;
  std::int64_t rollup_byte_count = 0;
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;
};

// Samples that series of one group hold beyond their bound.
struct SampleExcess {
  std::int64_t sample_count = 0;
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;
};

struct PreviewTrial {
  TrialId trial_id{};
  std::int64_t project_id = 0;
  // By received_day.
  std::vector<PreviewLine> lines = {};
  // Of groups that have some.
  std::map<std::string, SampleExcess> excess = {};
};

struct PreviewRules {
  // Of PlanPreview: every place that decides over the trial.
  std::vector<PlacedCaps> placed = {};
  std::vector<KeepClass> classes = {};
  // Ages are those that the caps say now, not those of the rows' classes.
  bool for_merged_rows = false;
  std::int64_t now_us = 0;
  // Only this group; empty = all, and then the bound of the trial's bytes, too.
  std::string only_group = {};
};

void PlanPreview(PreviewTrial trial, const PreviewRules& rules, CapRemovals& removals);

}  // namespace stepwell
