#include "bench/codec/code_length.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

namespace stepwell::bench {
namespace {

using Integers = std::vector<std::int64_t>;

// 0, -1, 1, -2, 2, ... as 0, 1, 2, 3, 4, ...
std::uint64_t Unsigned(std::int64_t integer) {
  return (static_cast<std::uint64_t>(integer) << 1) ^ static_cast<std::uint64_t>(integer >> 63);
}

// Wraps as the codec's own arithmetic does, so that it can always be undone.
Integers Differences(const Integers& integers) {
  Integers differences(integers.size());
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < integers.size(); ++i) {
    const auto now = static_cast<std::uint64_t>(integers[i]);
    differences[i] = static_cast<std::int64_t>(now - before);
    before = now;
  }
  return differences;
}

Integers FromLine(const Integers& integers) {
  Integers distances(integers.size());
  if (integers.size() < 2) return integers;
  const std::int64_t step =
      (integers.back() - integers.front()) / static_cast<std::int64_t>(integers.size() - 1);
  for (std::size_t i = 0; i < integers.size(); ++i) {
    distances[i] = integers[i] - integers[0] - step * static_cast<std::int64_t>(i);
  }
  return distances;
}

// Counts of symbols seen so far and what the next one costs, in bits.
template <std::size_t kSymbols>
class Learned {
 public:
  double Cost(std::size_t symbol) {
    // Few of the symbols ever occur: a twentieth of a sight for each in advance.
    constexpr double kInAdvance = 0.05;
    const double share = (counts_[symbol] + kInAdvance) / (all_ + kInAdvance * kSymbols);
    ++counts_[symbol];
    ++all_;
    return -std::log2(share);
  }

 private:
  std::array<double, kSymbols> counts_{};
  double all_ = 0;
};

// Integers by magnitude.
class MagnitudeCode {
 public:
  double Cost(std::int64_t integer) {
    const std::uint64_t number = Unsigned(integer);
    const auto exponent = static_cast<std::size_t>(64 - std::countl_zero(number));
    double bits = exponents_[std::min<std::size_t>((before_ + older_) / 2, 64)].Cost(exponent);
    older_ = std::exchange(before_, exponent);
    // Below the leading one: three bits learned, the rest noise.
    std::size_t prefix = 1;
    for (std::size_t left = exponent; left > 1; --left) {
      if (prefix >= 8) return bits + static_cast<double>(left - 1);
      const std::size_t bit = number >> (left - 2) & 1;
      bits += tops_[exponent][prefix].Cost(bit);
      prefix = 2 * prefix + bit;
    }
    return bits;
  }

