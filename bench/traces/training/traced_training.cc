// What traces_bench lets train: steps of work and spans, so many for each line of its input, which are answered with what a
// span took: the median of the steps, and the mean.
//
//   traced_training SPOOL TRIAL
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "bench/harm/processor.h"
#include "stepwell/stepwell.h"

namespace {

using stepwell::bench::ClockNs;

// A step as a training has it: work that fills a second-level cache, then spans, 25,000 of them a second.
constexpr int kSpansOfStep = 50;
constexpr std::chrono::microseconds kWork{2000};
constexpr std::size_t kWorkFloats = 64 << 10;

void Work(std::vector<float>& values) {
  const auto until = std::chrono::steady_clock::now() + kWork;
  while (std::chrono::steady_clock::now() < until) {
    for (float& value : values) value = value * 0.5F + 1.0F;
  }
}

// Of a step, a span.
double SpansNs() {
  const std::uint64_t begin = ClockNs(CLOCK_MONOTONIC);
  for (int i = 0; i < kSpansOfStep; ++i) {
    STEPWELL_SCOPE("part");
  }
  return static_cast<double>(ClockNs(CLOCK_MONOTONIC) - begin) / kSpansOfStep;
}

int Train(stepwell::Recorder& recorder) {
  std::vector<float> values(kWorkFloats, 1.0F);
  recorder.StepBegin();
  int steps = 0;
  while (std::scanf("%d", &steps) == 1 && steps > 0) {
    std::vector<double> spans;
    double sum = 0;
    for (int i = 0; i < steps; ++i) {
      Work(values);
      spans.push_back(SpansNs());
      sum += spans.back();
      recorder.StepEnd();
    }
    if (recorder.dropped_count() > 0) {
      std::fprintf(stderr, "traced_training: events were lost\n");
      return 1;
    }
    std::nth_element(spans.begin(), spans.begin() + steps / 2, spans.end());
    std::printf("%.3f %.3f\n", spans[static_cast<std::size_t>(steps / 2)], sum / steps);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  stepwell::Recorder recorder({.spool_dir = argv[1],
                               .trial = argv[2],
                               .exit_wait = std::chrono::milliseconds(0),
                               .start_agent = false});
  if (recorder.state() != STEPWELL_RECORDING) {
    std::fprintf(stderr, "traced_training: %s\n", recorder.message().c_str());
    return 1;
  }
  return Train(recorder);
}
