// What planning costs over a trial whose rows lie in the leaves of sixty days: a read of one day
// looks, as it is planned, at the leaves of that day, as where there are no others, and a read of
// the whole trial at those of the trial. By what PostgreSQL counts, pages that planning reads and
// leaves that it locks, on connections that know nothing yet: not by time.
#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/contract/query/many_trials.h"
#include "tests/contract/query/query_plan.h"
#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

constexpr int kTrialDays = 60;
// Of others, which the trial has no part in.
constexpr int kFurtherDays = 30;
// What planning reads of the catalogs for one leaf: 99 pages for one of samples, 204 for one of rollups
// with its ticks.
constexpr double kPagesOfLeafMax = 250;

// Of one call, the most that one of its statements takes.
struct Planning {
  std::int64_t leaves = 0;
  double pages = 0;
};

class PlanningTest : public ManyTrialsTest {
 protected:
  using Ask = std::function<absl::Status(const QueryReads&)>;

  PlanningTest() {
    PgLeaves leaves;
    for (std::int32_t day = kDays; day < kTrialDays + kFurtherDays; ++day) {
      EXPECT_TRUE(leaves.Ensure(*connection_, 0, kFirstDay + day).ok());
    }
    const std::vector<PgStatement> any = {{"select 1", {}, true}};
    EXPECT_TRUE(connection_->ExecAll(any).ok());
    EXPECT_TRUE(connection_->keeps_statements());
    std::mt19937_64 random(testing::TestSeed());
    RandomTrial trial = BeginRandom();
    for (int i = 0; i < 60; ++i) CommitRandom(random, trial);
    Fold();
    for (int i = 0; i < 4; ++i) Merge(1);  // some stretches at a time
    CopyTrial(1, 1, MergedTables());       // run-1, to compare it with
  }

  // What the trial has in the leaves of two days, in those of all the others, too.
  void SpreadTrial() {
    for (const char* table : {"usage_lines", "metrics", "ticks", "rollups", "rollup_ticks"}) {
      const auto columns = ColumnsOf(table);
      ASSERT_TRUE(columns.ok()) << columns.status();
      std::vector<std::string> names;
      std::vector<std::string> values;
      for (int row = 0; row < columns->row_count(); ++row) {
        const std::string name(columns->Text(row, 0));
        names.push_back(name);
        const bool is_time = name == "first_time_us" || name == "last_time_us";
        values.push_back(is_time                  ? name + " + n * 86400000000"
                         : name == "received_day" ? "(received_day + n)::date"
                         : name == "tick_no"      ? name + " + n * 1000000::bigint"
                                                  : name);
      }
      Run(absl::StrCat("insert into stepwell.", table, " (", absl::StrJoin(names, ", "),
                       ") select ", absl::StrJoin(values, ", "), " from stepwell.", table,
                       ", generate_series(2, ", kTrialDays - 2,
                       ", 2) n where trial_id = ", Value(trial_id_)));
    }
    Run("analyze");
  }
  std::int64_t LeafDays() {
    const auto days = connection_->Exec(
        "select count(distinct received_day) from stepwell.usage where trial_id = $1",
        {Value(trial_id_)});
    EXPECT_TRUE(days.ok()) << days.status();
    return days.ok() ? days->Int64(0, 0) : 0;
  }

  Planning PlanningOf(const Ask& ask) {
    std::vector<PgStatement> asked;
    PgReader reader({.url = url_, .watch = [&](std::span<const ReadStatement> statements) {
                       for (const ReadStatement& one : statements) {
                         if (one.query != ReadQuery::kControl) asked.push_back(one.statement);
                       }
                     }});
    Heads heads;  // that know no newest values
    heads.RecoveryStarted({}, FoldNo{});
    const absl::Status status =
        ask(QueryReads(QuerySources{reader, heads, RealClock::Get(), liveness_}));
    EXPECT_TRUE(status.ok() || absl::IsCancelled(status)) << status;
    Planning most;
    EXPECT_FALSE(asked.empty());
    for (const PgStatement& statement : asked) Plan(statement, most);
    return most;
  }

