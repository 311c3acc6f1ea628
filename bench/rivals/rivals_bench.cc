// How does Stepwell do beside VictoriaMetrics on the same two cores? Both get the same samples, value and
// batch, in turns, from a client on the same cores that made the bytes before. Load `day`: 190 series in
// chunks of 1000 samples on 9 streams; load `wide`: 4544 series of 576 writers on 64 streams.
//   rivals.day_throughput, .wide_throughput  durable samples/s of ours over samples/s answered by theirs
//                     (which answers before any fsync)
//   rivals.day_cpu, .wide_cpu  processor time of the servers per sample until all is merged, over theirs
//   rivals.day_cpu_ns, .wide_cpu_ns  the same of ours, in nanoseconds
//   rivals.bytes      stored bytes per sample after all merges, rollups apart
//   rivals.rollups    those of the rollups over those of the samples
//   rivals.copy       our durable samples/s over those of COPY BINARY of encoded rows (copy_limit.h)
//   rivals.series_day_raw, .series_day_rollups, .gpus_hour_raw, .gpus_hour_rollups, .latest
//                     the questions of a chart (rival_queries.h)
//   rivals.series_day_first, .gpus_hour_first  two of them that nobody has asked since both were started
// What each side does is told in bench/README.md.
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "bench/load/asked_options.h"
#include "bench/load/bench_run.h"
#include "bench/load/loaded_master.h"
#include "bench/load/pairs.h"
#include "bench/load/tick_load.h"
#include "bench/rivals/copy_limit.h"
#include "bench/rivals/remote_load.h"
#include "bench/rivals/rival_queries.h"
#include "bench/rivals/victoria.h"

