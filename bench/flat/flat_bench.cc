// Does a trial stay as cheap when it has grown, and beside many others? Three masters, each with a
// PostgreSQL of its own: one holds 10^7 samples of the load `day`, one 10^9 (10^8 with --quick) of which
// the newest 10^7 are the same, one the same 10^7 beside 1000 other trials, of which 20 live. In turns:
//   flat.cpu_grown, .cpu_crowded    processor time of master and PostgreSQL per sample that comes on top,
//                                   folded and merged, over that of the first
//   flat.load_minutes               how long the 10^9 took to load
//   flat.one_raw_grown, ...         time of a chart's questions over that of the first: one series of 24 h (18 with
//                                   --quick; each side has that much since its processor time was measured),
//                                   64 series of 1 h, from samples and from rollups, newest values; asked
//                                   before, so that masters remember the rows
//   flat.one_first_grown, ...       the same of hours that nobody has asked about: one series, 64 series
//   flat.one_raw_restart_grown, ... of masters that have read nothing since their start: newest values, one
//                                   series of as many hours, 64 series of 1 h from rollups
#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/flat/crowd.h"
#include "bench/load/asked_options.h"
#include "bench/load/bench_run.h"
#include "bench/load/day_questions.h"
#include "bench/load/loaded_master.h"
#include "bench/load/pairs.h"
#include "bench/load/tick_load.h"

namespace stepwell::bench {
namespace {

constexpr int kSmallHours = 12;  // 10^7 samples
constexpr std::int64_t kHourUs = 3'600'000'000;
// What the load has of a series, and of the 64 GPUs.
constexpr std::uint64_t kHourSamples = 3600;
constexpr char kAgainstGrown[] = "the same trial of 10^7 samples";
constexpr char kAgainstCrowded[] = "the same trial alone";

struct Plan {
  int grown_hours = 1200;
  int rounds = 5;
  int round_hours = 4;
  int questions = 60;
  int restarts = 7;
};

enum Side { kSmall, kGrown, kCrowded, kSides };
using Runs = std::array<std::vector<double>, kSides>;

void Print(const std::string& what, const Runs& runs) {
  std::fprintf(stderr, "%s: %.3f, grown %.3f, crowded %.3f\n", what.c_str(), Median(runs[kSmall]),
               Median(runs[kGrown]), Median(runs[kCrowded]));
  PrintRatio(absl::StrCat("flat.", what, "_grown"), kAgainstGrown, Promised("<= 1.15"),
             {runs[kGrown], runs[kSmall]});
  PrintRatio(absl::StrCat("flat.", what, "_crowded"), kAgainstCrowded, Promised("<= 1.15"),
             {runs[kCrowded], runs[kSmall]});
}

class Flat {
 public:
  explicit Flat(const Plan& plan) : plan_(plan), next_hour_(plan.grown_hours) {
    const TickLoad newest = MakeDay(next_hour_ - kSmallHours, kSmallHours);
    // Merges come with folds: at the default much of the time would be waiting for one.
    const std::vector<std::string> flags = {"--fold-interval", "1s"};
    for (auto& side : sides_) side = std::make_unique<LoadedMaster>("day", newest, flags);
    const absl::Time begin = absl::Now();
    for (int hour = 0; hour < next_hour_ - kSmallHours; hour += kSmallHours) {
      sides_[kGrown]->Load(MakeDay(hour, kSmallHours));
      std::fprintf(stderr, "grown: %d of %d h after %.0f s\n", hour + kSmallHours, next_hour_,
                   absl::ToDoubleSeconds(absl::Now() - begin));
    }
    grown_minutes_ = absl::ToDoubleMinutes(absl::Now() - begin);
    crowd_ = std::make_unique<Crowd>(sides_[kCrowded]->grpc_address());
    for (auto& side : sides_) {
      side->Load(newest);
      side->Settle();
    }
    std::fprintf(stderr, "loaded and merged after %.0f s\n",
                 absl::ToDoubleSeconds(absl::Now() - begin));
  }

  // Made up, sent and acked, while what came is folded and merged.
  void PrintLoad(bool quick) const {
    PrintOnce("flat.load_minutes", "minutes",
              quick ? "10^8 samples of one trial, which may take a tenth of what 10^9 may"
                    : "10^9 samples of one trial until the last ack",
              Promised(quick ? "<= 2" : "<= 20"), grown_minutes_, "minutes of load");
  }