 private:
  // As PgReadLink has it planned.
  void Plan(const PgStatement& statement, Planning& most) {
    const auto fresh = testing::Connect(url_);
    const char* how = statement.keep ? "force_generic_plan" : "auto";
    ASSERT_TRUE(fresh
                    ->ExecScript(SqlOf(absl::StrCat(
                        "begin; set local plan_cache_mode = ", how,
                        "; set local enable_seqscan = ", statement.keep ? "off" : "on")))
                    .ok());
    constexpr char kExplain[] = "explain (buffers, format json) ";
    absl::StatusOr<PgResult> answer;
    if (statement.keep) {
      ASSERT_TRUE(fresh->ExecScript(SqlOf(PrepareOf(statement))).ok()) << PrepareOf(statement);
      answer = fresh->Exec(SqlOf(absl::StrCat(kExplain, "execute asked(",
                                              LiteralsOf(*connection_, statement.params), ")")));
    } else {
      answer = fresh->Exec(SqlOf(absl::StrCat(kExplain, std::string(statement.sql.text()))),
                           statement.params);
    }
    ASSERT_TRUE(answer.ok()) << answer.status() << "\n" << statement.sql.c_str();
    const auto explained = nlohmann::json::parse(answer->Text(0, 0)).at(0);
    const auto& planning = explained.at("Planning");
    const double pages = planning.at("Shared Hit Blocks").get<double>() +
                         planning.at("Shared Read Blocks").get<double>();
    const auto leaves = fresh->Exec(
        "select count(*) from pg_locks l join pg_class c on c.oid = l.relation "
        "where l.pid = pg_backend_pid() and c.relkind = 'r' and c.relname ~ '_k[0-9]+_[0-9]{8}$'");
    ASSERT_TRUE(leaves.ok()) << leaves.status();
    most.leaves = std::max(most.leaves, leaves->Int64(0, 0));
    most.pages = std::max(most.pages, pages);
  }

  // With the types that it has on a connection that keeps it.
  std::string PrepareOf(const PgStatement& statement) {
    const auto ran = connection_->ExecAll(std::vector<PgStatement>{statement});
    EXPECT_TRUE(ran.ok()) << ran.status() << "\n" << statement.sql.c_str();
    const auto kept = connection_->Exec(
        "select array_to_string(parameter_types, ', ') from pg_prepared_statements "
        "where statement = $1",
        {statement.sql.text()});
    EXPECT_TRUE(kept.ok() && kept->row_count() == 1) << statement.sql.c_str();
    const bool has_types = kept.ok() && kept->row_count() == 1 && !kept->Text(0, 0).empty();
    const std::string types =
        has_types ? absl::StrCat(" (", std::string(kept->Text(0, 0)), ")") : "";
    return absl::StrCat("prepare asked", types, " as ", std::string(statement.sql.text()));
  }
};

