#include "client/agent/ended_ticks.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/agent/chunk_builder.h"

namespace stepwell::agent {

std::string TextOf(const EndedTicks& ended) {
  return absl::StrCat(ended.last_time_us, " ", ended.interval_us, " ", ended.sample_count);
}

std::optional<EndedTicks> ParseEndedTicks(const std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  EndedTicks ended;
  const bool is_whole = words.size() == 3 && absl::SimpleAtoi(words[0], &ended.last_time_us) &&
                        absl::SimpleAtoi(words[1], &ended.interval_us) &&
                        absl::SimpleAtoi(words[2], &ended.sample_count);
  const bool is_right = is_whole && ended.last_time_us > 0 && ended.interval_us > 0 &&
                        ended.sample_count <= kBodySamplesMax;
  return is_right ? std::optional(ended) : std::nullopt;
}

}  // namespace stepwell::agent
