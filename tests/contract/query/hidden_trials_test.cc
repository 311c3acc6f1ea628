// What a call may be told of goes with it to each look-up of a trial: behind the one place that decides, which
// refuses such calls before, no read finds a trial of another project.
#include <functional>

#include "tests/contract/query/remembering_fixture.h"

namespace stepwell {
namespace {

class HiddenTrialsTest : public RememberingTest {
 protected:
  ReadCall CallOf(const ProjectFilter& projects) const {
    ReadCall call = Call();
    call.readable_projects = projects;
    return call;
  }
  // Each read of `trial` by its method.
  std::vector<std::pair<std::string, absl::Status>> EachRead(const v1::TrialRef& trial,
                                                             const ReadCall& call) const {
    const auto of_trial = [&](auto request) {
      *request.mutable_trial() = trial;
      return request;
    };
    auto buckets = of_trial(v1::QueryBucketsRequest());
    buckets.set_max_buckets(10);
    auto follow = of_trial(v1::FollowSamplesRequest());
    follow.set_lookback_us(60'000'000);
    v1::CompareTrialsRequest compare;
    *compare.add_trials() = trial;
    *compare.add_trials() = Ref("beside");
    return {
        {"GetTrial", remembering_.GetTrial(of_trial(v1::GetTrialRequest()), call).status()},
        {"ListSeries", remembering_.ListSeries(of_trial(v1::ListSeriesRequest()), call).status()},
        {"LatestValues",
         remembering_.LatestValues(of_trial(v1::LatestValuesRequest()), call).status()},
        {"ReadSamples", remembering_.ReadSamples(of_trial(v1::ReadSamplesRequest()), call,
                                                 [](const auto&) { return true; })},
        {"FollowSamples",
         remembering_.FollowSamples(follow, call, [](const auto&) { return false; })},
        {"QueryBuckets", remembering_.QueryBuckets(buckets, call).status()},
        {"SummarizeTimings",
         remembering_.SummarizeTimings(of_trial(v1::SummarizeTimingsRequest()), call).status()},
        {"CompareTrials", remembering_.CompareTrials(compare, call).status()},
    };
  }
};

TEST_F(HiddenTrialsTest, AreFoundByNoReadBeforeOrAfterOthersHaveReadThem) {
  Turn("beside");
  OpenWriter("a");
  Turn("run");
  trial_id_ = feed_.opened.trial_id;
  TickTable table;
  table.tick_group = 1;
  table.times_us = {kStartUs};
  table.batches = {0};
  for (const std::int32_t no : series_) {
    table.columns.push_back({.series_no = SeriesNo{no}, .values = {1}, .presence = {}});
  }
  Commit(feed_, {std::move(table)}, kStartUs);
  Fold();
  v1::TrialRef by_number;
  by_number.set_trial_id(Value(trial_id_));
  const ProjectFilter own = std::vector<std::string>{"default"};
  const ProjectFilter other = std::vector<std::string>{"other"};
  for (const v1::TrialRef& trial : {Ref(), by_number}) {
    SCOPED_TRACE(trial.ShortDebugString());
    // Before it is remembered, by those who may read it, and with all of it in memory.
    for (const ProjectFilter& projects :
         {other, own, own, own, other, ProjectFilter(kAllProjects), other}) {
      for (const auto& [method, status] : EachRead(trial, CallOf(projects))) {
        SCOPED_TRACE(method);
        if (projects != other) {
          EXPECT_TRUE(status.ok() || absl::IsCancelled(status)) << status;
          continue;
        }
        EXPECT_TRUE(absl::IsNotFound(status)) << status;
        EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("there is no trial"));
      }
    }
  }
  EXPECT_EQ(remembering_.ListTrials({}, CallOf(other))->trials_size(), 0);
  EXPECT_EQ(remembering_.ListTrials({}, CallOf(own))->trials_size(), 2);
  v1::ListTrialsRequest of_project;
  of_project.set_project("default");
  EXPECT_EQ(remembering_.ListTrials(of_project, CallOf(other))->trials_size(), 0);
  EXPECT_EQ(remembering_.ListTrials(of_project, CallOf(own))->trials_size(), 2);
}

TEST_F(RememberingTest, TheListTellsAGapWhoseNumberNobodyKnows) {
  OpenWriter("job");
  EXPECT_FALSE(reads_.ListTrials({}, Call())->trials(0).has_missing_samples());
  ASSERT_TRUE(
      testing::Connect(url_)
          ->ExecScript(SqlOf("insert into stepwell.gaps (trial_id, writer_no, cause, metric_group, "
                             "sample_count, first_time_us, last_time_us, first_sequence, "
                             "last_sequence, reason) select trial_id, 1, 9, '', 0, 0, 0, 0, 0, '' "
                             "from stepwell.trials"))
          .ok());
  const auto list = reads_.ListTrials({}, Call());
  ASSERT_TRUE(list.ok() && list->trials_size() == 1) << list.status();
  EXPECT_TRUE(list->trials(0).has_missing_samples());
  EXPECT_EQ(list->trials(0).samples_missing(), 0);
}

}  // namespace
}  // namespace stepwell
