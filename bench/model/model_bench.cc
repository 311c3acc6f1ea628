// model_bench: what does a day of a cluster take on the disk, and how much WAL per sample? An hour of the
// model: 64 machines of 8 GPUs at 1 Hz and 512 ranks of 10 steps a second with 6 timings each, one trial,
// 4544 series, 32,200 samples/s, timings as finely as agents keep them, on a real PostgreSQL as the master treats it: frames committed agent by
// agent, folds each minute, merges when ripe. --quick has 6 minutes.
//   model.day_gigabytes   rows, ticks, rollups of the hour with indexes and TOAST, x 24
//   model.rollup_share    rollups over rows and ticks
//   model.wal_frames_100ms   bytes of WAL per sample: commits of some seconds with a frame of each rank
//                         each 100 ms, as agents seal them, folds and merges
//   model.wal_frames_500ms   the same with longer frames
#include <sys/stat.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "bench/load/asked_options.h"
#include "bench/load/bar.h"
#include "bench/store/day_tables.h"
#include "client/agent/duration_grain.h"
#include "server/journal_codec.h"
#include "storage/migrator.h"
#include "storage/pg_fold_store.h"
#include "storage/pg_ingest_store.h"
#include "storage/pg_row_copy.h"
#include "storage/private_postgres.h"