  void CompareIngest() {
    Runs cpu;
    for (int round = 0; round < plan_.rounds; ++round, next_hour_ += plan_.round_hours) {
      const TickLoad load = MakeDay(next_hour_, plan_.round_hours);
      for (int i = 0; i < kSides; ++i) {
        LoadedMaster& side = *sides_[static_cast<std::size_t>(i)];
        const double before = side.CpuSeconds();
        const std::int64_t of_others = i == kCrowded ? crowd_->SendOne() : 0;
        side.Load(load);
        side.Settle();
        cpu[static_cast<std::size_t>(i)].push_back(
            (side.CpuSeconds() - before) * 1e9 /
            static_cast<double>(load.sample_count + of_others));
      }
    }
    Print("cpu", cpu);
  }

  void CompareQuestions() {
    const std::int64_t end_us = kLoadStartUs + next_hour_ * kHourUs;
    const auto buckets = [&](const std::string& what, const v1::QueryBucketsRequest& request,
                             std::uint64_t samples) {
      Compare(what, [&](LoadedMaster& side) { AskBuckets(side, request, samples); });
    };
    const std::int64_t day_us = end_us - HoursOfOne() * kHourUs;
    const std::uint64_t of_day = static_cast<std::uint64_t>(HoursOfOne()) * kHourSamples;
    const std::uint64_t of_gpus = kDayGpus * kHourSamples;
    buckets("one_raw", OneSeries(day_us, end_us, v1::RESOLUTION_RAW), of_day);
    buckets("one_rollups", OneSeries(day_us, end_us, v1::RESOLUTION_10_SECONDS), of_day);
    buckets("gpus_raw", AllGpus(end_us - kHourUs, end_us, v1::RESOLUTION_RAW), of_gpus);
    buckets("gpus_rollups", AllGpus(end_us - kHourUs, end_us, v1::RESOLUTION_10_SECONDS), of_gpus);
    Compare("latest", AskLatest);
  }

  // Of the hours that CompareIngest loaded one after the other, each once, before anything else was asked.
  void CompareFirstQuestions() {
    Runs one;
    Runs gpus;
    for (int hour = 0; hour < plan_.rounds * plan_.round_hours; ++hour) {
      const std::int64_t end_us = kLoadStartUs + (next_hour_ - hour) * kHourUs;
      const bool is_of_one = hour % 2 == 0;
      const v1::QueryBucketsRequest request =
          is_of_one ? OneSeries(end_us - kHourUs, end_us, v1::RESOLUTION_RAW)
                    : AllGpus(end_us - kHourUs, end_us, v1::RESOLUTION_RAW);
      // Who is asked first has the others' work in the processor's caches no more than they have its.
      const std::uint64_t samples = (is_of_one ? 1 : kDayGpus) * kHourSamples;
      AskInTurns(
          hour / 2, [&](LoadedMaster& side) { AskBuckets(side, request, samples); },
          is_of_one ? one : gpus);
    }
    Print("one_first", one);
    Print("gpus_first", gpus);
  }

