// CallTail: the slowest of many single calls, beside the slowest turns of an empty loop in between. A turn of that
// lasts as long as a call: what comes at its time (a timer, a neighbour) hits a turn the likelier the longer it is.
// Confined to one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/harm/processor.h"

namespace stepwell::bench {

class CallTail {
 public:
  struct Result {
    double call_ns = 0;
    double empty_ns = 0;
    // Of calls that another one came right before: the first after a pause finds its lines in no cache.
    double warm_ns = 0;
  };

  // The 99.99th percentile of `count` calls and of as many turns of nothing, each with the two looks at
  // the counter that are needed to time it. Blocks of both take turns; between them the thread goes on
  // looking at the clock, so that calls come at some 100,000 a second and the processor never rests.
  // REQUIRES: count >= 10,000.
  template <typename Call>
  static Result Measure(std::size_t count, Call call) {
    std::vector<std::uint32_t> calls;
    std::vector<std::uint32_t> empty;
    calls.reserve(count);
    empty.reserve(count);
    const double ns = NsPerCount();
    const std::uint64_t as_long = MedianCounts(call) - MedianCounts([] {});
    std::uint64_t due_ns = ClockNs(CLOCK_MONOTONIC);
    const auto nothing = [as_long] {
      const std::uint64_t begin = ReadCounter();
      while (ReadCounter() - begin < as_long) {
      }
    };
    // Whoever comes first after a pause finds the caches as others left them.
    for (bool calls_first = true; calls.size() < count; calls_first = !calls_first) {
      if (calls_first) Block(calls, call);
      Block(empty, nothing);
      if (!calls_first) Block(calls, call);
      due_ns += kBlockNs;
      while (ClockNs(CLOCK_MONOTONIC) < due_ns) {
      }
    }
    std::vector<std::uint32_t> warm;
    warm.reserve(count);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (i % kBlock != 0) warm.push_back(calls[i]);
    }
    return {ns * Tail(std::move(calls)), ns * Tail(std::move(empty)), ns * Tail(std::move(warm))};
  }

 private:
  static constexpr int kBlock = 1000;
  static constexpr std::uint64_t kBlockNs = 10'000'000;

  template <typename Call>
  static void Block(std::vector<std::uint32_t>& spent, Call call) {
    for (int i = 0; i < kBlock; ++i) {
      const std::uint64_t begin = ReadCounter();
      call();
      spent.push_back(static_cast<std::uint32_t>(ReadCounter() - begin));
    }
  }

  template <typename Call>
  static std::uint64_t MedianCounts(Call call) {
    std::vector<std::uint32_t> spent;
    Block(spent, call);
    std::nth_element(spent.begin(), spent.begin() + kBlock / 2, spent.end());
    return spent[kBlock / 2];
  }

  static double Tail(std::vector<std::uint32_t> values) {
    const std::size_t rank = values.size() - 1 - values.size() / 10'000;
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rank),
                     values.end());
    return values[rank];
  }
};

}  // namespace stepwell::bench
