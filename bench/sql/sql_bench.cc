// sql_bench: how fast does plain SQL read what is stored? Merged hours of the load `day` (190 series, one
// trial), one session, warm, on a real PostgreSQL, per second of the session's processor time:
//   sql.values     arrays of values of stepwell.decoded_metrics, values/s
//   sql.arrays     timestamps, batches and values of stepwell.generic_metrics, samples/s
//   sql.samples    rows of stepwell.samples(), rows/s
//   sql.name_hour  samples() of one name, one hour, 8 series, ms
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "bench/load/asked_options.h"
#include "bench/load/bar.h"
#include "bench/store/day_tables.h"
#include "storage/migrator.h"
#include "storage/pg_fold_store.h"
#include "storage/pg_ingest_store.h"
#include "storage/private_postgres.h"
#include "tests/support/sql_of.h"

namespace stepwell {
namespace {

constexpr std::int64_t kEpoch = 1;
constexpr std::int64_t kStartUs = 20'000 * 86'400'000'000;

void DieUnless(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "sql_bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

template <typename T>
T Must(absl::StatusOr<T> value) {
  DieUnless(value.status());
  return *std::move(value);
}

void Print(std::string_view name, std::vector<double> runs, std::string_view unit,
           const bench::Bar& bar) {
  std::sort(runs.begin(), runs.end());
  std::printf(
      "{\"name\": \"sql.%s\", \"value\": %.4g, \"unit\": \"%s\", \"against\": \"one session of "
      "PostgreSQL 15\", \"bar\": \"%s\", \"promised\": %s, \"n\": %zu, \"spread\": [%.4g, %.4g]}\n",
      std::string(name).c_str(), runs[runs.size() / 2], std::string(unit).c_str(), bar.text.c_str(),
      bar.promised_word(), runs.size(), runs.front(), runs.back());
  std::fflush(stdout);
}

class Bench {
 public:
  explicit Bench(const std::string& url)
      : ingest_(Must(PgIngestStore::Open({.url = url}, journal_))),
        folds_(Must(PgFoldStore::Open({.url = url}, journal_))),
        sql_(Must(PgConnection::Open({.url = url}))),
        backend_(Must(sql_->Exec("select pg_backend_pid()")).Int32(0, 0)) {}

  // Hours of all writers of `day`, as merged rows of one trial.
  void Fill(int hours) {
    for (int writer = 0; writer <= bench::kDayMachines; ++writer) FillWriter(writer, hours);
    const MergeLimits limits{
        .fold_no_max = Must(folds_->NextFoldNo()), .ripe_tick_count = 1, .now_us = kStartUs};
    while (Must(folds_->Merge(kEpoch, limits)).more) continue;
    DieUnless(sql_->ExecScript("vacuum analyze"));
    const PgResult held =
        Must(sql_->Exec("select (select count(*) from stepwell.recent), sum(sample_count)::bigint, "
                        "min(trial_id)::bigint from stepwell.usage"));
    STEPWELL_CHECK(held.Int64(0, 0) == 0);
    sample_count_ = held.Int64(0, 1);
    trial_id_ = held.Int64(0, 2);
  }

  void Read(int rounds) {
    std::vector<double> values, arrays, samples, name_hour;
    const std::string trial = absl::StrCat(trial_id_);
    const std::string each =
        absl::StrCat("select count(*), count(value) from stepwell.samples(", trial, ")");
    const std::string hour =
        absl::StrCat("select count(*), max(value) from stepwell.samples(", trial,
                     ", 'day', 'cpu_util_simple', to_timestamp(", kStartUs / 1'000'000 - 1,
                     "), to_timestamp(", kStartUs / 1'000'000 + 3599, ".5))");
    for (int round = 0; round < rounds; ++round) {
      values.push_back(
          Rate("select sum(cardinality(values))::bigint from stepwell.decoded_metrics where "
               "trial_id = " +
               trial));
      arrays.push_back(
          Rate("select sum(cardinality(values) + cardinality(timestamps) + cardinality(batches))"
               "::bigint / 3 from stepwell.generic_metrics where trial_id = " +
               trial));
      samples.push_back(Rate(each));
      name_hour.push_back(1000 * Seconds(hour, 8 * 3600));
    }
    Print("values", values, "values/s", bench::Promised(">= 4000000"));
    Print("arrays", arrays, "samples/s", bench::OwnBar(">= 1500000"));
    Print("samples", samples, "rows/s", bench::Promised(">= 1000000"));
    Print("name_hour", name_hour, "ms", bench::OwnBar("<= 60"));
  }

 private:
  void FillWriter(int index, int hours) {
    const bool is_rank = index == bench::kDayMachines;
    OpenWriterRequest request;
    request.trials = kAllProjects;
    request.trial.external_id = "day";
    request.writer = Uuid::Random();
    request.attempt_key = "job";
    request.owner_epoch = kEpoch;
    const OpenedWriter writer = Must(ingest_->OpenWriter(request));
    DieUnless(sql_->ExecScript("update stepwell.writers set committed_sequence = 1000000"));
    for (int hour = 0; hour < hours; ++hour) {
      const auto seed = static_cast<std::uint64_t>(index * 100 + hour);
      const std::int64_t start_us = kStartUs + hour * bench::kHourUs;
      std::vector<TickTable> tables = {is_rank ? bench::RankHour(seed, start_us)
                                               : bench::MachineHour(seed, start_us)};
      NameSeries(writer.trial_id, index, is_rank, tables[0]);
      WriterFold fold;
      fold.trial_id = writer.trial_id;
      fold.writer_no = writer.writer_no;
      fold.from_sequence_exclusive = static_cast<std::uint64_t>(hour);
      fold.to_sequence = static_cast<std::uint64_t>(hour) + 1;
      fold.parts = {{.received_time_us = kStartUs, .tables = &tables}};
      DieUnless(folds_->Fold(kEpoch, {fold}).status());
    }
  }

  void NameSeries(TrialId trial_id, int writer, bool is_rank, TickTable& table) {
    std::vector<SeriesDefinition> definitions(table.columns.size());
    std::vector<std::string> names;
    for (int copy = 0; copy < 8 && !is_rank; ++copy) {
      for (const testing::MetricKind& kind : testing::MetricKinds(1)) {
        if (copy < bench::SeriesOf(kind.name)) names.push_back(kind.name);
      }
    }
    for (std::size_t i = 0; i < definitions.size(); ++i) {
      const std::string name = is_rank ? absl::StrCat("scope_", i) : names[i];
      definitions[i].key = {.metric_group = "day",
                            .name = name,
                            .labels = {{"writer", absl::StrCat(writer)}, {"no", absl::StrCat(i)}}};
    }
    const auto numbers = Must(ingest_->FindOrCreateSeries(trial_id, definitions, 1000));
    for (std::size_t i = 0; i < definitions.size(); ++i) table.columns[i].series_no = numbers[i];
  }

  // Samples per second of a query whose first column is how many it saw.
  double Rate(const std::string& query) {
    return static_cast<double>(sample_count_) / Seconds(query, sample_count_);
  }

  double Seconds(const std::string& query, std::int64_t count_due) {
    const double start = SessionSeconds();
    const PgResult result = Must(sql_->Exec(SqlOf(query)));
    const double took = SessionSeconds() - start;
    if (result.Int64(0, 0) != count_due) {
      DieUnless(absl::InternalError(
          absl::StrCat(query, ": ", result.Int64(0, 0), " instead of ", count_due)));
    }
    return took;
  }

  // Processor time of the session's process: nothing here waits for a disk, and what else the machine
  // does is not its cost.
  double SessionSeconds() const {
    double ns = 0;
    std::ifstream(absl::StrCat("/proc/", backend_, "/schedstat")) >> ns;
    STEPWELL_CHECK(ns > 0);
    return ns / 1e9;
  }

  const std::shared_ptr<JournalRing> journal_ = std::make_shared<JournalRing>();
  std::unique_ptr<PgIngestStore> ingest_;
  std::unique_ptr<PgFoldStore> folds_;
  std::unique_ptr<PgConnection> sql_;
  const int backend_;
  std::int64_t sample_count_ = 0;
  std::int64_t trial_id_ = 0;
};

int Main(bool quick) {
  std::string directory = "/tmp/sql_bench_XXXXXX";
  STEPWELL_CHECK(mkdtemp(directory.data()) != nullptr);
  STEPWELL_CHECK(chmod(directory.c_str(), 0755) == 0);
  {
    const auto postgres = Must(PrivatePostgres::Open({.directory = directory}));
    DieUnless(Migrate(*Must(PgConnection::Open({.url = postgres->url()})), EmbeddedMigrations())
                  .status());
    Bench bench(postgres->url());
    bench.Fill(quick ? 1 : 3);
    bench.Read(quick ? 3 : 7);
  }
  return std::system(absl::StrCat("rm -rf ", directory).c_str());
}

}  // namespace
}  // namespace stepwell

int main(int argc, char** argv) {
  const stepwell::bench::AskedOptions asked("sql_bench", {stepwell::bench::AskedOptions::kQuick},
                                            argc, argv);
  return stepwell::Main(asked.Has("--quick"));
}
