// What PostgreSQL does for every SQL text of QueryService, on a database with a thousand trials in
// thirty leaves: nothing is read but by an index of one trial, in leaves where that trial has rows, and
// ten times the trials change nothing. The texts are what the reader sends (ReadWatch), so that a new one
// is judged as soon as it is asked; a query that no call here asks fails the test, and so does a method
// that has no call. Those that are kept are planned once, whatever their values: that plan is looked at.
#include "storage/pg_caps_sql.h"
#include "tests/contract/query/many_trials.h"
#include "tests/contract/query/query_plan.h"
#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

constexpr int kFewTrials = 100;
constexpr int kManyTrials = 1000;
constexpr int kPageSize = 20;
// Of one list: part of a name is in no index.
constexpr int kTrialLooksMax = 50;
constexpr char kRareProject[] = "project-7";

struct Asked {
  std::string method;
  ReadQuery query{};
  PgStatement statement;
};

class QueryPlansTest : public ManyTrialsTest {
 protected:
  QueryPlansTest() {
    // So that none of the tables is small enough to be read whole.
    Run("insert into stepwell.projects (name) select 'project-' || n from generate_series(1, 2000) "
        "n");
    // Leaves of years whose samples are gone.
    Run("insert into stepwell.swept_leaves (keep_class, received_day, rollups_too, ledger_xid, "
        "emptied, samples_through) select 1, date '2014-01-01' + n, false, 1, true, 1000000000 "
        "from generate_series(1, 3000) n");
    FeedTrial();
  }

  // Merged rows with rollups in two leaves, recent rows, what is in heads alone, and gaps.
  void FeedTrial() {
    std::mt19937_64 random(testing::TestSeed());
    RandomTrial trial = BeginRandom();
    std::vector<std::int32_t> wide;
    for (int i = 0; i < 8; ++i) wide.push_back(AddSeries("wide", absl::StrCat("value_", i)));
    const auto commit_wide = [&](std::int64_t received_us) {
      TickTable table;
      table.tick_group = 2;
      for (int i = 0; i < 200; ++i) {
        table.times_us.push_back(trial.time_us += 1'000'000);
        table.batches.push_back(-1);
      }
      for (const std::int32_t series_no : wide) {
        TickColumn column;
        column.series_no = SeriesNo{series_no};
        for (int i = 0; i < 200; ++i) column.values.push_back(static_cast<double>(random() % 100));
        table.columns.push_back(std::move(column));
      }
      Commit(trial.writers[1], {std::move(table)}, received_us);
    };
    for (int i = 0; i < 60; ++i) CommitRandom(random, trial);
    commit_wide(kStartUs);
    commit_wide(kStartUs + kDayUs);
    Fold();
    for (int i = 0; i < 4; ++i) Merge(1);  // some stretches at a time
    for (int i = 0; i < 10; ++i) CommitRandom(random, trial);
    commit_wide(kStartUs);
    Fold();
    CommitRandom(random, trial);
    Run(
        absl::StrCat("insert into stepwell.gaps (trial_id, writer_no, cause, metric_group, "
                     "sample_count, first_time_us, last_time_us, first_sequence, last_sequence, "
                     "reason) select ",
                     Value(trial_id_), ", 1, 2, 'training', 1, ", kStartUs, " + n, ", kStartUs,
                     " + n, 0, 0, '' from generate_series(1, 20) n"));
    Run(absl::StrCat("insert into stepwell.caps (place, place_id, metric_group, series_samples) ",
                     "values (2, ", Value(trial_id_), ", '', 1000000)"));
  }

  // The trial's merged rows once more for each of so many hours, which end two days before them.
  void LengthenTrial(int hours) {
    for (const char* table : {"metrics", "ticks", "rollups", "rollup_ticks"}) {
      const auto columns = ColumnsOf(table);
      ASSERT_TRUE(columns.ok()) << columns.status();
      std::vector<std::string> names;
      std::vector<std::string> values;
      for (int row = 0; row < columns->row_count(); ++row) {
        const std::string name(columns->Text(row, 0));
        names.push_back(name);
        const bool is_time = name == "first_time_us" || name == "last_time_us";
        values.push_back(is_time             ? name + " - (48 + n) * 3600000000"
                         : name == "tick_no" ? name + " + n * 1000000"
                                             : name);
      }
      Run(absl::StrCat("insert into stepwell.", table, " (", absl::StrJoin(names, ", "),
                       ") select ", absl::StrJoin(values, ", "), " from stepwell.", table,
                       ", generate_series(1::bigint, ", hours,
                       ") n where trial_id = ", Value(trial_id_)));
    }
    Run("analyze");
  }
  // Rows that a chart of all series of a range looks at, once they are known.
  double RowsOfChart(v1::Resolution resolution);