namespace stepwell::bench {
namespace {

struct Plan {
  int rounds = 5;
  int day_hours = 24;
  int wide_minutes = 10;
  int queries = 100;
};

Victoria StartVictoria() {
  auto victoria = Victoria::Start(VICTORIA_METRICS);
  DieUnless(victoria.status());
  return *std::move(victoria);
}

struct Measured {
  Pairs rates;
  Pairs cpu;
  std::vector<double> copy_rates;
};

// One side's turn: what it takes a second, and what it burns until it rests.
void TakeTurn(double samples, const std::function<double()>& cpu_seconds,
              const std::function<void()>& load, const std::function<void()>& settle,
              std::vector<double>& rates, std::vector<double>& cpu) {
  const double before = cpu_seconds();
  const absl::Time begin = absl::Now();
  load();
  rates.push_back(samples / absl::ToDoubleSeconds(absl::Now() - begin));
  const double loaded = cpu_seconds();
  settle();
  cpu.push_back((cpu_seconds() - before) / samples * 1e9);
  std::fprintf(stderr, "  %.2f M samples/s, %.0f ns until then, %.0f ns in all\n",
               rates.back() / 1e6, (loaded - before) / samples * 1e9, cpu.back());
}

void TakeTurns(int round, const TickLoad& load, const RemoteLoad& remote, LoadedMaster& ours,
               Victoria& theirs, Measured& to) {
  const auto samples = static_cast<double>(load.sample_count);
  const auto our_turn = [&] {
    std::fprintf(stderr, "round %d, Stepwell:\n", round);
    TakeTurn(
        samples, [&] { return ours.CpuSeconds(); }, [&] { ours.Load(load); },
        [&] { ours.Settle(); }, to.rates.ours, to.cpu.ours);
  };
  const auto their_turn = [&] {
    std::fprintf(stderr, "round %d, VictoriaMetrics:\n", round);
    TakeTurn(
        samples, [&] { return theirs.CpuSeconds(); }, [&] { DieUnless(theirs.Load(remote)); },
        [&] {
          DieUnless(theirs.Flush());
          AwaitIdle([&] { return theirs.CpuSeconds(); });
        },
        to.rates.theirs, to.cpu.theirs);
  };
  // Who begins changes, so that neither always finds the machine as the other left it.
  if (round % 2 == 0) {
    our_turn();
    their_turn();
  } else {
    their_turn();
    our_turn();
  }
}

// Of the samples of a round.
double CopyRate(int round, const Plan& plan, LoadedMaster& ours) {
  CopyLimit limit;
  MakeDay(round * plan.day_hours, plan.day_hours, limit.Adder());
  const double rate = limit.Measure(ours.sql());
  std::fprintf(stderr, "round %d, COPY BINARY: %.2f M samples/s\n", round, rate / 1e6);
  return rate;
}

void PrintBytes(LoadedMaster& ours, Victoria& theirs, double samples) {
  const auto stored = theirs.StoredBytes();
  DieUnless(stored.status());
  const double rival = static_cast<double>(*stored) / samples;
  const LoadedMaster::Sizes sizes = ours.StoredBytes();
  const double raw = sizes.samples / samples;
  const double rollups = sizes.rollups / samples;
  std::fprintf(stderr,
               "bytes per sample: %.3f and %.3f of rollups, VictoriaMetrics %.3f; rings %.0f MB\n",
               raw, rollups, rival, sizes.rings / 1e6);
  PrintSizes("rivals.bytes", "VictoriaMetrics, stored bytes per sample, value and batch",
             Promised("<= 1.0"), raw, rival);
  PrintSizes("rivals.rollups", "our samples: bytes of the rollups", Promised("<= 0.45"), rollups,
             raw);
}

// What is wanted beyond the bar, which alone is judged.
void TellGoal(const char* name, double goal, const Pairs& rates) {
  const double ratio = Median(rates.ours) / Median(rates.theirs);
  std::fprintf(stderr, "%s: %.2f times VictoriaMetrics, the goal of %.1f is %s\n", name, ratio,
               goal, ratio >= goal ? "reached" : "not reached");
}

void RunDay(const Plan& plan) {
  Measured measured;
  RemoteLoad remote;
  TickLoad load = MakeDay(0, plan.day_hours, remote.Adder());
  LoadedMaster ours("day", load);
  Victoria theirs = StartVictoria();
  std::int64_t sample_count = 0;
  for (int round = 0; round < plan.rounds; ++round) {
    if (round > 0) {
      remote = RemoteLoad();
      load = MakeDay(round * plan.day_hours, plan.day_hours, remote.Adder());
    }
    TakeTurns(round, load, remote, ours, theirs, measured);
    measured.copy_rates.push_back(CopyRate(round, plan, ours));
    sample_count += load.sample_count;
  }
  ours.CheckHeld(sample_count);
  DieUnless(theirs.CheckHeld(sample_count));
  PrintRatio("rivals.day_throughput", "VictoriaMetrics, samples with value and batch per second",
             Promised(">= 3"), measured.rates);
  TellGoal("day_throughput", 4, measured.rates);
  PrintRatio("rivals.day_cpu", "VictoriaMetrics, processor time of the servers per sample",
             Promised("<= 0.2"), measured.cpu);
  PrintOurs("rivals.day_cpu_ns", "ns", "master and PostgreSQL per sample, folded and merged",
            Promised("<= 100"), measured.cpu.ours);
  ours.Close();
  ours.Settle();
  PrintBytes(ours, theirs, static_cast<double>(sample_count));
  PrintRatio("rivals.copy", "COPY BINARY of the same samples in encoded rows, no index",
             Promised(">= 0.4"), {measured.rates.ours, measured.copy_rates});
  CompareQueries(ours, theirs, load.end_us, plan.queries);
  CompareFirstQueries(ours, theirs, load.end_us, plan.rounds * plan.day_hours);
}

void RunWide(const Plan& plan) {
  Measured measured;
  RemoteLoad remote;
  TickLoad load = MakeWide(0, plan.wide_minutes, remote.Adder());
  LoadedMaster ours("wide", load);
  Victoria theirs = StartVictoria();
  std::int64_t sample_count = 0;
  for (int round = 0; round < plan.rounds; ++round) {
    if (round > 0) {
      remote = RemoteLoad();
      load = MakeWide(round * plan.wide_minutes, plan.wide_minutes, remote.Adder());
    }
    TakeTurns(round, load, remote, ours, theirs, measured);
    sample_count += load.sample_count;
  }
  ours.CheckHeld(sample_count);
  DieUnless(theirs.CheckHeld(sample_count));
  PrintRatio("rivals.wide_throughput", "VictoriaMetrics, the same of 4544 series", Promised(">= 2"),
             measured.rates);
  TellGoal("wide_throughput", 2.5, measured.rates);
  PrintRatio("rivals.wide_cpu", "VictoriaMetrics, processor time per sample of 4544 series",
             Promised("<= 0.2"), measured.cpu);
  PrintOurs("rivals.wide_cpu_ns", "ns", "master and PostgreSQL per sample of 4544 series",
            Promised("<= 100"), measured.cpu.ours);
}

int Main(bool quick) {
  StayOnTwoCores();
  const Plan plan =
      quick ? Plan{.rounds = 3, .day_hours = 8, .wide_minutes = 2, .queries = 40} : Plan{};
  RunDay(plan);
  RunWide(plan);
  return 0;
}

}  // namespace
}  // namespace stepwell::bench

int main(int argc, char** argv) {
  const stepwell::bench::AskedOptions asked("rivals_bench", {stepwell::bench::AskedOptions::kQuick},
                                            argc, argv);
  return stepwell::bench::Main(asked.Has("--quick"));
}
