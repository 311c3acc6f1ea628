// What does a sample of load `day` (or, with --wide, of `wide`) cost the servers, and which part of it is whose? The load of
// bench/rivals alone: a real master on a real PostgreSQL, the client on the same two cores; a round is from the first byte
// until all is merged and rests.
//   day.cpu_ns        processor time of master and PostgreSQL per sample
//   day.master_ns, .master_system_ns, .postgres_ns, .postgres_system_ns  its four parts; PostgreSQL is all below the master
//   day.faults        pages that were touched for the first time, of 1000 samples: on a virtual machine whose host keeps its
//                     page tables each costs microseconds, on others a tenth of that
//   day.wal           bytes of WAL per sample
//   wide.cpu_ns, ...  the same of load `wide`
// The first round is told on stderr and does not count: buffers and files are new there.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "bench/load/asked_options.h"
#include "bench/load/bench_run.h"
#include "bench/load/loaded_master.h"
#include "bench/load/pairs.h"
#include "bench/load/process_cpu.h"
#include "bench/load/tick_load.h"

namespace stepwell::bench {
namespace {

struct Use {
  double master_user = 0;
  double master_system = 0;
  double postgres_user = 0;
  double postgres_system = 0;
  double faults = 0;
  double wal_bytes = 0;

  Use Since(const Use& before) const {
    return {master_user - before.master_user,
            master_system - before.master_system,
            postgres_user - before.postgres_user,
            postgres_system - before.postgres_system,
            faults - before.faults,
            wal_bytes - before.wal_bytes};
  }
  double seconds() const { return master_user + master_system + postgres_user + postgres_system; }
};

Use ReadUse(LoadedMaster& ours) {
  Use use;
  const std::vector<ProcessUse> all = TreeUse(ours.pid());
  for (const ProcessUse& each : all) {
    const bool is_master = each.pid == ours.pid();
    (is_master ? use.master_user : use.postgres_user) += each.user_seconds;
    (is_master ? use.master_system : use.postgres_system) += each.system_seconds;
    use.faults += static_cast<double>(each.minor_faults);
  }
  const auto wal = ours.sql().Exec("select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8");
  DieUnless(wal.status());
  use.wal_bytes = wal->Float64(0, 0);
  return use;
}

struct Runs {
  std::vector<double> cpu, master, master_system, postgres, postgres_system, faults, wal;

  void Add(const Use& use, double samples) {
    const auto ns = [samples](double seconds) { return seconds / samples * 1e9; };
    cpu.push_back(ns(use.seconds()));
    master.push_back(ns(use.master_user));
    master_system.push_back(ns(use.master_system));
    postgres.push_back(ns(use.postgres_user));
    postgres_system.push_back(ns(use.postgres_system));
    faults.push_back(use.faults / samples * 1000);
    wal.push_back(use.wal_bytes / samples);
  }
};

void Tell(int round, const Use& use, double acked_seconds, double samples) {
  const auto ns = [samples](double seconds) { return seconds / samples * 1e9; };
  std::fprintf(stderr,
               "round %d: %.0f ns (%.0f until the last ack); master %.0f and %.0f system, "
               "PostgreSQL %.0f and %.0f; "
               "%.0f faults, WAL %.0f MB\n",
               round, ns(use.seconds()), ns(acked_seconds), ns(use.master_user),
               ns(use.master_system), ns(use.postgres_user), ns(use.postgres_system), use.faults,
               use.wal_bytes / 1e6);
}

struct Plan {
  std::string load;
  int rounds = 0;
  std::function<TickLoad(int round)> make;
};

Plan DayPlan(bool quick) {
  const int hours = quick ? 8 : 24;
  return {"day", quick ? 3 : 5, [hours](int round) { return MakeDay(round * hours, hours); }};
}

Plan WidePlan(bool quick) {
  const int minutes = quick ? 2 : 10;
  return {"wide", quick ? 3 : 5,
          [minutes](int round) { return MakeWide(round * minutes, minutes); }};
}

void Print(const Plan& plan, const Runs& runs) {
  const std::string against = "a sample of load `" + plan.load + "`, alone, until all is merged";
  const auto print = [&](const char* name, const char* unit, const char* part, const char* bar,
                         const std::vector<double>& values) {
    PrintOurs(plan.load + "." + name, unit, against + ": " + part, OwnBar(bar), values);
  };
  print("cpu_ns", "ns", "master and PostgreSQL", "<= 100", runs.cpu);
  print("master_ns", "ns", "the master's own time", "<= 55", runs.master);
  print("master_system_ns", "ns", "the kernel's for the master", "<= 15", runs.master_system);
  print("postgres_ns", "ns", "PostgreSQL's own time", "<= 20", runs.postgres);
  print("postgres_system_ns", "ns", "the kernel's for PostgreSQL", "<= 15", runs.postgres_system);
  print("faults", "pages/1000 samples", "pages touched first", "<= 10", runs.faults);
  print("wal", "bytes/sample", "WAL", "<= 7", runs.wal);
}

int Main(const Plan& plan) {
  StayOnTwoCores();
  TickLoad load = plan.make(0);
  LoadedMaster ours(plan.load, load);
  Runs runs;
  std::int64_t sample_count = 0;
  for (int round = 0; round <= plan.rounds; ++round) {
    if (round > 0) load = plan.make(round);
    const auto samples = static_cast<double>(load.sample_count);
    const Use before = ReadUse(ours);
    ours.Load(load);
    const double acked_seconds = ReadUse(ours).Since(before).seconds();
    ours.Settle();
    const Use use = ReadUse(ours).Since(before);
    Tell(round, use, acked_seconds, samples);
    if (round > 0) runs.Add(use, samples);
    sample_count += load.sample_count;
  }
  ours.CheckHeld(sample_count);
  Print(plan, runs);
  return 0;
}

}  // namespace
}  // namespace stepwell::bench

int main(int argc, char** argv) {
  const stepwell::bench::AskedOptions asked(
      "day_bench",
      {stepwell::bench::AskedOptions::kQuick,
       {"--wide", "the load whose chunks have few values of each series"}},
      argc, argv);
  const bool quick = asked.Has("--quick");
  return stepwell::bench::Main(asked.Has("--wide") ? stepwell::bench::WidePlan(quick)
                                                   : stepwell::bench::DayPlan(quick));
}
