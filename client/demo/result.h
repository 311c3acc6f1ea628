// Result is what a training came to, shown as text or JSON.
#pragma once

#include <cstdint>
#include <string>

namespace stepwell::demo {

struct Result {
  std::string trial;
  int ranks = 1;
  std::int64_t step_count = 0;
  double seconds = 0;
  double examples_per_second = 0;  // of all ranks
  std::int64_t parameter_count = 0;
  std::int64_t training_file_count = 0, training_bytes = 0;
  std::int64_t held_out_file_count = 0, held_out_place_count = 0;
  double training_loss = 0, held_out_loss = 0, bigram_loss = 0;  // nats per byte
  bool is_recorded = false;
  bool is_stored = false;         // the master holds everything
  std::string recording_message;  // why it is not recorded, or not as asked
  std::uint64_t dropped_count = 0;

  bool IsBelowBaseline() const { return held_out_loss < bigram_loss; }
};

std::string AsText(const Result& result);
std::string AsJson(const Result& result);

}  // namespace stepwell::demo