  // All methods, as many ways as they ask differently.
  std::vector<Asked> AskAll();
  // Fails for queries of the reader, and methods of the service, that AskAll has not asked.
  void ExpectAllAsked(const std::set<ReadQuery>& seen) const;

  // Three trials behind all that CopyTrial makes, of a state, a name and a project that no other has.
  void AddRareTrials() {
    CopyTrial(kManyTrials + 1, kManyTrials + 3);
    Run(
        absl::StrCat("update stepwell.trials set state = 3, external_id = 'rare-' || trial_id, "
                     "project_id = (select project_id from stepwell.projects where name = '",
                     kRareProject, "') where trial_id > ", Value(trial_id_) + kManyTrials));
  }

  std::set<std::string> called_;
};

void QueryPlansTest::ExpectAllAsked(const std::set<ReadQuery>& seen) const {
  for (int query = 1; query <= static_cast<int>(kReadQueryLast); ++query) {
    EXPECT_TRUE(seen.contains(static_cast<ReadQuery>(query)))
        << "ReadQuery " << query << " is asked by no call of this test: add one";
  }
  const auto* service =
      v1::ListTrialsRequest::descriptor()->file()->FindServiceByName("QueryService");
  for (int i = 0; i < service->method_count(); ++i) {
    EXPECT_TRUE(called_.contains(service->method(i)->name()))
        << service->method(i)->name() << " is not called by this test: add it";
  }
}

