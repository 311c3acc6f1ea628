// What does it cost those who write that something else goes on? A real master on a real PostgreSQL; 64
// writers send 32,000 samples/s all the time, on the same two cores. In turns:
//   beside.ack_p99_alone     nothing but their own folds, each half second
//   beside.ack_p99_merge     beside writers that come and go, whose rows are folded and merged at once
//   beside.ack_p99_sweep     the same, and sweeps of what these wrote
//   beside.ack_p99_snapshot  beside a transaction that somebody left open, half a minute ago (--quick: 3 s)
//   beside.ack_p99_dump      beside pg_dump
//   beside.ack_p99_all       all of that at once
//   beside.ack_p99_flood     beside a client that names new series as fast as it can, by what it is without,
//                            right before (--flood: this alone; --few: by messages of 100 series, not of 10,000)
// And what sweeps do:
//   beside.leaf_lock         how long the sweep of a leaf holds its tables, or their parents
//   beside.leaf_wal          bytes of write-ahead log of that
//   beside.ack_p99_leaf      beside that
//   beside.leaf_lock_many, .leaf_wal_many, .ack_p99_leaf_many    the same where a thousand trials have lines of the
//                            ledger in the leaf, six each, and gaps are noted of them all
//   beside.leaf_wal_many_samples, .leaf_wal_many_rollups    the same, where rollups outlive samples: what goes on the
//                            day of the samples, and later (--leaf: all of leaves alone)
//   beside.ddl_lock          how long any session of the master's held a table so that nobody could write it, while
//                            rings are emptied and leaves attached
//   beside.caps_bytes        how far from its cap a trial's bytes are after a sweep
//   beside.caps_samples      by how many rows the worst series is off its cap
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "bench/beside/admin_client.h"
#include "bench/beside/kept_by_caps.h"
#include "bench/beside/many_trials.h"
#include "bench/beside/neighbours.h"
#include "bench/beside/old_leaf.h"
#include "bench/beside/series_flood.h"
#include "bench/load/asked_options.h"
#include "bench/load/bar.h"
#include "bench/load/bench_run.h"
#include "bench/load/load_stream.h"
#include "bench/load/made_up_chunks.h"
#include "bench/load/master_child.h"
#include "bench/load/paced_load.h"

