// A training program in C++17 against the installed header and library. Exit 0 if it could record.
#include <stepwell/stepwell.h>
#include <cstdio>

int main() {
  stepwell::Options options;
  options.trial = "installed-cpp";
  options.exit_wait = std::chrono::milliseconds(0);
  stepwell::Recorder recorder(options);
  if (stepwell_current_state() != STEPWELL_RECORDING) {
    std::fprintf(stderr, "not recording: %s\n", stepwell_message());
    return 1;
  }
  const stepwell::Series loss("training", "loss");
  stepwell_step_begin();
  for (int batch = 0; batch < 100; ++batch) {
    {
      STEPWELL_SCOPE("train_batch");
      STEPWELL_SCOPE("forward");
      stepwell::Record(loss, 1.0 / (batch + 1));
    }
    stepwell_step_end(batch);
  }
  return stepwell_dropped_count() == 0 ? 0 : 3;
}