std::vector<Asked> QueryPlansTest::AskAll() {
  std::vector<Asked> asked;
  std::string method;
  PgReader reader({.url = url_, .watch = [&](std::span<const ReadStatement> statements) {
                     for (const ReadStatement& one : statements) {
                       if (one.query == ReadQuery::kControl) continue;
                       asked.push_back({method, one.query, one.statement});
                     }
                   }});
  QuerySources sources{reader, heads_, RealClock::Get(), liveness_};
  sources.trials_looked_at_max = kTrialLooksMax;
  const QueryReads reads(sources);
  const auto call = [&](const char* name, const char* how, const auto& ask) {
    called_.insert(name);
    method = absl::StrCat(name, how);
    const absl::Status status = ask();
    EXPECT_TRUE(status.ok() || absl::IsCancelled(status)) << method << ": " << status;
  };
  const auto with_trial = [&](auto request) {
    *request.mutable_trial() = Ref();
    return request;
  };

  v1::ListTrialsRequest list;
  list.set_page_size(kPageSize);
  call("ListTrials", "", [&] {
    const auto first = reads.ListTrials(list, Call());
    if (!first.ok()) return first.status();
    v1::ListTrialsRequest next = list;
    next.set_page_token(first->next_page_token());
    return reads.ListTrials(next, Call()).status();
  });
  list.set_project("default");
  call("ListTrials", " of a project", [&] { return reads.ListTrials(list, Call()).status(); });
  list.set_name_contains("run-");
  call("ListTrials", " of a name", [&] { return reads.ListTrials(list, Call()).status(); });
  list.clear_name_contains();
  list.set_state(v1::TRIAL_STATE_RUNNING);
  call("ListTrials", " of a state", [&] { return reads.ListTrials(list, Call()).status(); });
  const auto list_rare = [&](const char* how, v1::ListTrialsRequest rare,
                             const ProjectFilter& projects = kAllProjects, int found = 3) {
    rare.set_page_size(kPageSize);
    ReadCall of_token = Call();
    of_token.readable_projects = projects;
    call("ListTrials", how, [&]() -> absl::Status {
      const auto answer = reads.ListTrials(rare, of_token);
      EXPECT_EQ(answer.ok() ? answer->trials_size() : -1, found) << how;
      EXPECT_EQ(answer.ok() && answer->next_page_token().empty(), found > 0) << how;
      return answer.status();
    });
  };
  v1::ListTrialsRequest rare;
  list_rare(" of a token", rare, std::vector<std::string>{kRareProject, "project-8"});
  rare.set_project(kRareProject);
  list_rare(" of a project behind all others", rare);
  rare.set_state(v1::TRIAL_STATE_FAILED);
  list_rare(" of a rare state of a project", rare);
  rare.clear_project();
  list_rare(" of a rare state", rare);
  rare.clear_state();
  rare.set_name_contains("rare-");
  list_rare(" of a rare name", rare, kAllProjects, 0);
  rare.set_project("default");
  rare.set_state(v1::TRIAL_STATE_FAILED);
  list_rare(" of a state that none of a large project has", rare, kAllProjects, 0);

  call("GetTrial", "",
       [&] { return reads.GetTrial(with_trial(v1::GetTrialRequest()), Call()).status(); });
  call("GetTrial", " by number", [&] {
    v1::GetTrialRequest request;
    request.mutable_trial()->set_trial_id(Value(trial_id_));
    return reads.GetTrial(request, Call()).status();
  });

  auto series = with_trial(v1::ListSeriesRequest());
  series.set_page_size(3);
  call("ListSeries", "", [&] { return reads.ListSeries(series, Call()).status(); });
  series.mutable_selector()->set_metric_group("training");
  (*series.mutable_selector()->mutable_labels())["rank"] = "0";
  call("ListSeries", " by labels", [&] { return reads.ListSeries(series, Call()).status(); });

  call("LatestValues", "", [&] {
    Heads heads;  // that know no newest values yet
    heads.RecoveryStarted({}, FoldNo{});
    const QueryReads fresh(QuerySources{reader, heads, RealClock::Get(), liveness_});
    return fresh.LatestValues(with_trial(v1::LatestValuesRequest()), Call()).status();
  });

  const auto take_all = [](const auto&) { return true; };
  auto samples = with_trial(v1::ReadSamplesRequest());
  call("ReadSamples", "", [&] { return reads.ReadSamples(samples, Call(), take_all); });
  samples.set_page_samples(100);
  samples.mutable_time_range()->set_start_time_us(kStartUs + 60'000'000);
  samples.mutable_time_range()->set_end_time_us(kStartUs + 1'200'000'000);
  std::string cursor;
  call("ReadSamples", " of a range", [&] {
    return reads.ReadSamples(samples, Call(), [&](const v1::ReadSamplesResponse& message) {
      cursor = message.cursor();
      return false;
    });
  });
  samples.set_cursor(cursor);
  call("ReadSamples", " from a cursor",
       [&] { return reads.ReadSamples(samples, Call(), take_all); });

  auto follow = with_trial(v1::FollowSamplesRequest());
  follow.set_lookback_us(60'000'000);
  call("FollowSamples", "",
       [&] { return reads.FollowSamples(follow, Call(), [](const auto&) { return false; }); });

  auto buckets = with_trial(v1::QueryBucketsRequest());
  buckets.set_max_buckets(10);
  call("QueryBuckets", "", [&] { return reads.QueryBuckets(buckets, Call()).status(); });
  buckets.set_resolution(v1::RESOLUTION_RAW);
  call("QueryBuckets", " of samples", [&] { return reads.QueryBuckets(buckets, Call()).status(); });
  *buckets.mutable_time_range() = samples.time_range();
  buckets.add_selectors()->set_metric_group("timing");
  buckets.add_selectors()->set_name("value_7");
  call("QueryBuckets", " of a range", [&] { return reads.QueryBuckets(buckets, Call()).status(); });
  buckets.set_resolution(v1::RESOLUTION_10_SECONDS);
  call("QueryBuckets", " of a range of rollups",
       [&] { return reads.QueryBuckets(buckets, Call()).status(); });
  buckets.clear_resolution();
  buckets.mutable_batch_range()->set_end_batch(100);
  call("QueryBuckets", " by batch", [&] { return reads.QueryBuckets(buckets, Call()).status(); });

  call("SummarizeTimings", "", [&] {
    return reads.SummarizeTimings(with_trial(v1::SummarizeTimingsRequest()), Call()).status();
  });
  auto timings = with_trial(v1::SummarizeTimingsRequest());
  timings.mutable_batch_range()->set_end_batch(2);
  call("SummarizeTimings", " of batches",
       [&] { return reads.SummarizeTimings(timings, Call()).status(); });
  timings.clear_batch_range();
  timings.mutable_time_range()->set_start_time_us(kStartUs);
  timings.mutable_time_range()->set_end_time_us(kStartUs + 60'000'000);
  call("SummarizeTimings", " of a time",
       [&] { return reads.SummarizeTimings(timings, Call()).status(); });

  v1::CompareTrialsRequest compare;
  *compare.add_trials() = Ref();
  *compare.add_trials() = Ref("run-2");
  call("CompareTrials", "", [&] { return reads.CompareTrials(compare, Call()).status(); });
  compare.set_max_buckets(50);
  call("CompareTrials", " in buckets",
       [&] { return reads.CompareTrials(compare, Call()).status(); });
  compare.set_axis(v1::COMPARE_AXIS_TIME_SINCE_START);
  compare.set_end(60'000'000);
  call("CompareTrials", " of a time",
       [&] { return reads.CompareTrials(compare, Call()).status(); });
  compare.set_axis(v1::COMPARE_AXIS_BATCH);
  compare.set_end(2);
  call("CompareTrials", " of batches",
       [&] { return reads.CompareTrials(compare, Call()).status(); });
  return asked;
}

double QueryPlansTest::RowsOfChart(v1::Resolution resolution) {
  std::vector<PgStatement> asked;
  PgReader reader({.url = url_, .watch = [&](std::span<const ReadStatement> statements) {
                     for (const ReadStatement& one : statements) {
                       const bool is_chart =
                           one.query == ReadQuery::kRows || one.query == ReadQuery::kRollups;
                       if (is_chart) asked.push_back(one.statement);
                     }
                   }});
  const QueryReads reads(QuerySources{reader, heads_, RealClock::Get(), liveness_});
  v1::QueryBucketsRequest request;
  *request.mutable_trial() = Ref();
  request.mutable_time_range()->set_start_time_us(kStartUs);
  request.mutable_time_range()->set_end_time_us(kStartUs + 3'600'000'000);
  request.set_resolution(resolution);
  for (int i = 0; i < 3; ++i) {
    asked.clear();
    EXPECT_TRUE(reads.QueryBuckets(request, Call()).ok());
  }
  EXPECT_GT(asked.size(), 0u);
  double rows = 0;
  for (const PgStatement& one : asked) rows += ExplainQuery(*connection_, one).rows();
  return rows;
}

// Nothing is summed up for trials that are not on the page.
void ExpectSumsOfOnePage(const QueryPlan& plan) {
  double lines = 0;
  for (const QueryPlan::Scan& scan : plan.scans) {
    lines += scan.table == "usage_lines" ? scan.rows : 0;
  }
  for (const QueryPlan::Scan& scan : plan.scans) {
    if (scan.table == "trials") continue;
    if (scan.table == "swept_leaves") {
      EXPECT_LE(scan.loops, lines) << "the leaf of each line";
      continue;
    }
    EXPECT_LE(scan.loops, kPageSize + 1) << scan.table;
  }
}

// Of lists whose page is full: it ends the look.
bool IsFullPage(const Asked& asked) {
  for (const char* how : {"", " of a project", " of a state"}) {
    if (asked.method == absl::StrCat("ListTrials", how)) return true;
  }
  return false;
}

void ExpectFewLooksAtTrials(const QueryPlan& plan, double looks_max = kTrialLooksMax) {
  double looks = 0;
  for (const QueryPlan::Scan& scan : plan.scans) looks += scan.table == "trials" ? scan.rows : 0;
  EXPECT_LE(looks, looks_max);
}

TEST_F(QueryPlansTest, EveryQueryReadsOneTrialByAnIndexWhateverElseIsStored) {
  const std::vector<PgStatement> any = {{"select 1", {}, true}};
  ASSERT_TRUE(connection_->ExecAll(any).ok());
  ASSERT_TRUE(connection_->keeps_statements());
  AddRareTrials();
  CopyTrial(1, kFewTrials);
  const std::set<std::string> leaves = LeavesOfTrial();
  ASSERT_EQ(leaves.size(), 8u);
  std::vector<QueryPlan> of_few;
  for (const Asked& asked : AskAll()) of_few.push_back(ExplainQuery(*connection_, asked.statement));
  CopyTrial(kFewTrials + 1, kManyTrials);
  const std::vector<Asked> all = AskAll();
  ASSERT_EQ(all.size(), of_few.size()) << "the same calls ask the same";

  std::set<ReadQuery> seen;
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(absl::StrCat(all[i].method, ":\n", all[i].statement.sql.c_str()));
    seen.insert(all[i].query);
    const bool is_list = all[i].query == ReadQuery::kTrials;
    const QueryPlan plan = ExplainQuery(*connection_, all[i].statement);
    if (is_list) ExpectSumsOfOnePage(plan);
    if (is_list) {
      ExpectFewLooksAtTrials(plan, IsFullPage(all[i]) ? kPageSize + 1 : kTrialLooksMax);
    }
    EXPECT_THAT(plan.Complaints(leaves, is_list), ::testing::IsEmpty());
    ExpectFlat(plan, of_few[i]);
  }
  ExpectAllAsked(seen);
  // Not of the reader, but GetTrial asks it too (QuerySources::window_over).
  const QueryPlan window = ExplainQuery(*connection_, {sql::kReadCapsOfTrial, {Value(trial_id_)}});
  for (const QueryPlan::Scan& scan : window.scans) EXPECT_NE(scan.node, "Seq Scan") << scan.table;
  EXPECT_LE(window.buffers, 12);
}

// Where all trials are of one state and one project, another index of their age would have the same trials in the same
// order: what is of the others is not looked for among these.
TEST_F(QueryPlansTest, AListGoesAlongTheIndexOfWhatItIsOf) {
  const std::vector<PgStatement> any = {{"select 1", {}, true}};
  ASSERT_TRUE(connection_->ExecAll(any).ok());
  ASSERT_TRUE(connection_->keeps_statements());
  // In the order in which they began, so that nothing is cheaper than the index of that.
  Run("insert into stepwell.trials (trial_id, project_id, external_id, owner_epoch, created_time) "
      "select 10000 + n, 1, 'old-' || n, 1, to_timestamp(1000 + n) from generate_series(1, 20000) "
      "n; analyze stepwell.trials");
  std::vector<PgStatement> asked;
  PgReader reader({.url = url_, .watch = [&](std::span<const ReadStatement> statements) {
                     for (const ReadStatement& one : statements) {
                       if (one.query == ReadQuery::kTrials) asked.push_back(one.statement);
                     }
                   }});
  const auto snapshot = reader.OpenSnapshot(Call().deadline);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  TrialPage page{.readable_projects = kAllProjects, .looks_max = kTrialLooksMax};
  for (const auto& [project, state] :
       {std::pair("", TrialState::kLost), std::pair(kRareProject, TrialState::kRunning),
        std::pair(kRareProject, TrialState::kLost)}) {
    page.project = project;
    page.state = state;
    ASSERT_TRUE((*snapshot)->ListTrials(page).ok());
  }
  page.state.reset();
  ASSERT_TRUE((*snapshot)->ListTrials(page).ok());
  // Two each, and two more of the rare project's where more run than may be looked at: who lists one is told of no other.
  EXPECT_EQ(asked.size(), 10u);
  for (const PgStatement& one : asked) {
    SCOPED_TRACE(one.sql.c_str());
    ExpectFewLooksAtTrials(ExplainQuery(*connection_, one));
  }
}

TEST_F(QueryPlansTest, AChartOfManySeriesLooksAtNoMoreWhereItsTrialIsLonger) {
  const std::vector<PgStatement> any = {{"select 1", {}, true}};
  ASSERT_TRUE(connection_->ExecAll(any).ok());
  ASSERT_TRUE(connection_->keeps_statements());
  Run("analyze");
  std::map<v1::Resolution, double> before;
  for (const auto resolution : {v1::RESOLUTION_RAW, v1::RESOLUTION_10_SECONDS}) {
    before[resolution] = RowsOfChart(resolution);
  }
  LengthenTrial(500);
  for (const auto& [resolution, rows] : before) {
    EXPECT_LE(RowsOfChart(resolution), 1.05 * rows + 10) << resolution;
  }
}

}  // namespace
}  // namespace stepwell
