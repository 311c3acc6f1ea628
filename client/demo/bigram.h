// Bigram is the baseline: the chance of a symbol after another, counted in the training text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepwell::demo {

class Bigram {
 public:
  explicit Bigram(int symbol_count);

  // Counts the pairs of one text.
  void Count(std::span<const int> text);
  // Mean cross entropy in nats of text[i] after text[i - 1] for each of `places` (i >= 1), with
  // `smoothing` added to each count. REQUIRES: places is not empty.
  double Loss(std::span<const int> text, std::span<const std::int64_t> places,
              double smoothing) const;

 private:
  const int symbol_count_;
  std::vector<std::int64_t> pairs_;
  std::vector<std::int64_t> firsts_;
};

}  // namespace stepwell::demo
