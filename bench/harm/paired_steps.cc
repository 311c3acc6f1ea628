#include "bench/harm/paired_steps.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <random>

#include "bench/harm/processor.h"

namespace stepwell::bench {
namespace {

// A layer's weights fit a second-level cache: what the scopes push out of the caches shows.
constexpr std::size_t kWidth = 256;
// So many columns at once, without a branch.
constexpr std::size_t kBlock = 16;
// Of a step, as a training has them: a batch is fetched, moved, run forward and back, the weights change.
constexpr int kParts = 8;
// What is to tell whether the pairs are off by themselves needs no more than to be seen.
constexpr int kControlEvery = 4;
// With kScale a value is what it was after each turn, exactly: all are powers of two. With a rounded scale
// (0.0078) values shrank to denormals within some hundred steps, whose multiplication is many times slower
// on some processors: what was measured then was no training's work, and a step longer than asked for.
constexpr float kWeight = 0.5F;
constexpr float kScale = 1 / (kWidth * kWeight);
static_assert(kWidth * kWeight * kScale == 1.0F);

std::int64_t VoluntarySwitches() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  return used.ru_nvcsw;
}

}  // namespace

Interval MedianInterval(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  const double half = 1.96 * std::sqrt(count) / 2;
  const auto at = [&](double rank) {
    return values[static_cast<std::size_t>(std::clamp(rank, 0.0, count - 1))];
  };
  return {at(std::floor(count / 2 - half)), at(count / 2), at(std::ceil(count / 2 + half))};
}

PairedSteps::PairedSteps(Recorder& recorder, std::chrono::microseconds step)
    : recorder_(recorder),
      weights_(kWidth * kWidth, kWeight),
      values_(kWidth, 1.0F),
      sums_(kWidth, 0.0F) {
  const auto wanted_ns = static_cast<double>(std::chrono::nanoseconds(step).count()) / kParts;
  Work(100);
  const std::uint64_t begin_ns = ClockNs(CLOCK_THREAD_CPUTIME_ID);
  Work(1000);
  const auto each_ns = static_cast<double>(ClockNs(CLOCK_THREAD_CPUTIME_ID) - begin_ns) / 1000;
  times_ = std::max(1, static_cast<int>(wanted_ns / each_ns));
}

// The one code of both sides: no side's is placed better in memory. One loop over all weights, not one over rows with one over columns
// within: a processor learns when an inner loop ends, over thousands of turns, and loses it to whatever else runs in between, for some
// 2 us. That depended on where the code lay, and was 0.02 to 0.1 % of a step of 50 ms, of bare reads of the clock, too.
[[gnu::noinline]] void PairedSteps::Work(int times) {
  for (int i = 0; i < times; ++i) {
    for (std::size_t at = 0; at < kWidth * kWidth; at += kBlock) {
      const float value = values_[at / kWidth];
      float* sums = &sums_[at % kWidth];
      const float* weights = &weights_[at];
      for (std::size_t column = 0; column < kBlock; ++column) {
        sums[column] += weights[column] * value;
      }
    }
    for (std::size_t column = 0; column < kWidth; ++column) {
      values_[column] = sums_[column] * kScale;
      sums_[column] = 0;
    }
    asm volatile("" : : : "memory");
  }
}

[[gnu::noinline]] PairedSteps::Spent PairedSteps::Step(Added added) {
  const bool with_scopes = added == Added::kScopes;
  const auto read_clock = [added] {
    if (added == Added::kClockReads) (void)ClockNs(CLOCK_MONOTONIC);
  };
  static const ScopeName kBatch("train_batch");
  static const ScopeName kPart("part");
  static const Series kLoss("training", "loss");
  const std::int64_t switches = VoluntarySwitches();
  // Not by the clock that the scopes read: its last read in a step would be a cheap one where there were others
  // before, and a dear one where there were none, by a microsecond.
  const std::uint64_t cpu_ns = ThreadCpuNs();
  const std::uint64_t begin = ReadCounter();
  stepwell_scope batch{};
  stepwell_scope part{};
  if (with_scopes) stepwell_scope_begin(&batch, kBatch.id());
  read_clock();
  for (int i = 0; i < kParts; ++i) {
    if (with_scopes) stepwell_scope_begin(&part, kPart.id());
    read_clock();
    Work(times_);
    if (with_scopes) stepwell_scope_end(&part);
    read_clock();
  }
  // A record, the batch's end and the step's.
  for (int i = 0; i < 3; ++i) read_clock();
  if (with_scopes) {
    stepwell_record(kLoss.id(), values_[0]);
    stepwell_scope_end(&batch);
    recorder_.StepEnd();
  }
  const auto wall = static_cast<double>(ReadCounter() - begin);
  const auto cpu = static_cast<double>(ThreadCpuNs() - cpu_ns);
  return {wall, cpu, VoluntarySwitches() - switches};
}

void PairedSteps::Pair(Added added, bool is_added_first, Pairs& pairs) {
  const Spent first = Step(is_added_first ? added : Added::kNothing);
  const Spent second = Step(is_added_first ? Added::kNothing : added);
  const Spent& with = is_added_first ? first : second;
  const Spent& without = is_added_first ? second : first;
  pairs.wall.push_back(100 * (with.wall / without.wall - 1));
  pairs.cpu.push_back(100 * (with.cpu_ns / without.cpu_ns - 1));
  pairs.switches_with += with.switches;
  pairs.switches_without += without.switches;
}

PairedSteps::Result PairedSteps::Measure(int pair_count, std::uint32_t seed) {
  std::minstd_rand random(seed);
  std::array<Added, 3> kinds = {Added::kNothing, Added::kClockReads, Added::kScopes};
  for (int i = 0; i < 30; ++i) (void)Step(kinds[static_cast<std::size_t>(i) % kinds.size()]);
  std::array<Pairs, 3> pairs;
  for (int i = 0; i < pair_count; ++i) {
    std::shuffle(kinds.begin(), kinds.end(), random);
    for (const Added added : kinds) {
      if (added != Added::kScopes && i % kControlEvery != 0) continue;
      Pair(added, random() % 2 == 0, pairs[static_cast<std::size_t>(added)]);
    }
  }
  const auto percent = [&](Added added) -> Percent {
    Pairs& of = pairs[static_cast<std::size_t>(added)];
    return {MedianInterval(std::move(of.wall)), MedianInterval(std::move(of.cpu))};
  };
  const Pairs& scopes = pairs[static_cast<std::size_t>(Added::kScopes)];
  return {.scopes = percent(Added::kScopes),
          .clock = percent(Added::kClockReads),
          .nothing = percent(Added::kNothing),
          .switches_with = scopes.switches_with,
          .switches_without = scopes.switches_without};
}

}  // namespace stepwell::bench
