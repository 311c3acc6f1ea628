// opening_rank: a training process that opens its recorder and lives until its stdin ends, for a bench
// of how soon its machine is sampled. The environment says where it records.
//
//   opening_rank TRIAL
// Prints when it called stepwell_open: microseconds since 1970 UTC. Exit: 0, or 1 where it could not
// record, 64 wrong use.
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>

#include "stepwell/recorder.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "use: %s TRIAL\n", argv[0]);
    return 64;
  }
  stepwell_options options;
  stepwell_options_init(&options);
  options.trial = argv[1];
  const std::int64_t asked_us = std::chrono::duration_cast<std::chrono::microseconds>(
                                    std::chrono::system_clock::now().time_since_epoch())
                                    .count();
  if (stepwell_open(&options) != STEPWELL_RECORDING) {
    std::fprintf(stderr, "not recording: %s\n", stepwell_message());
    return 1;
  }
  std::printf("%" PRId64 "\n", asked_us);
  std::fflush(stdout);
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  stepwell_close(5000);
  return 0;
}
