// What does a question of a chart cost before a change and after it? Two masters, each of a binary of its
// own, hold the same day of the load `day` and are asked in turns through the real RPC:
//   STEPWELL_BIN=build/release/bin STEPWELL_BIN_BEFORE=older/bin build/release/bin/reads_bench
//   reads.one_raw, .one_rollups    one series, 24 h to 1000 buckets, from samples and from rollups
//   reads.gpus_raw, .gpus_rollups  64 series, the last hour to 500 buckets, likewise
//   reads.latest                   newest values of all 190 series
// `reads_bench latest` asks that one alone; --quick loads 6 h.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/load/bench_run.h"
#include "bench/load/day_questions.h"
#include "bench/load/loaded_master.h"
#include "bench/load/pairs.h"
#include "bench/load/tick_load.h"

namespace stepwell::bench {
namespace {

constexpr std::int64_t kHourUs = 3'600'000'000;

double MillisecondsOf(const std::function<void()>& work) {
  const absl::Time begin = absl::Now();
  work();
  return absl::ToDoubleMilliseconds(absl::Now() - begin);
}

int Main(bool quick, const std::string& only) {
  StayOnTwoCores();
  const int hours = quick ? 6 : 24;
  const char* before_bin = std::getenv("STEPWELL_BIN_BEFORE");
  if (before_bin == nullptr) {
    std::fprintf(stderr,
                 "reads: STEPWELL_BIN_BEFORE names no folder: there is nothing to compare\n");
    return 0;
  }
  const char* after_bin = std::getenv("STEPWELL_BIN");
  const std::string after_folder = after_bin != nullptr ? after_bin : "build/release/bin";
  const TickLoad load = MakeDay(0, hours);
  setenv("STEPWELL_BIN", before_bin, 1);
  LoadedMaster before("day", load);
  setenv("STEPWELL_BIN", after_folder.c_str(), 1);
  LoadedMaster after("day", load);
  for (LoadedMaster* each : {&before, &after}) {
    each->Load(load);
    each->Close();
    each->Settle();
  }
  const std::int64_t end_us = kLoadStartUs + hours * kHourUs;
  const auto compare = [&](const std::string& name, const std::function<void(LoadedMaster&)>& ask) {
    if (!only.empty() && name != only) return;
    Pairs pairs;
    constexpr int kRounds = 200;
    double our_cpu = 0;
    double their_cpu = 0;
    for (int i = -5; i < kRounds; ++i) {
      if (i == 0) our_cpu = -after.CpuSeconds(), their_cpu = -before.CpuSeconds();  // both warm
      const double ours = MillisecondsOf([&] { ask(after); });
      const double theirs = MillisecondsOf([&] { ask(before); });
      if (i < 0) continue;
      pairs.ours.push_back(ours);
      pairs.theirs.push_back(theirs);
    }
    our_cpu += after.CpuSeconds();
    their_cpu += before.CpuSeconds();
    std::fprintf(stderr, "%s: %.3f ms (processor %.2f), before %.3f ms (%.2f)\n", name.c_str(),
                 Median(pairs.ours), our_cpu * 1000 / kRounds, Median(pairs.theirs),
                 their_cpu * 1000 / kRounds);
    PrintRatio("reads." + name, "the binary before", OwnBar("< 1"), pairs);
  };
  compare("one_raw", [&](LoadedMaster& master) {
    master.Ask(OneSeries(kLoadStartUs, end_us, v1::RESOLUTION_RAW));
  });
  compare("one_rollups", [&](LoadedMaster& master) {
    master.Ask(OneSeries(kLoadStartUs, end_us, v1::RESOLUTION_UNSPECIFIED));
  });
  compare("gpus_raw", [&](LoadedMaster& master) {
    master.Ask(AllGpus(end_us - kHourUs, end_us, v1::RESOLUTION_RAW));
  });
  compare("gpus_rollups", [&](LoadedMaster& master) {
    master.Ask(AllGpus(end_us - kHourUs, end_us, v1::RESOLUTION_10_SECONDS));
  });
  compare("latest", [](LoadedMaster& master) {
    DieUnless(master.AskLatest() == 190 ? absl::OkStatus() : absl::NotFoundError("newest values"));
  });
  return 0;
}

}  // namespace
}  // namespace stepwell::bench

int main(int argc, char** argv) {
  bool quick = false;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--quick") {
      quick = true;
    } else {
      only = argument;
    }
  }
  return stepwell::bench::Main(quick, only);
}
