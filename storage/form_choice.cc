#include "storage/form_choice.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace stepwell {
namespace {

std::size_t BitStringBytes(std::size_t bit_count) {
  return bit_count == 0 ? 0 : kBitStringOverheadBytes + (bit_count + 7) / 8;
}

std::size_t PackedBytes(std::size_t count, int width) {
  return BitStringBytes(count * static_cast<std::size_t>(width));
}

std::size_t DictionaryBytes(std::size_t count, const Dictionary& dictionary) {
  return kArrayOverheadBytes + 8 * dictionary.words.size() + PackedBytes(count, dictionary.Width());
}

// Takes `form` if it is cheaper than what was chosen so far.
bool Offer(FormChoice& choice, Form form, std::size_t bytes) {
  if (bytes >= choice.bytes) return false;
  choice.form = form;
  choice.bytes = bytes;
  return true;
}

void OfferDelta(FormChoice& choice, std::size_t count) {
  const IntegerShape& shape = choice.shape;
  const std::uint64_t spread =
      static_cast<std::uint64_t>(shape.delta_max) - static_cast<std::uint64_t>(shape.delta_min);
  const std::uint64_t factor = shape.range.factor;
  const int width = BitWidth(factor == 1 ? spread : spread / factor);  // most are 1
  if (count < 2 || width > kVectorWidthMax) return;
  Offer(choice, Form::kDelta, PackedBytes(count - 1, width) + kArrayOverheadBytes + 8);
}

std::size_t LongestOf(const std::vector<std::uint32_t>& run_ends) {
  std::uint32_t longest = 0;
  std::uint32_t begin = 0;
  for (const std::uint32_t end : run_ends) {
    longest = std::max(longest, end - begin);
    begin = end;
  }
  return longest;
}

// Of so many runs the longest is at least as long as if they were all alike: where even that costs too much, nobody
// looks where they end.
void OfferRuns(FormChoice& choice, std::span<const std::int64_t> integers) {
  const std::size_t run_count = choice.shape.run_count;
  const std::size_t heads_bytes = PackedBytes(run_count, choice.shape.range.Width());
  const auto price = [&](std::size_t longest_run) {
    return heads_bytes + PackedBytes(run_count, BitWidth(longest_run - 1));
  };
  if (price((integers.size() + run_count - 1) / run_count) >= choice.bytes) return;
  std::vector<std::uint32_t> run_ends = RunEnds(integers, run_count);
  const std::size_t longest_run = LongestOf(run_ends);
  if (!Offer(choice, Form::kRuns, price(longest_run))) return;
  choice.run_ends = std::move(run_ends);
  choice.longest_run = longest_run;
}

// Zeros apart from a narrow band of others: disks that idle. Gathers the others only where their
// presence bits alone are not already too dear.
void OfferSparse(FormChoice& choice, std::span<const std::int64_t> integers) {
  const std::size_t zero_count = choice.shape.zero_count;
  if (zero_count == 0 || BitStringBytes(integers.size()) >= choice.bytes) return;
  if (zero_count == integers.size()) return;
  // Asking each whether it is 0 is a branch that nobody can predict: zeros are written, too, and then
  // written over. The last one needs the room of one more.
  choice.non_zeros.resize(integers.size() - zero_count + 1);
  std::int64_t* to = choice.non_zeros.data();
  for (const std::int64_t integer : integers) {
    *to = integer;
    to += integer != 0 ? 1 : 0;
  }
  choice.non_zeros.pop_back();
  choice.non_zero_range = MeasureRange(choice.non_zeros);
  Offer(choice, Form::kSparse,
        BitStringBytes(integers.size()) +
            PackedBytes(choice.non_zeros.size(), choice.non_zero_range.Width()));
}

void OfferLine(FormChoice& choice, std::span<const std::int64_t> integers) {
  constexpr std::size_t kStepBytes = kArrayOverheadBytes + 8;
  if (integers.size() < 2 || choice.bytes <= kStepBytes || !LineFits(choice.shape.range)) return;
  // The widest that costs less: none but 0 where the head of a bit string is too much.
  const std::size_t bytes_max = choice.bytes - 1 - kStepBytes;
  const std::size_t bits_max =
      bytes_max <= kBitStringOverheadBytes ? 0 : 8 * (bytes_max - kBitStringOverheadBytes);
  const int width_max =
      static_cast<int>(std::min<std::size_t>(kVectorWidthMax, bits_max / integers.size()));
  const std::optional<IntegerLine> line = MeasureLine(integers, width_max);
  if (!line) return;
  choice.line = *line;
  Offer(choice, Form::kLinear,
        kStepBytes + PackedBytes(integers.size(), choice.line.residual.Width()));
}

void OfferDictionary(FormChoice& choice, std::span<const std::int64_t> integers) {
  const std::size_t words_max = DictionaryWordsMax(integers.size(), choice.bytes);
  std::optional<Dictionary> dictionary = BuildDictionary(integers, words_max);
  if (!dictionary) return;
  if (Offer(choice, Form::kDictionary, DictionaryBytes(integers.size(), *dictionary))) {
    choice.dictionary = std::move(dictionary);
  }
}

// All but the frame.
void OfferOthers(FormChoice& choice, std::span<const std::int64_t> integers) {
  choice.shape = MeasureShape(integers, choice.shape.range);
  OfferDelta(choice, integers.size());
  OfferRuns(choice, integers);
  OfferSparse(choice, integers);
  OfferDictionary(choice, integers);
  OfferLine(choice, integers);
}

}  // namespace

FormChoice ChooseForm(std::span<const std::int64_t> integers, const IntegerTotals& totals) {
  // A frame or a dictionary of all there is always holds them.
  return *ChooseFormBelow(std::numeric_limits<std::size_t>::max(), integers, totals);
}

std::optional<FormChoice> ChooseFormBelow(std::size_t bytes_limit,
                                          std::span<const std::int64_t> integers,
                                          const IntegerTotals& totals) {
  FormChoice choice;
  choice.bytes = bytes_limit;
  choice.shape.range = MeasureRange(integers, totals);
  if (!choice.shape.range.narrow) {
    // Differences overflow a bigint; only a dictionary needs none.
    OfferDictionary(choice, integers);
  } else {
    Offer(choice, Form::kFrame, PackedBytes(integers.size(), choice.shape.range.Width()));
    if (choice.bytes > 0) OfferOthers(choice, integers);
  }
  if (choice.bytes >= bytes_limit) return std::nullopt;
  return choice;
}

}  // namespace stepwell