 private:
  std::array<Learned<65>, 65> exponents_;
  std::array<std::array<Learned<2>, 8>, 65> tops_;
  std::size_t before_ = 0;
  std::size_t older_ = 0;
};

double MagnitudeBits(const Integers& integers) {
  // From the smallest on and without a common factor; both stand in the row's scalar columns.
  const auto [low, high] = std::minmax_element(integers.begin(), integers.end());
  std::int64_t range = 0;
  std::uint64_t factor = 1;
  std::int64_t middle = 0;
  if (!__builtin_sub_overflow(*high, *low, &range)) {
    factor = 0;
    for (const std::int64_t integer : integers) {
      factor = std::gcd(factor, static_cast<std::uint64_t>(integer - *low));
    }
    if (factor == 0) return 0;
    Integers sorted = integers;
    std::nth_element(sorted.begin(),
                     sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
    middle = sorted[sorted.size() / 2];
  }
  MagnitudeCode code;
  double bits = 0;
  for (const std::int64_t integer : integers) {
    const auto distance = static_cast<std::int64_t>(static_cast<std::uint64_t>(integer) -
                                                    static_cast<std::uint64_t>(middle));
    bits += code.Cost(factor == 1 ? distance : distance / static_cast<std::int64_t>(factor));
  }
  return bits;
}

// All alike between the smallest and the greatest.
double AlikeBits(const Integers& integers) {
  if (integers.empty()) return 0;
  const auto [low, high] = std::minmax_element(integers.begin(), integers.end());
  std::uint64_t factor = 0;
  for (const std::int64_t integer : integers) {
    factor =
        std::gcd(factor, static_cast<std::uint64_t>(integer) - static_cast<std::uint64_t>(*low));
  }
  if (factor == 0) return 0;
  const auto range =
      static_cast<double>(static_cast<std::uint64_t>(*high) - static_cast<std::uint64_t>(*low));
  return static_cast<double>(integers.size()) * std::log2(range / static_cast<double>(factor) + 1);
}

// Words in a context: those seen in it by their counts, else an escape.
struct Context {
  std::map<std::int64_t, double> counts;
  double all = 0;

  // Bits of `word`, where it is known; `escaped` else, then with the escape's bits.
  double Cost(std::int64_t word, bool& escaped) {
    // As many sights of the escape as there are different words, which is what new ones were.
    const double escape = static_cast<double>(counts.size()) / 2 + 0.5;
    double& count = counts[word];
    escaped = count == 0;
    const double share = (escaped ? escape : count) / (all + escape);
    count += 1;
    all += 1;
    return -std::log2(share);
  }
};

double WordBits(const Integers& words) {
  std::map<std::int64_t, Context> after;
  Context among_all;
  MagnitudeCode news;
  double bits = 0;
  std::int64_t before = 0;
  for (const std::int64_t word : words) {
    bool escaped = false;
    bits += after[std::exchange(before, word)].Cost(word, escaped);
    if (escaped) bits += among_all.Cost(word, escaped);
    if (escaped) bits += news.Cost(word);
  }
  return bits;
}

double WordBitsAmongAll(const Integers& words) {
  Context among_all;
  MagnitudeCode news;
  double bits = 0;
  for (const std::int64_t word : words) {
    bool escaped = false;
    bits += among_all.Cost(word, escaped);
    if (escaped) bits += news.Cost(word);
  }
  return bits;
}

// Zeros by a flag each, after the flag before; the others all alike within their range.
double FlaggedBits(const Integers& integers) {
  std::array<Learned<2>, 2> flags;
  std::size_t before = 0;
  double bits = 0;
  Integers others;
  for (const std::int64_t integer : integers) {
    const std::size_t flag = integer != 0 ? 1 : 0;
    bits += flags[std::exchange(before, flag)].Cost(flag);
    if (flag == 1) others.push_back(integer);
  }
  return bits + AlikeBits(others);
}

}  // namespace

double CodeLength(std::span<const std::int64_t> integers) {
  if (integers.empty()) return 0;
  const Integers samples(integers.begin(), integers.end());
  // The first difference is the first sample itself, which is a scalar column.
  const auto without_first = [](Integers all) {
    all.erase(all.begin());
    return all;
  };
  const Integers first = Differences(samples);
  const Integers second = without_first(Differences(without_first(first)));
  std::vector<double> lengths = {AlikeBits(samples),        FlaggedBits(samples),
                                 MagnitudeBits(samples),    WordBits(samples),
                                 WordBitsAmongAll(samples), MagnitudeBits(FromLine(samples))};
  if (samples.size() > 3) {
    const Integers steps = without_first(first);
    lengths.insert(lengths.end(),
                   {MagnitudeBits(steps), WordBits(steps), WordBitsAmongAll(steps),
                    MagnitudeBits(second), MagnitudeBits(without_first(Differences(second)))});
  }
  return *std::min_element(lengths.begin(), lengths.end());
}

double CodeLengthOfBits(std::span<const double> values) {
  Integers words(values.size());
  if (!values.empty()) std::memcpy(words.data(), values.data(), values.size_bytes());
  return CodeLength(words);
}

}  // namespace stepwell::bench
