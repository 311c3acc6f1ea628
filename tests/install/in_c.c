/* A training program in C against the installed header and library. Exit 0 if it could record. */
#include <stdio.h>
#include <stepwell/recorder.h>

int main(void) {
  stepwell_options options;
  stepwell_options_init(&options);
  options.trial = "installed-c";
  if (stepwell_open(&options) != STEPWELL_RECORDING) {
    fprintf(stderr, "not recording: %s\n", stepwell_message());
    return 1;
  }
  const stepwell_scope_id forward = stepwell_define_scope("forward");
  const stepwell_series_id loss =
      stepwell_define_series("training", "loss", "1", STEPWELL_GAUGE, NULL, 0);
  if (forward == 0 || loss == 0) return 2;
  stepwell_step_begin();
  for (int32_t batch = 0; batch < 100; ++batch) {
    stepwell_scope scope;
    stepwell_scope_begin(&scope, forward);
    stepwell_scope_end(&scope);
    stepwell_record(loss, 1.0 / (batch + 1));
    stepwell_step_end(batch);
  }
  stepwell_close(0);
  return stepwell_dropped_count() == 0 ? 0 : 3;
}
