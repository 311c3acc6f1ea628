// store_bench: what do one commit of 256 chunks, a fold and a merge cost on a real PostgreSQL with
// fsync, and what does copying the same bytes alone cost?
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "bench/load/asked_options.h"
#include "bench/load/bar.h"
#include "bench/store/day_tables.h"
#include "storage/migrator.h"
#include "storage/pg_fold_store.h"
#include "storage/pg_ingest_store.h"
#include "storage/pg_row_copy.h"
#include "storage/private_postgres.h"

namespace stepwell {
namespace {

constexpr std::int64_t kEpoch = 1;
constexpr std::int64_t kNowUs = 20'000 * 86'400'000'000;
constexpr std::int64_t kDayUs = 86'400'000'000;

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "store_bench: %s\n", value.status().ToString().c_str());
  std::exit(1);
}
void Must(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "store_bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

double WallNs(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

// Processor time of this thread, in nanoseconds.
double OwnNs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}
// And of a backend.
double BackendNs(int pid) {
  double ns = 0;
  std::ifstream(absl::StrCat("/proc/", pid, "/schedstat")) >> ns;
  return ns;
}

struct Median {
  double value, least, greatest;
};
Median MedianOf(std::vector<double> runs) {
  std::sort(runs.begin(), runs.end());
  return {runs[runs.size() / 2], runs.front(), runs.back()};
}

// `raw`: of a ratio, both values as JSON fields that end in a comma.
void Print(std::string_view name, const std::vector<double>& runs, std::string_view unit,
           std::string_view against, const bench::Bar& bar, const std::string& raw = "") {
  const Median m = MedianOf(runs);
  std::printf(
      "{\"name\": \"store.%s\", \"value\": %.4g, \"unit\": \"%s\", \"against\": \"%s\", "
      "\"bar\": \"%s\", \"promised\": %s, %s\"n\": %zu, \"spread\": [%.4g, %.4g]}\n",
      std::string(name).c_str(), m.value, std::string(unit).c_str(), std::string(against).c_str(),
      bar.text.c_str(), bar.promised_word(), raw.c_str(), runs.size(), m.least, m.greatest);
  std::fflush(stdout);
}

class Bench {
 public:
  Bench(const std::string& url, bool quick) : url_(url), quick_(quick) {
    ingest_ = Must(PgIngestStore::Open({.url = url}, journal_));
    folds_ = Must(PgFoldStore::Open({.url = url}, journal_));
  }

  void Commits() {
    constexpr int kChunks = 256;
    std::vector<OpenedWriter> writers;
    for (int i = 0; i < kChunks; ++i) writers.push_back(OpenWriter(absl::StrCat("t", i % 16)));
    std::vector<double> plain, small, large;
    std::uint64_t sequence = 0;
    const auto commit = [&](std::size_t payload_bytes) {
      CommitGroupRequest group;
      group.owner_epoch = kEpoch;
      group.received_time_us = kNowUs;
      ++sequence;
      for (const OpenedWriter& writer : writers) {
        WriterAdvance& advance = group.advances.emplace_back();
        advance.trial_id = writer.trial_id;
        advance.writer_no = writer.writer_no;
        advance.generation = writer.generation;
        advance.first_sequence = advance.last_sequence = sequence;
        advance.payload.assign(payload_bytes, 'x');
      }
      return WallNs([&] {
               const auto results = Must(ingest_->Commit(group));
               STEPWELL_CHECK(results[0].outcome == AdvanceOutcome::kCommitted);
             }) /
             1e6;
    };
    const auto sql = Must(PgConnection::Open({.url = url_}));
    Must(sql->ExecScript("create table plain (payload bytea)"));
    const auto insert = [&](std::size_t bytes) {
      const std::string payload(bytes, 'x');
      return WallNs([&] {
               Must(sql->Exec("insert into plain values ($1)", {PgBytes{payload}}).status());
             }) /
             1e6;
    };
    const int rounds = quick_ ? 30 : 200;
    double own_ns = 0;
    double backend_ns = 0;
    for (int i = 0; i < rounds; ++i) {
      plain.push_back(insert(256 * 200));
      large.push_back(commit(4000));
      const int backend = BackendOf("stepwell-commit");
      const double own_before = OwnNs();
      const double backend_before = BackendNs(backend);
      small.push_back(commit(200));
      own_ns += OwnNs() - own_before;
      backend_ns += BackendNs(backend) - backend_before;
    }
    std::fprintf(stderr, "commit of 256 x 200 bytes: processor ms: master %.2f, PostgreSQL %.2f\n",
                 own_ns / rounds / 1e6, backend_ns / rounds / 1e6);
    Print("commit_256_chunks_of_200_bytes", small, "ms",
          absl::StrCat("inserting the same bytes as one value: ", MedianOf(plain).value, " ms"),
          bench::OwnBar("<= 3"));
    Print("commit_256_chunks_of_4000_bytes", large, "ms", "one transaction, fsync on",
          bench::OwnBar("<= 10"));
  }

  // Folds of `writer_count` writers, each with `tick_count` ticks of 190 series.
  void Folds(const std::string& name, int writer_count, int tick_count, std::string_view bar,
             bool merge) {
    constexpr int kSeries = 190;
    std::vector<SeriesDefinition> definitions;
    for (int i = 0; i < kSeries; ++i) {
      SeriesDefinition& definition = definitions.emplace_back();
      definition.key = {.metric_group = "gpu", .name = absl::StrCat("s", i), .labels = {}};
    }
    std::vector<OpenedWriter> writers;
    for (int i = 0; i < writer_count; ++i) {
      writers.push_back(OpenWriter(absl::StrCat("fold", name, i)));
      Must(ingest_->FindOrCreateSeries(writers.back().trial_id, definitions, 1000).status());
    }
    Must(Must(PgConnection::Open({.url = url_}))
             ->ExecScript("update stepwell.writers set committed_sequence = 1000000"));
    std::vector<double> runs;
    const int backend = BackendOf("stepwell-fold");
    double own_ns = OwnNs();
    double backend_ns = BackendNs(backend);
    const int folds = quick_ ? 10 : 60;
    const std::int64_t samples = std::int64_t{writer_count} * tick_count * kSeries;
    for (int index = 0; index < folds; ++index) {
      const std::vector<TickTable> tables = {Table(kSeries, tick_count, index)};
      std::vector<WriterFold> group;
      for (const OpenedWriter& writer : writers) {
        WriterFold& fold = group.emplace_back();
        fold.trial_id = writer.trial_id;
        fold.writer_no = writer.writer_no;
        fold.from_sequence_exclusive = static_cast<std::uint64_t>(index);
        fold.to_sequence = static_cast<std::uint64_t>(index) + 1;
        fold.parts = {{.received_time_us = kNowUs, .tables = &tables}};
      }
      const double ns = WallNs([&] { Must(folds_->Fold(kEpoch, group).status()); });
      runs.push_back(ns / static_cast<double>(samples));
    }
    own_ns = OwnNs() - own_ns;
    backend_ns = BackendNs(backend) - backend_ns;
    const double all_samples = static_cast<double>(folds) * static_cast<double>(samples);
    std::fprintf(stderr, "fold_%s: processor ns/sample: master %.1f, PostgreSQL %.1f\n",
                 name.c_str(), own_ns / all_samples, backend_ns / all_samples);
    Print(absl::StrCat("fold_", name), runs, "ns/sample", "encode, copy, commit with fsync",
          bench::OwnBar(std::string(bar)));
    if (merge) Merges(folds * samples);
  }

  // What the load `day` takes when it is merged, indexes and TOAST included.
  void DayBytes() {
    std::vector<double> shares;
    std::vector<double> raw;
    std::vector<double> rollups;
    for (int day = 1; day <= 3; ++day) {
      FillDay(day);
      const DayRead read = ReadDay(day);
      raw.push_back((read.rows + read.ticks) / read.samples);
      rollups.push_back((read.rollups + read.rollup_ticks) / read.samples);
      shares.push_back(rollups.back() / raw.back());
      std::fprintf(
          stderr,
          "day: %.0f samples, bytes each: rows %.3f, ticks %.3f, rollups %.3f, their ticks "
          "%.3f\n",
          read.samples, read.rows / read.samples, read.ticks / read.samples,
          read.rollups / read.samples, read.rollup_ticks / read.samples);
    }
    Print("day_rollup_share", shares, "ratio", "rows and ticks of the same samples, bytes each",
          bench::Promised("<= 0.45"),
          absl::StrFormat("\"raw\": {\"ours\": %.3f, \"theirs\": %.3f}, ", MedianOf(rollups).value,
                          MedianOf(raw).value));
  }

  void Merges(std::int64_t sample_count) {
    std::vector<double> calls;
    const int backend = BackendOf("stepwell-fold");
    const double own_ns = OwnNs();
    const double backend_ns = BackendNs(backend);
    const MergeLimits limits{
        .fold_no_max = Must(folds_->NextFoldNo()), .ripe_tick_count = 1, .now_us = kNowUs};
    for (bool more = true; more;) {
      const double ns = WallNs([&] { more = Must(folds_->Merge(kEpoch, limits)).more; });
      calls.push_back(ns / 1e6);
    }
    const auto samples = static_cast<double>(sample_count);
    std::fprintf(stderr, "merge: processor ns/sample: master %.1f, PostgreSQL %.1f\n",
                 (OwnNs() - own_ns) / samples, (BackendNs(backend) - backend_ns) / samples);
    Print("merge_call_of_2000_rows", calls, "ms", "read, decode, encode, copy, delete, commit",
          bench::OwnBar("<= 60"));
  }

 private:
  struct DayRead {
    double samples, rows, ticks, rollups, rollup_ticks;
  };

  // Of all machines and the rank, in leaves that hold nothing else: received `day` days later.
  void FillDay(int day) {
    const int hours = quick_ ? 2 : 8;
    for (int machine = 0; machine <= bench::kDayMachines; ++machine) {
      const bool is_rank = machine == bench::kDayMachines;
      const OpenedWriter writer = OpenWriter(absl::StrCat("day", day, ".", machine));
      std::vector<SeriesDefinition> definitions(is_rank ? bench::kDayTimings
                                                        : bench::kDayMachineSeries);
      for (std::size_t i = 0; i < definitions.size(); ++i) {
        definitions[i].key = {.metric_group = "day", .name = absl::StrCat("s", i), .labels = {}};
      }
      Must(ingest_->FindOrCreateSeries(writer.trial_id, definitions, 1000).status());
      Must(Must(PgConnection::Open({.url = url_}))
               ->ExecScript("update stepwell.writers set committed_sequence = 1000000"));
      for (int hour = 0; hour < hours; ++hour) {
        const auto seed = static_cast<std::uint64_t>(day * 10000 + machine * 100 + hour);
        const std::int64_t start_us = kNowUs + day * kDayUs + hour * bench::kHourUs;
        const std::vector<TickTable> tables = {is_rank ? bench::RankHour(seed, start_us)
                                                       : bench::MachineHour(seed, start_us)};
        WriterFold fold;
        fold.trial_id = writer.trial_id;
        fold.writer_no = writer.writer_no;
        fold.from_sequence_exclusive = static_cast<std::uint64_t>(hour);
        fold.to_sequence = static_cast<std::uint64_t>(hour) + 1;
        fold.parts = {{.received_time_us = kNowUs + day * kDayUs, .tables = &tables}};
        Must(folds_->Fold(kEpoch, {fold}).status());
      }
    }
    const MergeLimits limits{.fold_no_max = Must(folds_->NextFoldNo()),
                             .ripe_tick_count = 1,
                             // All days are over: no rollups wait to be joined.
                             .now_us = kNowUs + (day + 2) * kDayUs};
    while (Must(folds_->Merge(kEpoch, limits)).more) continue;
  }

  DayRead ReadDay(int day) {
    const auto sql = Must(PgConnection::Open({.url = url_}));
    const std::int32_t received_day = static_cast<std::int32_t>(kNowUs / kDayUs) + day;
    const auto bytes = [&](std::string_view table) {
      const std::string leaf = absl::StrCat("stepwell.", LeafName(table, 0, received_day));
      return static_cast<double>(
          Must(sql->Exec("select pg_total_relation_size($1::regclass)", {leaf})).Int64(0, 0));
    };
    const PgResult samples = Must(
        sql->Exec("select sum(sample_count)::bigint from stepwell.usage where received_day = $1",
                  {PgDate{received_day}}));
    return {.samples = static_cast<double>(samples.Int64(0, 0)),
            .rows = bytes("metrics"),
            .ticks = bytes("ticks"),
            .rollups = bytes("rollups"),
            .rollup_ticks = bytes("rollup_ticks")};
  }

  int BackendOf(const char* application) {
    const auto sql = Must(PgConnection::Open({.url = url_}));
    const PgResult row = Must(
        sql->Exec("select pid from pg_stat_activity where application_name = $1", {application}));
    STEPWELL_CHECK(row.row_count() > 0);
    return row.Int32(0, 0);
  }
  OpenedWriter OpenWriter(const std::string& trial) {
    OpenWriterRequest request;
    request.trials = kAllProjects;
    request.trial.external_id = trial;
    request.writer = Uuid::Random();
    request.attempt_key = "job";
    request.owner_epoch = kEpoch;
    return Must(ingest_->OpenWriter(request));
  }
  // One tick a second; values like those of gauges, with two decimals.
  static TickTable Table(int series_count, int tick_count, int fold_index) {
    TickTable table;
    table.tick_group = 1;
    for (int tick = 0; tick < tick_count; ++tick) {
      const std::int64_t index = std::int64_t{fold_index} * tick_count + tick;
      table.times_us.push_back(kNowUs + index * 1'000'000 + index * 7919 % 1000);
      table.batches.push_back(static_cast<std::int32_t>(index / 4));
    }
    std::uint32_t random = 4711;
    for (int series = 1; series <= series_count; ++series) {
      TickColumn& column = table.columns.emplace_back();
      column.series_no = SeriesNo{series};
      for (int tick = 0; tick < tick_count; ++tick) {
        random = random * 1664525 + 1013904223;
        column.values.push_back(static_cast<double>(random >> 20) / 100);
      }
    }
    return table;
  }

  const std::string url_;
  const bool quick_;
  const std::shared_ptr<JournalRing> journal_ = std::make_shared<JournalRing>();
  std::unique_ptr<PgIngestStore> ingest_;
  std::unique_ptr<PgFoldStore> folds_;
};

int Main(bool quick) {
  std::string directory = "/tmp/store_bench_XXXXXX";
  STEPWELL_CHECK(mkdtemp(directory.data()) != nullptr);
  STEPWELL_CHECK(chmod(directory.c_str(), 0755) == 0);
  {
    const auto postgres = Must(PrivatePostgres::Open({.directory = directory}));
    const auto connection = Must(PgConnection::Open({.url = postgres->url()}));
    Must(Migrate(*connection, EmbeddedMigrations()).status());
    Bench bench(postgres->url(), quick);
    bench.Commits();
    // 7600 series: the master folds so many each 60 s. What the rows of a few series cost, which it
    // folds each 10 s, is for the rows: docs/decisions/0006.
    bench.Folds("rows_of_60", 40, 60, "<= 150", false);
    bench.Folds("rows_of_10", 40, 10, "<= 450", true);
    bench.Folds("rows_of_1000", 2, 1000, "<= 40", false);
    bench.DayBytes();
  }
  return std::system(absl::StrCat("rm -rf ", directory).c_str());
}

}  // namespace
}  // namespace stepwell

int main(int argc, char** argv) {
  const stepwell::bench::AskedOptions asked("store_bench", {stepwell::bench::AskedOptions::kQuick},
                                            argc, argv);
  return stepwell::Main(asked.Has("--quick"));
}
