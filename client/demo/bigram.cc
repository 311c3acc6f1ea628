#include "client/demo/bigram.h"

#include <cmath>

namespace stepwell::demo {

Bigram::Bigram(int symbol_count)
    : symbol_count_(symbol_count),
      pairs_(static_cast<std::size_t>(symbol_count) * symbol_count),
      firsts_(static_cast<std::size_t>(symbol_count)) {}

void Bigram::Count(std::span<const int> text) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    ++pairs_[static_cast<std::size_t>(text[i - 1]) * symbol_count_ + text[i]];
    ++firsts_[text[i - 1]];
  }
}

double Bigram::Loss(std::span<const int> text, std::span<const std::int64_t> places,
                    double smoothing) const {
  double sum = 0;
  for (const std::int64_t place : places) {
    const int first = text[place - 1];
    const auto pair = static_cast<std::size_t>(first) * symbol_count_ + text[place];
    const double chance = (static_cast<double>(pairs_[pair]) + smoothing) /
                          (static_cast<double>(firsts_[first]) + smoothing * symbol_count_);
    sum -= std::log(chance);
  }
  return sum / static_cast<double>(places.size());
}

}  // namespace stepwell::demo
