#include "bench/rivals/rival_queries.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/load/bench_run.h"
#include "bench/load/day_questions.h"
#include "bench/load/pairs.h"

namespace stepwell::bench {
namespace {

constexpr std::int64_t kHourUs = 3'600'000'000;

double MillisecondsOf(const std::function<void()>& work) {
  const absl::Time begin = absl::Now();
  work();
  return absl::ToDoubleMilliseconds(absl::Now() - begin);
}

// In turns, block by block.
constexpr int kBlocks = 5;

struct Side {
  std::vector<double> ms;  // the median of each block
  double least_ms = std::numeric_limits<double>::infinity();
  double cpu_seconds = 0;
};

class Questions {
 public:
  Questions(LoadedMaster& ours, Victoria& theirs, int questions)
      : ours_(ours), theirs_(theirs), connection_(theirs.port()), questions_(questions / kBlocks) {}

  // `samples` is what ours must have been computed from.
  void CompareBuckets(const std::string& name, const std::string& what, const Bar& bar,
                      const v1::QueryBucketsRequest& request, std::uint64_t samples,
                      const std::string& target) {
    const auto ask = [&] { DieUnless(CheckBuckets(request, ours_.Ask(request), samples)); };
    Compare(name, what, bar, ask, target);
  }
  void CompareLatest(const std::string& target) {
    const auto ask = [&] {
      const int found = ours_.AskLatest();
      if (found != 190) DieUnless(absl::NotFoundError(absl::StrCat(found, " latest values")));
    };
    Compare("latest", "newest values of 190 series", Promised("<= 0.1"), ask, target);
  }

 private:
  void Compare(const std::string& name, const std::string& what, const Bar& bar,
               const std::function<void()>& ours, const std::string& target) {
    std::size_t bytes = 0;
    const auto theirs = [&] {
      const auto body = connection_.Get(target);
      DieUnless(body.status());
      bytes = body->size();
    };
    Side our_side, their_side;
    for (int block = 0; block < kBlocks; ++block) {
      Ask(
          ours, [this] { return ours_.CpuSeconds(); }, our_side);
      Ask(
          theirs, [this] { return theirs_.CpuSeconds(); }, their_side);
    }
    if (bytes < 1000) DieUnless(absl::NotFoundError("VictoriaMetrics found nothing: " + target));
    std::fprintf(stderr,
                 "%s: %.3f ms (least %.3f, processor %.2f), VictoriaMetrics %.3f ms (%.3f, %.2f; "
                 "%zu bytes)\n",
                 name.c_str(), Median(our_side.ms), our_side.least_ms, CpuMs(our_side),
                 Median(their_side.ms), their_side.least_ms, CpuMs(their_side), bytes);
    PrintRatio("rivals." + name, "VictoriaMetrics: " + what, bar, {our_side.ms, their_side.ms});
  }

  // A block of questions: two that find the processors' caches as the other side left them, then those
  // that count.
  void Ask(const std::function<void()>& question, const std::function<double()>& cpu_seconds,
           Side& side) const {
    question();
    question();
    std::vector<double> ms;
    const double begin = cpu_seconds();
    for (int i = 0; i < questions_; ++i) ms.push_back(MillisecondsOf(question));
    side.cpu_seconds += cpu_seconds() - begin;
    side.ms.push_back(Median(ms));
    side.least_ms = std::min(side.least_ms, *std::min_element(ms.begin(), ms.end()));
  }
  double CpuMs(const Side& side) const { return side.cpu_seconds * 1000 / kBlocks / questions_; }

  LoadedMaster& ours_;
  const Victoria& theirs_;
  Victoria::Connection connection_;
  const int questions_;  // in a block
};

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text)
    absl::StrAppend(&escaped, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
  return escaped;
}

// Its caches of answers are left out, as ours has none.
std::string RangeTarget(const std::string& query, std::int64_t start_us, std::int64_t end_us,
                        double step_s) {
  return absl::StrCat("/api/v1/query_range?nocache=1&query=", Escaped(query),
                      "&start=", start_us / 1'000'000, "&end=", end_us / 1'000'000,
                      "&step=", step_s, "s");
}

std::string TheirDay(std::int64_t end_us, DayGpu gpu = {}) {
  return RangeTarget(absl::StrCat("rollup(gpu_util{device=\"", gpu.device, "\",writer=\"",
                                  gpu.machine, "\",field=\"value\"}[86.4s])"),
                     end_us - 24 * kHourUs, end_us, 86.4);
}

std::string TheirHour(std::int64_t end_us) {
  return RangeTarget("rollup(gpu_util{field=\"value\"}[7.2s])", end_us - kHourUs, end_us, 7.2);
}

// One question of ours and the same of theirs, each of which nobody has asked before.
class FirstQuestions {
 public:
  FirstQuestions(LoadedMaster& ours, Victoria& theirs) : ours_(ours), theirs_(theirs) {
    ours.Restart();
    DieUnless(theirs.Restart());
    AwaitIdle([&] { return ours.CpuSeconds() + theirs.CpuSeconds(); });
    connection_ = std::make_unique<Victoria::Connection>(theirs.port());
  }

