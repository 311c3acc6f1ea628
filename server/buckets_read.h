// BucketsRead: what one QueryBuckets folds: rollups, rows and heads of its series into the buckets of
// their groups, written as soon as a group's last series is done. Confined to one thread.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "server/batch_attempts.h"
#include "server/bucket_fold.h"
#include "server/bucket_plan.h"
#include "server/head_samples.h"
#include "server/row_sequence.h"
#include "server/series_group.h"
#include "server/trial_view.h"
#include "stepwell/v1/query.pb.h"
#include "storage/read_store.h"

namespace stepwell {

class BucketsRead final : public RowVisitor {
 public:
  // All outlive this. `attempts` tells which samples count on the batch axis; null on that of time.
  BucketsRead(const BucketPlan& plan, const std::vector<SeriesGroup>& groups,
              const HeadSamples& heads, const BatchAttempts* attempts, const TrialView& view);

  // Before the OnSeriesEnd of its series. REQUIRES: the plan's buckets are of whole steps.
  void OnRollup(const StoredRollup& rollup);
  absl::Status OnRow(const StoredRow& row) override;
  absl::Status OnSeriesEnd(SeriesNo series_no) override;

  // In the order of groups; those without samples are left out.
  void MoveTo(v1::QueryBucketsResponse& response);

 private:
  BucketFold& FoldOf(SeriesNo series_no);
  void AddRun(const SampleRun& run, BucketFold& fold) const;
  void Write(std::size_t group);

  const BucketPlan plan_;
  const std::vector<SeriesGroup>& groups_;
  const HeadSamples& heads_;
  const BatchAttempts* attempts_;
  const TrialView& view_;
  std::map<SeriesNo, std::size_t> group_of_;
  std::vector<std::size_t> left_;  // series of each group that are still to come
  std::map<std::size_t, BucketFold> folds_;
  std::map<std::size_t, v1::QueryBucketsResponse::BucketSeries> written_;
};

}  // namespace stepwell
