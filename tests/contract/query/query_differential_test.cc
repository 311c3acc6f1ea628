// QueryReads over real folds, merges and heads: whatever lies where, every read answers what a
// plain list of all committed samples says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/contract/query/random_trial.h"
#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

using testing::TestSeed;

// Answers against the plain list, over random histories of commits, folds and merges.
class QueryReadsDifferential : public RandomTrialTest {
 protected:
  void CheckSamples(std::mt19937_64& random) {
    v1::ReadSamplesRequest request;
    *request.mutable_trial() = Ref();
    request.set_page_samples(1 + static_cast<std::int32_t>(random() % 200));
    std::int64_t start = INT64_MIN;
    std::int64_t end = INT64_MAX;
    if (random() % 2 == 0) {
      start = RandomStart(random);
      end = start + RandomSpan(random);
      request.mutable_time_range()->set_start_time_us(start);
      request.mutable_time_range()->set_end_time_us(end);
    }
    // Broken off now and then, and continued behind the last message.
    std::vector<Point> got;
    for (;;) {
      const auto messages = ReadMessages(request, 1 + random() % 6);
      ASSERT_FALSE(messages.empty());
      for (const auto& message : messages) Append(message, got);
      if (messages.back().has_completeness()) break;
      request.set_cursor(messages.back().cursor());
    }
    std::vector<Point> expected = InOrder();
    std::erase_if(expected, [&](const Point& point) {
      return point.time_us < start || point.time_us >= end;
    });
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].series_no, expected[i].series_no) << i;
      ASSERT_EQ(got[i].time_us, expected[i].time_us) << i;
      ASSERT_EQ(got[i].batch, expected[i].batch) << i;
      ASSERT_EQ(got[i].attempt, expected[i].attempt) << i;
      ASSERT_EQ(std::bit_cast<std::uint64_t>(got[i].value),
                std::bit_cast<std::uint64_t>(expected[i].value))
          << i;
    }
  }

  void CheckBuckets(std::mt19937_64& random) {
    v1::QueryBucketsRequest request;
    *request.mutable_trial() = Ref();
    const bool by_batch = random() % 2 == 0;
    if (by_batch) {
      request.mutable_batch_range()->set_start_batch(static_cast<std::int32_t>(random() % 50));
      if (random() % 2 == 0) request.mutable_batch_range()->set_end_batch(120);
    } else if (random() % 2 == 0) {
      auto& range = *request.mutable_time_range();
      range.set_start_time_us(RandomStart(random));
      if (random() % 2 == 0) range.set_end_time_us(range.start_time_us() + RandomSpan(random));
    }
    const auto kept = static_cast<int>(random() % 4);  // of the two labels that there are
    const bool across = random() % 2 == 0;
    if (across) {
      request.set_aggregation(v1::AGGREGATION_ACROSS);
      if ((kept & 1) != 0) request.add_group_by("agent");
      if ((kept & 2) != 0) request.add_group_by("rank");
    }
    if (!by_batch) request.set_resolution(static_cast<v1::Resolution>(random() % 4));
    request.set_max_buckets(1 + static_cast<std::int32_t>(random() % 40));
    const auto response = reads_.QueryBuckets(request, Call());
    ASSERT_TRUE(response.ok()) << response.status();
    const std::int64_t step_us = response->resolution() == v1::RESOLUTION_60_SECONDS   ? 60'000'000
                                 : response->resolution() == v1::RESOLUTION_10_SECONDS ? 10'000'000
                                                                                       : 1;
    if (step_us > 1) ++rollup_answers_;
    // Where the range holds nothing yet, there are no buckets to make of anything.
    if (request.resolution() != v1::RESOLUTION_UNSPECIFIED && response->series_size() > 0) {
      ASSERT_EQ(response->resolution(), request.resolution());
    }
    if (by_batch) {
      std::int64_t end = 0;  // behind the trial's last batch
      for (const auto& [attempt, span] : spans_[external_id_]) {
        end = std::max<std::int64_t>(end, span.second + 1LL);
      }
      if (request.batch_range().end_batch() != 0) {
        end = std::min<std::int64_t>(end, request.batch_range().end_batch());
      }
      ASSERT_EQ(response->end(), std::max<std::int64_t>(response->start(), end));
    } else if (response->series_size() > 0) {
      ASSERT_GT(response->end(), response->start());
    }
    ASSERT_EQ(response->start() % step_us, 0);
    ASSERT_EQ(response->width() % step_us, 0);
    // Whole steps: the last one may reach over the end.
    const std::int64_t end_us =
        (request.time_range().end_time_us() + step_us - 1) / step_us * step_us;
    struct Cell {
      double min = INFINITY, max = -INFINITY, sum = 0;
      std::uint64_t count = 0, nan_count = 0;
      std::int64_t last_time_us = INT64_MIN;
      // Of series that are answered as one, several may have a sample at that time.
      std::set<double> lasts = {};
    };
    std::map<std::pair<std::int32_t, std::int64_t>, Cell> cells;
    for (const Point& point : InOrder()) {
      const std::int64_t place = by_batch ? point.batch : point.time_us;
      if (by_batch && (point.batch < 0 || !Counts(point))) continue;
      if (place < response->start()) continue;
      if (!by_batch && end_us != 0 && place >= end_us) continue;
      if (by_batch && request.batch_range().end_batch() != 0 &&
          place >= request.batch_range().end_batch()) {
        continue;
      }
      const std::int32_t answer_no = across ? FirstOfGroup(point.series_no, kept) : point.series_no;
      Cell& cell = cells[{answer_no, (place - response->start()) / response->width()}];
      if (std::isnan(point.value)) {
        ++cell.nan_count;
        continue;
      }
      cell.min = std::min(cell.min, point.value);
      cell.max = std::max(cell.max, point.value);
      cell.sum += point.value;
      ++cell.count;
      if (point.time_us < cell.last_time_us) continue;
      if (point.time_us > cell.last_time_us || !across) cell.lasts.clear();
      cell.last_time_us = point.time_us;
      cell.lasts.insert(point.value);
    }
    std::size_t seen = 0;
    for (const auto& series : response->series()) {
      for (int i = 0; i < series.indexes_size(); ++i) {
        SCOPED_TRACE(absl::StrCat("series ", series.series_nos(0), " bucket ", series.indexes(i)));
        const auto found = cells.find({series.series_nos(0), series.indexes(i)});
        ASSERT_NE(found, cells.end());
        ++seen;
        const Cell& cell = found->second;
        ASSERT_EQ(series.counts(i), cell.count);
        ASSERT_EQ(series.nan_counts_size() > 0 ? series.nan_counts(i) : 0, cell.nan_count);
        if (cell.count == 0) continue;
        ASSERT_EQ(series.mins(i), cell.min);
        ASSERT_EQ(series.maxs(i), cell.max);
        const double mean = cell.sum / static_cast<double>(cell.count);
        if (std::isfinite(mean)) {
          ASSERT_NEAR(series.means(i), mean, 1e-9);
        } else {
          ASSERT_TRUE(series.means(i) == mean || (std::isnan(series.means(i)) && std::isnan(mean)))
              << series.means(i) << " for " << mean;
          ++infinite_buckets_;
        }
        ASSERT_TRUE(cell.lasts.contains(series.lasts(i))) << series.lasts(i);
      }
    }
    ASSERT_EQ(seen, cells.size());
  }

  // Among the samples of the day, or somewhere in the months before.
  static std::int64_t RandomStart(std::mt19937_64& random) {
    const std::int64_t start = kStartUs + static_cast<std::int64_t>(random() % 700'000'000);
    return random() % 2 == 0 ? start
                             : start - static_cast<std::int64_t>(random() % kLateDaysMax) * kDayUs;
  }
  static std::int64_t RandomSpan(std::mt19937_64& random) {
    return random() % 2 == 0 ? 1 + static_cast<std::int64_t>(random() % 900'000'000)
                             : static_cast<std::int64_t>(1 + random() % kLateDaysMax) * kDayUs;
  }
  // The lowest number of the series that `series_no` is answered with. `kept`: 1 agent, 2 rank.
  std::int32_t FirstOfGroup(std::int32_t series_no, int kept) const {
    if (series_no == trial_.loss_of_other && (kept & 2) == 0) return trial_.loss;
    if (series_no == trial_.cpu_of_other && (kept & 1) == 0) return trial_.cpu;
    return series_no;
  }

  void CheckLatest() {
    v1::LatestValuesRequest request;
    *request.mutable_trial() = Ref();
    const auto response = reads_.LatestValues(request, Call());
    ASSERT_TRUE(response.ok()) << response.status();
    std::map<std::int32_t, Point> newest;
    std::set<std::int32_t> shared;  // series with several samples at their newest time
    for (const Point& point : InOrder()) {
      const auto [held, is_first] = newest.try_emplace(point.series_no, point);
      if (is_first) continue;
      point.time_us == held->second.time_us ? shared.insert(point.series_no).second
                                            : shared.erase(point.series_no) > 0;
      held->second = point;
    }
    ASSERT_EQ(static_cast<std::size_t>(response->values_size()), newest.size());
    for (const auto& value : response->values()) {
      const Point& expected = newest.at(value.series().series_no());
      SCOPED_TRACE(absl::StrCat("newest of series ", expected.series_no));
      ASSERT_EQ(value.time_us(), expected.time_us);
      if (shared.contains(expected.series_no)) continue;
      ++newest_compared_;
      ASSERT_EQ(value.batch(), expected.batch);
      ASSERT_EQ(std::bit_cast<std::uint64_t>(value.value()),
                std::bit_cast<std::uint64_t>(expected.value));
    }
    ASSERT_EQ(response->completeness().samples_held(), static_cast<std::int64_t>(points_.size()));
    ASSERT_FALSE(response->completeness().contiguous()) << "no writer is being heard of";
  }

  // Which attempt is told where none is asked for; nothing: none has batches of the range.
  std::optional<int> NewestWith(const v1::BatchRange& range) {
    std::optional<int> newest;
    for (const auto& [attempt, span] : spans_[external_id_]) {
      const bool before_end = range.end_batch() == 0 || span.first < range.end_batch();
      if (before_end && span.second >= range.start_batch()) newest = attempt;
    }
    return newest;
  }

  // The least of `sorted` that `percent` of all are at or below.
  static double NearestRank(const std::vector<double>& sorted, std::size_t percent) {
    return sorted[(sorted.size() * percent + 99) / 100 - 1];
  }

  static void CheckTiming(const v1::SummarizeTimingsResponse::Timing& timing,
                          std::vector<double> durations) {
    SCOPED_TRACE(absl::StrCat(timing.name(), timing.in_step() ? " in steps" : " outside"));
    ASSERT_EQ(timing.count(), static_cast<std::int64_t>(durations.size()));
    ASSERT_FALSE(durations.empty());
    std::sort(durations.begin(), durations.end());
    const double total = std::accumulate(durations.begin(), durations.end(), 0.0);
    ASSERT_NEAR(timing.total_seconds(), total, 1e-6);
    ASSERT_NEAR(timing.mean_seconds(), total / static_cast<double>(durations.size()), 1e-9);
    ASSERT_EQ(timing.p50_seconds(), NearestRank(durations, 50));
    ASSERT_EQ(timing.p95_seconds(), NearestRank(durations, 95));
    ASSERT_EQ(timing.p99_seconds(), NearestRank(durations, 99));
    ASSERT_EQ(timing.max_seconds(), durations.back());
    ASSERT_TRUE(timing.quantiles_exact());
    ASSERT_EQ(timing.quantiles_absent(), v1::ABSENCE_REASON_UNSPECIFIED);
  }

  void CheckTimings(std::mt19937_64& random) {
    for (const int asked : {1, 2, 0}) {
      v1::SummarizeTimingsRequest request;
      *request.mutable_trial() = Ref();
      request.set_attempt(asked);
      if (asked == 0 || random() % 2 == 0) {
        auto& range = *request.mutable_batch_range();
        range.set_start_batch(static_cast<std::int32_t>(random() % 50));
        if (random() % 2 == 0) {
          range.set_end_batch(range.start_batch() + static_cast<std::int32_t>(random() % 60));
        }
      }
      const auto is_asked = [&](const Point& point) {
        const v1::BatchRange& range = request.batch_range();
        if (!request.has_batch_range()) return true;
        return point.batch >= range.start_batch() &&
               (range.end_batch() == 0 || point.batch < range.end_batch());
      };
      const auto response = reads_.SummarizeTimings(request, Call());
      ASSERT_TRUE(response.ok()) << response.status();
      const std::optional<int> newest = NewestWith(request.batch_range());
      if (asked != 0) {
        ASSERT_EQ(response->attempt(), asked);
      } else if (newest) {
        ASSERT_EQ(response->attempt(), *newest);
      }
      std::map<std::pair<std::int32_t, bool>, std::vector<double>> durations;
      for (const Point& point : points_) {
        if (point.attempt != response->attempt() || std::isnan(point.value)) continue;
        if (!is_asked(point)) continue;
        if (point.series_no != trial_.step && point.series_no != trial_.scope) continue;
        durations[{point.series_no, point.batch >= 0}].push_back(point.value);
      }
      ASSERT_EQ(static_cast<std::size_t>(response->timings_size()), durations.size());
      double share = 0;
      for (const auto& timing : response->timings()) {
        const std::int32_t series_no = timing.name() == "step" ? trial_.step : trial_.scope;
        CheckTiming(timing, durations[{series_no, timing.in_step()}]);
        share += timing.share();
      }
      if (response->ranks_size() == 0) continue;
      // Scopes that are longer than their steps by what agents round are not told as a negative rest.
      const double all = share + response->ranks(0).unaccounted_share();
      ASSERT_GE(all, 1 - 1e-9);
      ASSERT_LE(all, 1 + (response->ranks(0).unaccounted_share() == 0 ? 1e-4 : 1e-9));
    }
  }

  RandomTrial trial_ = BeginWild();
  int rollup_answers_ = 0;
  int infinite_buckets_ = 0;
  int newest_compared_ = 0;
};

