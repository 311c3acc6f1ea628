// ReportData: what `stepwell report` shows of a trial, as the master answered it. Read with a
// handful of calls whose number does not grow with the trial's length.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/master_client.h"
#include "client/cli/words.h"
#include "stepwell/v1/query.pb.h"

namespace stepwell::cli {

struct ReportData {
  v1::Trial trial;
  std::vector<v1::Writer> writers;
  v1::Completeness completeness;
  // What its writers were asked to record.
  v1::TrialProfiling profiling = Unrestrained();
  v1::SummarizeTimingsResponse timings;
  // One bucket over the whole trial for each series that is no timing; by group, name, labels.
  std::vector<v1::QueryBucketsResponse::BucketSeries> metrics;
};

// `attempt` 0 = the newest.
[[nodiscard]] absl::StatusOr<ReportData> ReadReport(MasterClient& master, const v1::TrialRef& ref,
                                                    int attempt);

}  // namespace stepwell::cli