  void Ask(const v1::QueryBucketsRequest& request, std::uint64_t samples,
           const std::string& target) {
    const auto our_turn = [&] {
      ms_.ours.push_back(
          MillisecondsOf([&] { DieUnless(CheckBuckets(request, ours_.Ask(request), samples)); }));
    };
    const auto their_turn = [&] {
      ms_.theirs.push_back(MillisecondsOf([&] {
        const auto body = connection_->Get(target);
        DieUnless(body.status());
        if (body->size() < 1000) {
          DieUnless(absl::NotFoundError("VictoriaMetrics found nothing: " + target));
        }
      }));
    };
    if (ms_.ours.size() % 2 == 0) {
      our_turn();
      their_turn();
    } else {
      their_turn();
      our_turn();
    }
  }

  void Print(const std::string& name, const std::string& what, const Bar& bar) const {
    std::fprintf(stderr,
                 "%s: %.3f ms (the very first %.3f), VictoriaMetrics %.3f ms (%.3f), n=%zu\n",
                 name.c_str(), Median(ms_.ours), ms_.ours.front(), Median(ms_.theirs),
                 ms_.theirs.front(), ms_.ours.size());
    PrintRatio("rivals." + name, "VictoriaMetrics, both asked for the first time: " + what, bar,
               ms_);
  }

 private:
  LoadedMaster& ours_;
  Victoria& theirs_;
  std::unique_ptr<Victoria::Connection> connection_;
  Pairs ms_;
};

}  // namespace

void CompareQueries(LoadedMaster& ours, Victoria& theirs, std::int64_t end_us, int questions_each) {
  Questions questions(ours, theirs, questions_each);
  const std::int64_t day_us = end_us - 24 * kHourUs;
  const auto day = [&](v1::Resolution resolution) { return OneSeries(day_us, end_us, resolution); };
  const auto hour = [&](v1::Resolution resolution) {
    return AllGpus(end_us - kHourUs, end_us, resolution);
  };
  const std::string their_day = TheirDay(end_us);
  const std::string their_hour = TheirHour(end_us);
  questions.CompareBuckets("series_day_raw", "one series, 24 h to 1000 buckets, from samples",
                           Promised("<= 0.6"), day(v1::RESOLUTION_RAW), 86'400, their_day);
  questions.CompareBuckets("series_day_rollups", "the same, ours from rollups of 10 s",
                           Promised("<= 0.15"), day(v1::RESOLUTION_10_SECONDS), 86'400, their_day);
  questions.CompareBuckets("gpus_hour_raw", "64 series, 1 h to 500 buckets, from samples",
                           Promised("<= 0.25"), hour(v1::RESOLUTION_RAW), 230'400, their_hour);
  questions.CompareBuckets("gpus_hour_rollups", "the same, ours the 360 rollups of 10 s",
                           Promised("<= 0.1"), hour(v1::RESOLUTION_10_SECONDS), 230'400,
                           their_hour);
  questions.CompareLatest(absl::StrCat("/api/v1/query?nocache=1&query=",
                                       Escaped("{field=\"value\"}"), "&time=", end_us / 1'000'000));
}

void CompareFirstQueries(LoadedMaster& ours, Victoria& theirs, std::int64_t end_us, int hours) {
  FirstQuestions days(ours, theirs);
  for (int i = 0; i < kDayGpus; ++i) {
    days.Ask(OneSeries(end_us - 24 * kHourUs, end_us, v1::RESOLUTION_RAW, GpuAt(i)), 86'400,
             TheirDay(end_us, GpuAt(i)));
  }
  days.Print("series_day_first", "one series, 24 h to 1000 buckets, from samples",
             OwnBar("<= 0.6"));
  FirstQuestions gpus(ours, theirs);
  for (int i = 0; i < std::min(hours / 2, 24); ++i) {
    const std::int64_t until_us = end_us - 2 * i * kHourUs;
    gpus.Ask(AllGpus(until_us - kHourUs, until_us, v1::RESOLUTION_RAW), 230'400,
             TheirHour(until_us));
  }
  gpus.Print("gpus_hour_first", "64 series, 1 h to 500 buckets, from samples", OwnBar("<= 0.25"));
}

}  // namespace stepwell::bench