TEST_F(QueryReadsDifferential, AnswersWhatAPlainListSays) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 60 && !HasFatalFailure(); ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    CommitRandom(random, trial_);
    if (random() % 4 == 0) random() % 3 == 0 ? FoldBulk() : Fold();
    if (round % 10 == 9) FoldBulk();  // not left to chance
    if (random() % 6 == 0) Merge(random() % 2 == 0 ? 1 : 100);
    if (round % 3 != 0) continue;
    CheckSamples(random);
    CheckBuckets(random);
    CheckLatest();
    CheckTimings(random);
  }
  EXPECT_GT(rollup_answers_, 0);
  EXPECT_GT(bulk_fold_count_, 0);
  EXPECT_GT(infinite_buckets_, 0);
  EXPECT_GT(newest_compared_, 0);
  // A master that does not own the database (any more): heads are empty, rows say it all, merged or not, and the answers
  // that some of it may be missing.
  Fold();
  heads_.Clear();
  stands_by_ = true;
  v1::ReadSamplesRequest request;
  *request.mutable_trial() = Ref();
  EXPECT_TRUE(ReadMessages(request).back().completeness().recovering());
  CheckLatest();
  CheckSamples(random);
  CheckBuckets(random);
  CheckTimings(random);
}

}  // namespace
}  // namespace stepwell