namespace stepwell::bench {
namespace {

constexpr char kLeafTrial[] = "leaf";
constexpr char kShortTrial[] = "short";
constexpr char kManyTrials[] = "many";
constexpr char kLikeMany[] = "many-%";
constexpr int kManyCount = 1000;
// Leaves of days before yesterday are swept; those of three days and more are dropped, too.
constexpr int kOldestDaysAgo = 200;
constexpr int kManyDaysAgo = 100;
constexpr int kOutlivedDaysAgo = 50;
// Rollups of that class outlive samples.
constexpr int kOutlivedDays = 400;
// A segment of the journal is left after a minute, and emptied once all of it is folded.
constexpr absl::Duration kDdlPatience = absl::Seconds(150);
constexpr absl::Duration kFloodPatience = absl::Minutes(3);

struct Plan {
  int runs = 5;
  absl::Duration phase = absl::Seconds(5);
  int leaf_chunks = 5000;
  // Commits leave what an open snapshot may still see: it costs more the older it is.
  absl::Duration snapshot_age = absl::Seconds(30);
};

struct Figure {
  std::string unit;
  std::string against;
  Bar bar;
  std::vector<double> runs = {};
  // Of a ratio: what it was made from.
  std::vector<double> ours = {};
  std::vector<double> theirs = {};
};

void Print(const std::string& name, const Figure& figure) {
  const auto [least, most] = std::minmax_element(figure.runs.begin(), figure.runs.end());
  nlohmann::json line = {{"name", "beside." + name}, {"value", Median(figure.runs)},
                         {"unit", figure.unit},      {"against", figure.against},
                         {"bar", figure.bar.text},   {"promised", figure.bar.promised},
                         {"n", figure.runs.size()},  {"spread", {*least, *most}}};
  if (!figure.ours.empty()) {
    line["raw"] = {{"ours", Median(figure.ours)}, {"theirs", Median(figure.theirs)}};
  }
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

// As PostgreSQL writes it.
std::string WalPlace(std::int64_t bytes) {
  return absl::StrFormat("%X/%X", bytes >> 32, bytes & 0xFFFFFFFF);
}

class Bench {
 public:
  Bench(const Plan& plan, MasterChild master, std::unique_ptr<AdminClient> admin)
      : plan_(plan),
        master_(std::move(master)),
        admin_(std::move(admin)),
        load_(master_.grpc_address(), "load") {}

  absl::Status Prepare() {
    STEPWELL_RETURN_IF_ERROR(SetAges(1));
    STEPWELL_RETURN_IF_ERROR(Fill(kLeafTrial, plan_.leaf_chunks));
    STEPWELL_RETURN_IF_ERROR(Fill(kShortTrial, 1));
    v1::Caps bytes;
    bytes.set_trial_bytes(200'000);
    STEPWELL_RETURN_IF_ERROR(admin_->SetCaps(kShortTrial, bytes));
    return load_.Open();
  }

  absl::Status Run(int run) {
    STEPWELL_RETURN_IF_ERROR(Acks());
    STEPWELL_RETURN_IF_ERROR(DdlLocks(run));
    STEPWELL_RETURN_IF_ERROR(Leaf(run));
    STEPWELL_RETURN_IF_ERROR(OfCaps(absl::StrCat("kept-", run)));
    Tell(run);
    return absl::OkStatus();
  }

  absl::Status Leaf(int run) { return OfLeaf("", kLeafTrial, kOldestDaysAgo - 2 * run); }

  // Behind those of few trials.
  absl::Status PrepareManyTrials() {
    STEPWELL_RETURN_IF_ERROR(FillManyTrials(master_.grpc_address(), kManyTrials, kManyCount));
    STEPWELL_RETURN_IF_ERROR(admin_->AwaitMerged(kLikeMany));
    // A class of such ages is there from then on, also where all later rows are of class 1 again.
    STEPWELL_RETURN_IF_ERROR(SetAges(kOutlivedDays));
    STEPWELL_ASSIGN_OR_RETURN(
        const std::int64_t keep_class,
        admin_->Number(absl::StrCat("select keep_class::bigint from stepwell.keep_classes where "
                                    "rollup_age = make_interval(secs => 86400.0 * ",
                                    kOutlivedDays, ")")));
    outlived_class_ = static_cast<int>(keep_class);
    return SetAges(1);
  }

  absl::Status ManyTrials(int run) { return OfLeaf("_many", kLikeMany, kManyDaysAgo - 2 * run); }

  // Behind those whose ages are equal: updates leave the ledger another one than it was.
  absl::Status Outlived(int run) {
    const OldLeaf leaf = {.days_ago = kOutlivedDaysAgo - run, .keep_class = outlived_class_};
    STEPWELL_RETURN_IF_ERROR(KeepRollupsFor(*admin_, outlived_class_, kOutlivedDays));
    STEPWELL_RETURN_IF_ERROR(MakeOldLeaf(*admin_, kLikeMany, leaf));
    STEPWELL_RETURN_IF_ERROR(LetADayPass(*admin_, kLikeMany));
    STEPWELL_RETURN_IF_ERROR(NoteWal("leaf_wal_many_samples",
                                     "giving up the samples of a leaf of 1000 trials, whose "
                                     "rollups stay, emptying and dropping it",
                                     leaf, Until::kSamplesGone));
    STEPWELL_RETURN_IF_ERROR(KeepRollupsFor(*admin_, outlived_class_, 1));
    STEPWELL_RETURN_IF_ERROR(LetADayPass(*admin_, kLikeMany));
    return NoteWal("leaf_wal_many_rollups", "the same of its rollups, later", leaf,
                   Until::kAllGone);
  }

  // Behind all others: a flood leaves 200,000 series in the tables.
  absl::Status Flood(int run, int message_definitions) {
    STEPWELL_RETURN_IF_ERROR(admin_->AwaitQuiet());
    STEPWELL_ASSIGN_OR_RETURN(const double alone_ms, load_.AckP99Ms(plan_.phase));
    const auto flood =
        StartSeriesFlood(master_.grpc_address(), absl::StrCat("flood-", run), message_definitions);
    // While series are made, and once they are refused: what others see of the worse.
    std::vector<double> making;
    for (const SteadyTime deadline = SteadyTime::Now() + kFloodPatience; !flood->is_full();) {
      STEPWELL_ASSIGN_OR_RETURN(const double ms, load_.AckP99Ms(plan_.phase));
      making.push_back(ms);
      if (deadline.HasPassed()) return absl::DeadlineExceededError("the flood fills no trial");
    }
    STEPWELL_ASSIGN_OR_RETURN(const double full_ms, load_.AckP99Ms(plan_.phase));
    STEPWELL_RETURN_IF_ERROR(flood->End());
    if (making.empty()) return absl::InternalError("the flood's trial was full at once");
    const double making_ms = Median(making);
    const double beside_ms = std::max(making_ms, full_ms);
    std::fprintf(stderr,
                 "run %d: ack p99 %.3g ms alone, beside a flood of series %.3g ms while they are "
                 "made, %.3g ms while they are refused\n",
                 run, alone_ms, making_ms, full_ms);
    Note("ack_p99_flood", "ratio",
         "32,000 samples/s from 64 writers, Write to ack: beside a flood of new series, by alone",
         OwnBar("<= 2"), beside_ms / alone_ms);
    figures_.at("ack_p99_flood").ours.push_back(beside_ms);
    figures_.at("ack_p99_flood").theirs.push_back(alone_ms);
    return absl::OkStatus();
  }

  void PrintAll() const {
    for (const auto& [name, figure] : figures_) Print(name, figure);
  }

 private:
  using Neighbours = std::vector<std::unique_ptr<Neighbour>>;

  // Of samples a day.
  absl::Status SetAges(int rollup_days) {
    v1::Caps ages;
    ages.set_raw_age_seconds(86'400);
    ages.set_rollup_age_seconds(rollup_days * std::int64_t{86'400});
    return admin_->SetCaps("", ages);
  }

  // As fast as it goes, from two writers that close; then all of it is merged.
  absl::Status Fill(const std::string& trial, int chunk_count) {
    for (int rank = 0; rank < 2; ++rank) {
      MadeUpChunks chunks(ChunkShape(), rank);
      LoadStream stream(master_.grpc_address(), trial, rank, chunks.definitions());
      STEPWELL_RETURN_IF_ERROR(stream.Open());
      for (int i = 0; i < chunk_count; ++i) {
        STEPWELL_RETURN_IF_ERROR(stream.Send(chunks.Next()));
      }
      STEPWELL_RETURN_IF_ERROR(stream.Finish(LoadStream::Ending::kClose));
    }
    return admin_->AwaitMerged(trial);
  }

  absl::Status Acks() {
    STEPWELL_RETURN_IF_ERROR(admin_->AwaitQuiet());
    STEPWELL_RETURN_IF_ERROR(AckP99("alone", "nothing but their own folds", {}));
    STEPWELL_RETURN_IF_ERROR(
        AckP99("merge", "writers that come and go at 40,000 samples/s", ShortLives()));
    Neighbours sweep = ShortLives();
    sweep.push_back(StartSweeps(*admin_, kShortTrial));
    STEPWELL_RETURN_IF_ERROR(AckP99("sweep", "these writers, swept", std::move(sweep)));
    STEPWELL_RETURN_IF_ERROR(admin_->AwaitQuiet());
    Neighbours snapshot;
    snapshot.push_back(StartSnapshot(master_.database_url()));
    STEPWELL_RETURN_IF_ERROR(load_.AckP99Ms(plan_.snapshot_age).status());
    STEPWELL_RETURN_IF_ERROR(
        AckP99("snapshot",
               absl::StrCat("a transaction open for ", absl::FormatDuration(plan_.snapshot_age)),
               std::move(snapshot)));
    Neighbours dump;
    dump.push_back(StartDump(master_.database_url()));
    STEPWELL_RETURN_IF_ERROR(AckP99("dump", "pg_dump", std::move(dump)));
    Neighbours all = ShortLives();
    all.push_back(StartSweeps(*admin_, kShortTrial));
    all.push_back(StartSnapshot(master_.database_url()));
    all.push_back(StartDump(master_.database_url()));
    return AckP99("all", "all of that at once", std::move(all));
  }

  Neighbours ShortLives() const {
    Neighbours neighbours;
    neighbours.push_back(StartShortLives(master_.grpc_address(), kShortTrial));
    return neighbours;
  }

  absl::Status AckP99(const std::string& name, const std::string& beside, Neighbours neighbours) {
    STEPWELL_ASSIGN_OR_RETURN(const double ms, load_.AckP99Ms(plan_.phase));
    for (const auto& neighbour : neighbours) {
      STEPWELL_RETURN_IF_ERROR(Annotate(neighbour->End(), name));
    }
    Note("ack_p99_" + name, "ms",
         absl::StrCat("32,000 samples/s from 64 writers beside ", beside, ", Write to ack"),
         Promised("<= 50"), ms);
    return absl::OkStatus();
  }

  // Once with nothing else, for what it writes, and once under the load, for its locks.
  absl::Status OfLeaf(const std::string& suffix, const std::string& trials, int days_ago) {
    const std::string whose = suffix.empty() ? "" : absl::StrCat(" of ", kManyCount, " trials");
    const OldLeaf alone = {.days_ago = days_ago};
    STEPWELL_RETURN_IF_ERROR(MakeOldLeaf(*admin_, trials, alone));
    STEPWELL_RETURN_IF_ERROR(LetADayPass(*admin_, trials));
    STEPWELL_RETURN_IF_ERROR(NoteWal("leaf_wal" + suffix,
                                     absl::StrCat("giving up, emptying and dropping a leaf", whose),
                                     alone, Until::kAllGone));
    const OldLeaf loaded = {.days_ago = days_ago - 1};
    STEPWELL_RETURN_IF_ERROR(MakeOldLeaf(*admin_, trials, loaded));
    LockWatch watch(master_.database_url(), "stepwell-caps");
    std::atomic<bool> is_over = false;
    absl::Status swept;
    std::thread sweeping([&] {
      swept = SweepAway(*admin_, loaded);
      is_over = true;
    });
    absl::StatusOr<double> p99_ms = load_.AckP99Ms(plan_.phase / 4);
    double worst_ms = p99_ms.value_or(0);
    while (!is_over && p99_ms.ok()) {
      p99_ms = load_.AckP99Ms(plan_.phase / 4);
      worst_ms = std::max(worst_ms, p99_ms.value_or(0));
    }
    sweeping.join();
    STEPWELL_RETURN_IF_ERROR(p99_ms.status());
    STEPWELL_RETURN_IF_ERROR(swept);
    STEPWELL_ASSIGN_OR_RETURN(const absl::Duration longest, watch.Longest());
    Note("leaf_lock" + suffix, "ms",
         absl::StrCat("longest lock of a sweep of a leaf", whose, ", under the load"),
         Promised("<= 50"), absl::ToDoubleMilliseconds(longest));
    Note("ack_p99_leaf" + suffix, "ms",
         absl::StrCat("32,000 samples/s from 64 writers beside the sweep of a leaf", whose,
                      ", and who looks for its locks, Write to ack"),
         Promised("<= 50"), worst_ms);
    std::fprintf(stderr, "leaf_lock%s %.3g ms, ack p99 meanwhile %.3g ms\n", suffix.c_str(),
                 absl::ToDoubleMilliseconds(longest), worst_ms);
    return absl::OkStatus();
  }

  // What the sweep of a leaf writes, while nothing else does.
  absl::Status NoteWal(const std::string& name, const std::string& of, const OldLeaf& leaf,
                       Until until) {
    STEPWELL_RETURN_IF_ERROR(admin_->AwaitQuiet());
    STEPWELL_ASSIGN_OR_RETURN(const std::int64_t before, admin_->Number(kReadWal));
    STEPWELL_RETURN_IF_ERROR(SweepAway(*admin_, leaf, until));
    STEPWELL_ASSIGN_OR_RETURN(const std::int64_t after, admin_->Number(kReadWal));
    Note(name, "bytes", absl::StrCat("write-ahead log of ", of), Promised("<= 1000000"),
         static_cast<double>(after - before));
    // pg_waldump --stats=record tells of what it consists.
    std::fprintf(stderr, "%s %.3g MB, %s to %s in %s/pg/pg_wal\n", name.c_str(),
                 static_cast<double>(after - before) / 1e6, WalPlace(before).c_str(),
                 WalPlace(after).c_str(), master_.data_dir().c_str());
    return absl::OkStatus();
  }

  // Apart from acks, beside which nobody is to look for locks all the time.
  absl::Status DdlLocks(int run) {
    // What is emptied or made gets a file of a higher number.
    STEPWELL_ASSIGN_OR_RETURN(
        const std::int64_t newest_file,
        admin_->Number("select max(relfilenode::bigint) from pg_class where relnamespace = "
                       "'stepwell'::regnamespace"));
    const Neighbours neighbours = ShortLives();
    LockWatch watch(master_.database_url(), "stepwell-%");
    // Leaves of a new class are attached as its first rows are merged. There may be eight classes.
    const absl::Status set = SetAges(kOutlivedDays + 1 + run % 5);
    // Of tables of rings, and of all.
    const auto emptied = [&](const char* named) {
      return admin_->Number(absl::StrCat(
          "select count(*) from pg_class where relnamespace = 'stepwell'::regnamespace and relkind "
          "= 'r' and relname ~ '",
          named, "' and relfilenode::bigint > ", newest_file));
    };
    absl::StatusOr<std::int64_t> ring_count = 0;
    for (const SteadyTime deadline = SteadyTime::Now() + kDdlPatience;
         ring_count.ok() && *ring_count == 0 && !deadline.HasPassed();) {
      STEPWELL_RETURN_IF_ERROR(load_.AckP99Ms(plan_.phase).status());
      ring_count = emptied("^(journal|recent)_");
    }
    for (const auto& neighbour : neighbours) STEPWELL_RETURN_IF_ERROR(neighbour->End());
    STEPWELL_RETURN_IF_ERROR(set);
    STEPWELL_RETURN_IF_ERROR(ring_count.status());
    STEPWELL_ASSIGN_OR_RETURN(const std::int64_t file_count, emptied(""));
    if (*ring_count == 0) return absl::InternalError("no ring was emptied");
    STEPWELL_ASSIGN_OR_RETURN(const absl::Duration longest, watch.Longest());
    Note("ddl_lock", "ms",
         "longest lock of any session of the master's against writers, while rings are emptied, "
         "and leaves attached, under the load",
         Promised("<= 50"), absl::ToDoubleMilliseconds(longest));
    std::fprintf(stderr,
                 "ddl_lock %.3g ms, %d locks seen; %lld tables emptied or made, %lld of rings\n",
                 absl::ToDoubleMilliseconds(longest), watch.seen_count(),
                 static_cast<long long>(file_count), static_cast<long long>(*ring_count));
    // The sweep of a leaf is to find no others' rows.
    STEPWELL_RETURN_IF_ERROR(admin_->AwaitMerged(kShortTrial));
    STEPWELL_RETURN_IF_ERROR(admin_->Sweep(kShortTrial).status());
    return SetAges(1);
  }

  absl::Status OfCaps(const std::string& trial) {
    STEPWELL_RETURN_IF_ERROR(Fill(trial, 600));
    STEPWELL_ASSIGN_OR_RETURN(const KeptBytes bytes, SweepHalfOfBytes(*admin_, trial));
    Note("caps_bytes", "%", "of a cap of bytes: what a sweep keeps too much or too little",
         Promised("<= 1"), std::abs(bytes.kept - bytes.cap) / bytes.cap * 100);
    STEPWELL_ASSIGN_OR_RETURN(const double rows, SweepHalfOfSamples(*admin_, trial));
    Note("caps_samples", "rows", "a cap of samples: rows that the worst series is off",
         Promised("<= 1"), rows);
    return absl::OkStatus();
  }

  void Tell(int run) const {
    for (const auto& [name, figure] : figures_) {
      std::fprintf(stderr, "run %d: %s %.3g %s\n", run, name.c_str(), figure.runs.back(),
                   figure.unit.c_str());
    }
  }

  void Note(const std::string& name, const std::string& unit, const std::string& against,
            const Bar& bar, double value) {
    auto [place, added] = figures_.try_emplace(name, Figure{unit, against, bar});
    place->second.runs.push_back(value);
  }

  const Plan plan_;
  MasterChild master_;
  const std::unique_ptr<AdminClient> admin_;
  PacedLoad load_;
  int outlived_class_ = 0;
  std::map<std::string, Figure> figures_;
};

// What of it all.
enum class Part { kAll, kLeaf, kFlood };

int Main(bool quick, Part part, int message_definitions) {
  StayOnTwoCores();
  const Plan plan = quick ? Plan{.runs = 3,
                                 .phase = absl::Milliseconds(1200),
                                 .leaf_chunks = 500,
                                 .snapshot_age = absl::Seconds(3)}
                          : Plan{};
  const char* folder = std::getenv("STEPWELL_BIN");
  const std::string binary =
      std::string(folder != nullptr ? folder : "build/release/bin") + "/stepwell";
  auto master = MasterChild::Start(binary, {"--fold-interval", "500ms", "--sweep-interval", "1h"});
  DieUnless(master.status());
  auto admin = AdminClient::Open(master->grpc_address(), master->database_url());
  DieUnless(admin.status());
  Bench bench(plan, *std::move(master), *std::move(admin));
  DieUnless(bench.Prepare());
  if (part != Part::kFlood) {
    for (int run = 0; run < plan.runs; ++run) {
      DieUnless(part == Part::kLeaf ? bench.Leaf(run) : bench.Run(run));
    }
    DieUnless(bench.PrepareManyTrials());
    for (int run = 0; run < plan.runs; ++run) DieUnless(bench.ManyTrials(run));
    for (int run = 0; run < plan.runs; ++run) DieUnless(bench.Outlived(run));
  }
  for (int run = 0; run < plan.runs && part != Part::kLeaf; ++run) {
    DieUnless(bench.Flood(run, message_definitions));
  }
  bench.PrintAll();
  return 0;
}

}  // namespace
}  // namespace stepwell::bench

int main(int argc, char** argv) {
  const stepwell::bench::AskedOptions asked(
      "beside_bench",
      {stepwell::bench::AskedOptions::kQuick,
       {"--leaf", "the sweeps of leaves alone"},
       {"--flood", "the flood of new series alone"},
       {"--few", "the flood in messages of 100, not of 10,000"}},
      argc, argv);
  using stepwell::bench::Part;
  const Part part = asked.Has("--leaf")    ? Part::kLeaf
                    : asked.Has("--flood") ? Part::kFlood
                                           : Part::kAll;
  return stepwell::bench::Main(asked.Has("--quick"), part, asked.Has("--few") ? 100 : 10'000);
}