  // After each restart another kind of question is the first of all.
  void CompareAfterRestarts() {
    const int hours = HoursOfOne();
    const std::int64_t end_us = kLoadStartUs + next_hour_ * kHourUs;
    enum Kind : std::size_t { kLatest, kOneRaw, kOneRollups, kGpusRollups, kKinds };
    std::array<Runs, kKinds> runs;
    for (auto& side : sides_) {
      side->Close();
      side->Settle();
    }
    for (int restart = 0; restart < plan_.restarts; ++restart) {
      RestartAll();
      const auto ask_one = [&](Kind kind, v1::Resolution resolution, int first_gpu) {
        for (int i = 0; i < kSeriesAtOnce; ++i) {
          const v1::QueryBucketsRequest request =
              OneSeries(end_us - hours * kHourUs, end_us, resolution, GpuAt(first_gpu + i));
          AskInTurns(
              restart + i,
              [&](LoadedMaster& side) {
                AskBuckets(side, request, static_cast<std::uint64_t>(hours) * kHourSamples);
              },
              runs[kind]);
        }
      };
      const std::array<std::function<void()>, kKinds> kinds = {
          [&] { AskInTurns(restart, AskLatest, runs[kLatest]); },
          [&] { ask_one(kOneRaw, v1::RESOLUTION_RAW, 0); },
          [&] { ask_one(kOneRollups, v1::RESOLUTION_10_SECONDS, kSeriesAtOnce); },
          [&] {
            const std::int64_t until_us = end_us - restart * kHourUs;
            const v1::QueryBucketsRequest request =
                AllGpus(until_us - kHourUs, until_us, v1::RESOLUTION_10_SECONDS);
            AskInTurns(
                restart,
                [&](LoadedMaster& side) { AskBuckets(side, request, kDayGpus * kHourSamples); },
                runs[kGpusRollups]);
          }};
      for (std::size_t i = 0; i < kKinds; ++i) {
        kinds[(static_cast<std::size_t>(restart) + i) % kKinds]();
      }
    }
    std::fprintf(stderr, "after %d restarts, one series of %d h:\n", plan_.restarts, hours);
    Print("latest_restart", runs[kLatest]);
    Print("one_raw_restart", runs[kOneRaw]);
    Print("one_rollups_restart", runs[kOneRollups]);
    Print("gpus_rollups_restart", runs[kGpusRollups]);
  }

 private:
  // Of each kind after a restart: the first of them find nothing at all, the others not their own rows.
  static constexpr int kSeriesAtOnce = 8;

  // A day, or what all sides have of it once CompareIngest is over.
  int HoursOfOne() const { return std::min(24, kSmallHours + plan_.rounds * plan_.round_hours); }

  static void AskBuckets(LoadedMaster& side, const v1::QueryBucketsRequest& request,
                         std::uint64_t samples) {
    DieUnless(CheckBuckets(request, side.Ask(request), samples));
  }
  static void AskLatest(LoadedMaster& side) {
    if (side.AskLatest() != 190) DieUnless(absl::NotFoundError("not 190 newest values"));
  }

  // Once of each; who is asked first changes with `turn`.
  void AskInTurns(int turn, const std::function<void(LoadedMaster&)>& ask, Runs& ms) {
    for (int i = 0; i < kSides; ++i) {
      const auto side = static_cast<std::size_t>((turn + i) % kSides);
      const absl::Time begin = absl::Now();
      ask(*sides_[side]);
      ms[side].push_back(absl::ToDoubleMilliseconds(absl::Now() - begin));
    }
  }

  void RestartAll() {
    crowd_->LeaveThem();
    for (auto& side : sides_) side->Restart();
    crowd_->ComeAgain(sides_[kCrowded]->grpc_address());
    AwaitIdle([this] {
      double seconds = 0;
      for (const auto& side : sides_) seconds += side->CpuSeconds();
      return seconds;
    });
  }

  void Compare(const std::string& what, const std::function<void(LoadedMaster&)>& ask) {
    Runs ms;
    for (int round = -3; round < plan_.questions; ++round) {
      for (std::size_t i = 0; i < kSides; ++i) {
        const absl::Time begin = absl::Now();
        ask(*sides_[i]);
        if (round >= 0) ms[i].push_back(absl::ToDoubleMilliseconds(absl::Now() - begin));
      }
    }
    Print(what, ms);
  }

  const Plan plan_;
  std::array<std::unique_ptr<LoadedMaster>, kSides> sides_;
  std::unique_ptr<Crowd> crowd_;
  int next_hour_;
  double grown_minutes_ = 0;
};

int Main(bool quick) {
  StayOnTwoCores();
  Flat flat(
      quick
          ? Plan{.grown_hours = 120, .rounds = 3, .round_hours = 2, .questions = 30, .restarts = 3}
          : Plan{});
  flat.PrintLoad(quick);
  flat.CompareIngest();
  flat.CompareFirstQuestions();
  flat.CompareQuestions();
  flat.CompareAfterRestarts();
  return 0;
}

}  // namespace
}  // namespace stepwell::bench

int main(int argc, char** argv) {
  const stepwell::bench::AskedOptions asked("flat_bench", {stepwell::bench::AskedOptions::kQuick},
                                            argc, argv);
  return stepwell::bench::Main(asked.Has("--quick"));
}