namespace stepwell {
namespace {

constexpr std::int64_t kEpoch = 1;
constexpr std::int64_t kStartUs = 20'000 * INT64_C(86'400'000'000);
constexpr std::int64_t kSecondUs = 1'000'000;
constexpr int kMachines = 64;
constexpr int kRanksPerMachine = 8;
constexpr int kStepsPerSecond = 10;
constexpr std::size_t kWritersPerFold = 32;

void DieUnless(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "model_bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

template <typename T>
T Must(absl::StatusOr<T> value) {
  DieUnless(value.status());
  return *std::move(value);
}

// One state, so there is nothing to repeat.
void Print(std::string_view name, double value, std::string_view unit, std::string_view against,
           const bench::Bar& bar, const std::string& raw = "") {
  std::printf(
      "{\"name\": \"model.%s\", \"value\": %.4g, \"unit\": \"%s\", \"against\": \"%s\", \"bar\": "
      "\"%s\", \"promised\": %s, %s\"once\": \"one hour, made from its seeds\", \"n\": 1, "
      "\"spread\": [%.4g, %.4g]}\n",
      std::string(name).c_str(), value, std::string(unit).c_str(), std::string(against).c_str(),
      bar.text.c_str(), bar.promised_word(), raw.c_str(), value, value);
  std::fflush(stdout);
}

// A sampler's hour, or a rank's minutes, made one after the other.
class Source {
 public:
  Source(int index, bool is_rank) : is_rank_(is_rank), random_(static_cast<std::uint64_t>(index)) {
    if (!is_rank_) hour_ = bench::MachineHour(static_cast<std::uint64_t>(index), kStartUs);
  }

  int series_count() const { return is_rank_ ? bench::kDayTimings : bench::kDayMachineSeries; }

  // The next `seconds`.
  TickTable Next(int seconds) { return is_rank_ ? NextSteps(seconds) : NextTicks(seconds); }

 private:
  TickTable NextTicks(int seconds) {
    TickTable table;
    table.tick_group = 1;
    const auto end = at_ + seconds;
    table.times_us.assign(hour_.times_us.begin() + at_, hour_.times_us.begin() + end);
    table.batches.assign(hour_.batches.begin() + at_, hour_.batches.begin() + end);
    for (const TickColumn& column : hour_.columns) {
      table.columns.push_back({.series_no = {},
                               .values = {column.values.begin() + at_, column.values.begin() + end},
                               .presence = {}});
    }
    at_ = end;
    return table;
  }

  TickTable NextSteps(int seconds) {
    TickTable table;
    table.tick_group = 1;
    table.columns.resize(bench::kDayTimings);
    for (int i = 0; i < seconds * kStepsPerSecond; ++i) {
      table.times_us.push_back(kStartUs + static_cast<std::int64_t>(time_us_));
      table.batches.push_back(static_cast<std::int32_t>(at_++));
      time_us_ += 1e5 * std::exp(0.05 * normal_(random_));
      for (int timing = 0; timing < bench::kDayTimings; ++timing) {
        const double ns = 9.6e7 / (timing + 1) * std::exp(0.1 * normal_(random_));
        const std::uint64_t kept = agent::KeptDurationNs(static_cast<std::uint64_t>(ns));
        table.columns[static_cast<std::size_t>(timing)].values.push_back(static_cast<double>(kept) /
                                                                         1e9);
      }
    }
    return table;
  }

  const bool is_rank_;
  TickTable hour_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::ptrdiff_t at_ = 0;
  double time_us_ = 0;
};

struct ModelWriter {
  OpenedWriter opened;
  Source source;
  std::vector<SeriesNo> series;
  std::uint64_t committed_sequence = 0;

  TickTable Next(int seconds) {
    TickTable table = source.Next(seconds);
    for (std::size_t i = 0; i < series.size(); ++i) table.columns[i].series_no = series[i];
    return table;
  }
};

class Bench {
 public:
  explicit Bench(const std::string& url)
      : ingest_(Must(PgIngestStore::Open({.url = url}, journal_))),
        folds_(Must(PgFoldStore::Open({.url = url}, journal_))),
        sql_(Must(PgConnection::Open({.url = url}))) {
    for (int machine = 0; machine < kMachines; ++machine) {
      for (int rank = 0; rank <= kRanksPerMachine; ++rank) Open(rank > 0);
    }
  }

  // WAL per sample of commits alone, with `parts` frames of each rank a second: what they write does not
  // stay, so that some seconds tell it.
  double CommitWal(int seconds, std::size_t parts) {
    const double before = WalBytes();
    std::int64_t samples = 0;
    for (int second = 0; second < seconds; ++second) {
      std::vector<TickTable> tables;
      for (ModelWriter& writer : writers_) tables.push_back(writer.Next(1));
      for (std::size_t part = 0; part < parts; ++part) {
        for (int machine = 0; machine < kMachines; ++machine) {
          samples += CommitAgent(machine, part, parts, tables);
        }
      }
    }
    return (WalBytes() - before) / static_cast<double>(samples);
  }

  // Folds and merges of as many minutes.
  void Store(int minutes) {
    DieUnless(sql_->ExecScript("update stepwell.writers set committed_sequence = 1000000"));
    const double before = WalBytes();
    for (int minute = 1; minute <= minutes; ++minute) {
      Fold(minute);
      if (minute % 6 == 0) Merge(minute, 3600);
    }
    Merge(minutes, 1);
    store_wal_ = (WalBytes() - before) / static_cast<double>(sample_count_);
  }

  void Report(int minutes, double wal_100ms, double wal_500ms) {
    const auto samples = static_cast<double>(sample_count_);
    const double rows = LeafBytes("metrics");
    const double ticks = LeafBytes("ticks");
    const double rollups = LeafBytes("rollups") + LeafBytes("rollup_ticks") + WaitingBytes();
    std::fprintf(stderr,
                 "%.0f samples, bytes each: rows %.3f, ticks %.3f, rollups %.3f; WAL: commits each "
                 "100 ms %.2f, each 500 ms %.2f, folds and merges %.2f\n",
                 samples, rows / samples, ticks / samples, rollups / samples, wal_100ms, wal_500ms,
                 store_wal_);
    Print("day_gigabytes", (rows + ticks + rollups) * 24 * 60 / minutes / 1e9, "GB",
          absl::StrCat(minutes, " minutes of 64 machines with 8 GPUs each, rollups included"),
          bench::Promised("<= 10.5"));
    Print("rollup_share", rollups / (rows + ticks), "ratio", "rows and ticks",
          bench::Promised("<= 0.45"),
          absl::StrCat("\"raw\": {\"ours\": ", rollups / samples,
                       ", \"theirs\": ", (rows + ticks) / samples, "}, "));
    Print("wal_frames_100ms", wal_100ms + store_wal_, "bytes/sample",
          "commits agent by agent each 100 ms, folds each minute, merges", bench::OwnBar("<= 80"));
    Print("wal_frames_500ms", wal_500ms + store_wal_, "bytes/sample",
          "the same, commits each 500 ms", bench::OwnBar("<= 25"));
  }

 private:
  void Open(bool is_rank) {
    const auto index = static_cast<int>(writers_.size());
    OpenWriterRequest request;
    request.trials = kAllProjects;
    request.trial.external_id = "model";
    request.writer = Uuid::Random();
    request.attempt_key = "job";
    request.owner_epoch = kEpoch;
    ModelWriter writer{Must(ingest_->OpenWriter(request)), Source(index, is_rank), {}, 0};
    std::vector<SeriesDefinition> definitions(
        static_cast<std::size_t>(writer.source.series_count()));
    for (std::size_t i = 0; i < definitions.size(); ++i) {
      definitions[i].key = {.metric_group = is_rank ? "timing" : "gpu",
                            .name = absl::StrCat("series_", i),
                            .labels = {{"writer", absl::StrCat(index)}}};
    }
    writer.series = Must(ingest_->FindOrCreateSeries(writer.opened.trial_id, definitions, 5000));
    writers_.push_back(std::move(writer));
  }

  // Samplers seal once a second, ranks in each part of it.
  std::int64_t CommitAgent(int machine, std::size_t part, std::size_t parts,
                           const std::vector<TickTable>& tables) {
    CommitGroupRequest group;
    group.owner_epoch = kEpoch;
    group.received_time_us = kStartUs;
    std::int64_t samples = 0;
    for (int i = part == 0 ? 0 : 1; i <= kRanksPerMachine; ++i) {
      const auto index = static_cast<std::size_t>(machine * (kRanksPerMachine + 1) + i);
      ModelWriter& writer = writers_[index];
      const TickTable table = i == 0 ? tables[index] : PartOf(tables[index], part, parts);
      samples += static_cast<std::int64_t>(table.times_us.size() * table.columns.size());
      WriterAdvance& advance = group.advances.emplace_back();
      advance.trial_id = writer.opened.trial_id;
      advance.writer_no = writer.opened.writer_no;
      advance.generation = writer.opened.generation;
      advance.first_sequence = advance.last_sequence = ++writer.committed_sequence;
      const JournalEntry entry{.first_sequence = advance.first_sequence,
                               .last_sequence = advance.last_sequence,
                               .attempt = 1,
                               .sealed_time_us = kStartUs,
                               .has_body = true};
      AppendJournalEntry(entry, {table}, advance.payload);
    }
    for (const AdvanceResult& result : Must(ingest_->Commit(group))) {
      STEPWELL_CHECK(result.outcome == AdvanceOutcome::kCommitted);
    }
    return samples;
  }

  static TickTable PartOf(const TickTable& table, std::size_t part, std::size_t parts) {
    const std::size_t count = table.times_us.size() / parts;
    const auto cut = [&](const auto& all) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(part * count);
      return std::decay_t<decltype(all)>(begin, begin + static_cast<std::ptrdiff_t>(count));
    };
    TickTable taken;
    taken.tick_group = table.tick_group;
    taken.times_us = cut(table.times_us);
    taken.batches = cut(table.batches);
    for (const TickColumn& column : table.columns) {
      taken.columns.push_back(
          {.series_no = column.series_no, .values = cut(column.values), .presence = {}});
    }
    return taken;
  }

  void Fold(int minute) {
    for (std::size_t first = 0; first < writers_.size(); first += kWritersPerFold) {
      std::vector<std::vector<TickTable>> tables;
      tables.reserve(kWritersPerFold);
      std::vector<WriterFold> group;
      for (std::size_t i = first; i < std::min(first + kWritersPerFold, writers_.size()); ++i) {
        ModelWriter& writer = writers_[i];
        tables.push_back({writer.Next(60)});
        sample_count_ += static_cast<std::int64_t>(tables.back()[0].times_us.size() *
                                                   tables.back()[0].columns.size());
        WriterFold& fold = group.emplace_back();
        fold.trial_id = writer.opened.trial_id;
        fold.writer_no = writer.opened.writer_no;
        fold.from_sequence_exclusive = static_cast<std::uint64_t>(minute - 1);
        fold.to_sequence = static_cast<std::uint64_t>(minute);
        fold.parts = {
            {.received_time_us = kStartUs + minute * 60 * kSecondUs, .tables = &tables.back()}};
      }
      DieUnless(folds_->Fold(kEpoch, group).status());
    }
  }

  void Merge(int minute, std::int32_t ripe_tick_count) {
    const MergeLimits limits{.fold_no_max = Must(folds_->NextFoldNo()),
                             .ripe_tick_count = ripe_tick_count,
                             .now_us = kStartUs + minute * 60 * kSecondUs};
    while (Must(folds_->Merge(kEpoch, limits)).more) continue;
  }

  double WalBytes() {
    return Must(sql_->Exec("select (pg_current_wal_insert_lsn() - '0/0')::float8")).Float64(0, 0);
  }

  // Of rollups that wait to be joined, and of what they left behind.
  double WaitingBytes() {
    return Must(sql_->Exec("select sum(pg_total_relation_size(oid))::float8 from pg_class where "
                           "relname ~ '^recent_rollup(s|_ticks)_[0-9]$'"))
        .Float64(0, 0);
  }

  double LeafBytes(std::string_view table) {
    const std::string leaf = absl::StrCat(
        "stepwell.", LeafName(table, 0, static_cast<std::int32_t>(kStartUs / 86'400'000'000)));
    return static_cast<double>(
        Must(sql_->Exec("select pg_total_relation_size($1::regclass)", {leaf})).Int64(0, 0));
  }

  const std::shared_ptr<JournalRing> journal_ = std::make_shared<JournalRing>();
  std::unique_ptr<PgIngestStore> ingest_;
  std::unique_ptr<PgFoldStore> folds_;
  std::unique_ptr<PgConnection> sql_;
  std::vector<ModelWriter> writers_;
  std::int64_t sample_count_ = 0;
  double store_wal_ = 0;
};

int Main(bool quick) {
  std::string directory = "/tmp/model_bench_XXXXXX";
  STEPWELL_CHECK(mkdtemp(directory.data()) != nullptr);
  STEPWELL_CHECK(chmod(directory.c_str(), 0755) == 0);
  {
    const auto postgres = Must(PrivatePostgres::Open({.directory = directory}));
    DieUnless(Migrate(*Must(PgConnection::Open({.url = postgres->url()})), EmbeddedMigrations())
                  .status());
    Bench bench(postgres->url());
    // Of the hour, one minute goes to the commits.
    const int minutes = quick ? 6 : 59;
    const double wal_100ms = bench.CommitWal(quick ? 2 : 20, kStepsPerSecond);
    const double wal_500ms = bench.CommitWal(quick ? 5 : 40, 2);
    bench.Store(minutes);
    bench.Report(minutes, wal_100ms, wal_500ms);
  }
  return std::system(absl::StrCat("rm -rf ", directory).c_str());
}

}  // namespace
}  // namespace stepwell

int main(int argc, char** argv) {
  const stepwell::bench::AskedOptions asked("model_bench", {stepwell::bench::AskedOptions::kQuick},
                                            argc, argv);
  return stepwell::Main(asked.Has("--quick"));
}
