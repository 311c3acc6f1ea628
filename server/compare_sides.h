// CompareSides: what each trial has of one series, and how far it is from what the first has. A core;
// pure.
//
//   SetStatistics(buckets, /*with_buckets=*/true, *series.mutable_sides(1));
//   SetDifferences(HaveUnitOfFirst(group), series);
#pragma once

#include <vector>

#include "server/bucket_fold.h"
#include "stepwell/v1/compare.pb.h"

namespace stepwell {

// Over all buckets, and each by itself where `with_buckets`.
void SetStatistics(const std::vector<Bucket>& buckets, bool with_buckets,
                   v1::CompareTrialsResponse::Side& side);

// Of each side to the first, where it has the first's unit: no difference of another says anything, and it
// stays 0. REQUIRES: it has sides, `have_unit_of_first` as many, and their statistics are set.
void SetDifferences(const std::vector<bool>& have_unit_of_first,
                    v1::CompareTrialsResponse::ComparedSeries& series);

}  // namespace stepwell