TEST_F(PlanningTest, LooksAtLeavesOfWhatIsReadHoweverManyATrialHas) {
  const auto with_trial = [](auto request) {
    *request.mutable_trial() = Ref();
    return request;
  };
  const auto of_a_day = [&](auto request) {
    *request.mutable_trial() = Ref();
    request.mutable_time_range()->set_start_time_us(kStartUs);
    request.mutable_time_range()->set_end_time_us(kStartUs + kDayUs);
    return request;
  };
  const auto buckets = [&](v1::QueryBucketsRequest request, v1::Resolution resolution) {
    request.set_resolution(resolution);
    return [this, request](const QueryReads& reads) {
      return reads.QueryBuckets(request, Call()).status();
    };
  };
  const auto samples = [&](const v1::ReadSamplesRequest& request) {
    return [this, request](const QueryReads& reads) {
      return reads.ReadSamples(request, Call(), [](const auto&) { return true; });
    };
  };
  const auto timings = [&](const v1::SummarizeTimingsRequest& request) {
    return [this, request](const QueryReads& reads) {
      return reads.SummarizeTimings(request, Call()).status();
    };
  };
  const auto by_batch = [&] {
    auto request = with_trial(v1::QueryBucketsRequest());
    request.mutable_batch_range()->set_end_batch(100);
    return request;
  };
  enum class Reads { kNoLeaves, kOneDay, kAll };
  struct Row {
    const char* name;
    Reads reads;
    Ask ask;
  };
  const std::vector<Row> rows = {
      {"ListTrials", Reads::kNoLeaves,
       [&](const QueryReads& reads) {
         return reads.ListTrials(v1::ListTrialsRequest(), Call()).status();
       }},
      {"GetTrial", Reads::kNoLeaves,
       [&](const QueryReads& reads) {
         return reads.GetTrial(with_trial(v1::GetTrialRequest()), Call()).status();
       }},
      {"ListSeries", Reads::kNoLeaves,
       [&](const QueryReads& reads) {
         return reads.ListSeries(with_trial(v1::ListSeriesRequest()), Call()).status();
       }},
      {"ReadSamples of a day", Reads::kOneDay, samples(of_a_day(v1::ReadSamplesRequest()))},
      {"ReadSamples", Reads::kAll, samples(with_trial(v1::ReadSamplesRequest()))},
      {"QueryBuckets of a day's samples", Reads::kOneDay,
       buckets(of_a_day(v1::QueryBucketsRequest()), v1::RESOLUTION_RAW)},
      {"QueryBuckets of a day's rollups", Reads::kOneDay,
       buckets(of_a_day(v1::QueryBucketsRequest()), v1::RESOLUTION_10_SECONDS)},
      {"QueryBuckets of samples", Reads::kAll,
       buckets(with_trial(v1::QueryBucketsRequest()), v1::RESOLUTION_RAW)},
      {"QueryBuckets of rollups", Reads::kAll,
       buckets(with_trial(v1::QueryBucketsRequest()), v1::RESOLUTION_60_SECONDS)},
      {"QueryBuckets by batch", Reads::kAll, buckets(by_batch(), v1::RESOLUTION_UNSPECIFIED)},
      {"SummarizeTimings of a day", Reads::kOneDay,
       timings(of_a_day(v1::SummarizeTimingsRequest()))},
      {"SummarizeTimings", Reads::kAll, timings(with_trial(v1::SummarizeTimingsRequest()))},
      {"LatestValues", Reads::kAll,
       [&](const QueryReads& reads) {
         return reads.LatestValues(with_trial(v1::LatestValuesRequest()), Call()).status();
       }},
      {"CompareTrials", Reads::kAll,
       [&](const QueryReads& reads) {
         v1::CompareTrialsRequest request;
         *request.add_trials() = Ref();
         *request.add_trials() = Ref("run-1");
         return reads.CompareTrials(request, Call()).status();
       }},
  };
  ASSERT_EQ(LeafDays(), 2);
  std::vector<Planning> few;
  for (const Row& row : rows) few.push_back(PlanningOf(row.ask));
  SpreadTrial();
  ASSERT_EQ(LeafDays(), kTrialDays);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(rows[i].name);
    const Planning many = PlanningOf(rows[i].ask);
    double pages_max = 1.05 * few[i].pages + 20;
    switch (rows[i].reads) {
      case Reads::kNoLeaves:
        EXPECT_EQ(few[i].leaves, 0);
        EXPECT_EQ(many.leaves, 0);
        break;
      case Reads::kOneDay:
        EXPECT_EQ(few[i].leaves, 2);
        EXPECT_EQ(many.leaves, 2);
        break;
      case Reads::kAll:
        EXPECT_EQ(few[i].leaves, 2) << "of those of ninety days that there are";
        EXPECT_LE(many.leaves, kTrialDays);
        pages_max += kPagesOfLeafMax * static_cast<double>(many.leaves - few[i].leaves);
        break;
    }
    EXPECT_LE(many.pages, pages_max) << "before " << few[i].pages;
  }
}

}  // namespace
}  // namespace stepwell
