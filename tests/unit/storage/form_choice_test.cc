#include "storage/form_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

using Integers = std::vector<std::int64_t>;

std::size_t Bits(std::size_t count, int width) {
  const std::size_t bits = count * static_cast<std::size_t>(width);
  return bits == 0 ? 0 : kBitStringOverheadBytes + (bits + 7) / 8;
}
std::size_t Array(std::size_t count) { return kArrayOverheadBytes + 8 * count; }

Integers Deltas(const Integers& integers) {
  Integers deltas;
  for (std::size_t i = 1; i < integers.size(); ++i) {
    deltas.push_back(integers[i] - integers[i - 1]);
  }
  return deltas;
}

std::size_t RunsPrice(const Integers& integers, int head_width) {
  std::size_t run_count = 0, longest = 0;
  for (std::size_t begin = 0, end = 0; begin < integers.size(); begin = end, ++run_count) {
    while (end < integers.size() && integers[end] == integers[begin]) ++end;
    longest = std::max(longest, end - begin);
  }
  return Bits(run_count, head_width) + Bits(run_count, BitWidth(longest - 1));
}

// What each form costs, one after the other and measured to the end. REQUIRES: all is far below 2^60.
std::map<Form, std::size_t> PriceOfEach(const Integers& integers) {
  const std::size_t count = integers.size();
  const IntegerRange range = MeasureRange(integers);
  std::map<Form, std::size_t> prices = {{Form::kFrame, Bits(count, range.Width())},
                                        {Form::kRuns, RunsPrice(integers, range.Width())}};
  const std::set<std::int64_t> words(integers.begin(), integers.end());
  prices[Form::kDictionary] = Array(words.size()) + Bits(count, BitWidth(words.size() - 1));
  Integers non_zeros = integers;
  std::erase(non_zeros, 0);
  if (!non_zeros.empty()) {
    prices[Form::kSparse] =
        Bits(count, 1) + Bits(non_zeros.size(), MeasureRange(non_zeros).Width());
  }
  if (count < 2) return prices;
  const Integers deltas = Deltas(integers);
  const auto [least, greatest] = std::minmax_element(deltas.begin(), deltas.end());
  const auto spread = static_cast<std::uint64_t>(*greatest - *least);
  prices[Form::kDelta] = Array(1) + Bits(count - 1, BitWidth(spread / range.factor));
  prices[Form::kLinear] = Array(1) + Bits(count, MeasureLine(integers, 63)->residual.Width());
  return prices;
}

// Runs, zeros, few words, walks and lines, of any length.
Integers RandomColumn(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  Integers integers(1 + below(below(2) == 0 ? 70 : 700));
  const auto bits = 1 + below(30);
  const auto stay = below(2) == 0 ? below(20) : 0;
  const auto idle = below(3);
  const std::uint64_t family = below(4);
  constexpr std::int64_t kWords[] = {3, 1 << 30, (1 << 20) + 1, -7000000, INT64_C(1) << 40};
  std::int64_t at = 0;
  for (std::size_t i = 0; i < integers.size(); ++i) {
    const auto noise = static_cast<std::int64_t>(below(std::uint64_t{1} << bits));
    if (below(stay + 1) == 0) {
      if (family == 0) at = noise;
      if (family == 1) at += (std::int64_t{1} << bits) + noise % 32;
      if (family == 2) at = static_cast<std::int64_t>(i) * 977 + noise % 10;
      if (family == 3) at = kWords[noise % 5];
    }
    integers[i] = idle == 1 && below(4) != 0 ? 0 : at;
  }
  return integers;
}

// What is not measured, since it could not win, would not have won.
TEST(FormChoiceTest, TakesTheCheapestOfAllForms) {
  std::mt19937_64 random(testing::TestSeed());
  std::map<Form, int> chosen;
  for (int round = 0; round < 20000; ++round) {
    const Integers integers = RandomColumn(random);
    const std::map<Form, std::size_t> prices = PriceOfEach(integers);
    const auto cheapest =
        std::min_element(prices.begin(), prices.end(), [](const auto& left, const auto& right) {
          return left.second < right.second;  // of equals the first, which has the smallest number
        });
    const FormChoice choice = ChooseForm(integers, TotalsOf(integers));
    ASSERT_EQ(choice.bytes, cheapest->second) << round;
    ASSERT_EQ(choice.form, cheapest->first) << round;
    ++chosen[choice.form];
    // Below a limit the same, or nothing.
    const std::size_t limit = choice.bytes + random() % 3 - std::min<std::size_t>(choice.bytes, 1);
    const std::optional<FormChoice> below = ChooseFormBelow(limit, integers, TotalsOf(integers));
    ASSERT_EQ(below.has_value(), choice.bytes < limit) << round;
    if (!below) continue;
    ASSERT_EQ(below->form, choice.form) << round;
    ASSERT_EQ(below->bytes, choice.bytes) << round;
  }
  for (const Form form :
       {Form::kFrame, Form::kDelta, Form::kRuns, Form::kSparse, Form::kDictionary, Form::kLinear}) {
    EXPECT_GT(chosen[form], 100) << static_cast<int>(form);
  }
}

}  // namespace
}  // namespace stepwell
