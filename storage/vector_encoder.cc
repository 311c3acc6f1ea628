#include "storage/vector_codec.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/check.h"
#include "storage/bit_writer.h"
#include "storage/dictionary.h"
#include "storage/exact_divisor.h"
#include "storage/form_choice.h"
#include "storage/scaled_column.h"

namespace stepwell {
namespace {

// base + factor * x of every integer.
void PackFrame(std::span<const std::int64_t> integers, const IntegerRange& range,
               EncodedVector& encoded) {
  encoded.base = range.min;
  encoded.factor = static_cast<std::int64_t>(range.factor);
  encoded.width = static_cast<std::int16_t>(range.Width());
  BitWriter writer(encoded.width, integers.size());
  const auto distance = [&](std::size_t i) {
    return static_cast<std::uint64_t>(integers[i] - range.min);
  };
  // Most factors are 1.
  if (range.factor == 1) {
    writer.AppendAll(integers.size(), distance);
  } else {
    const ExactDivisor by(range.factor);
    writer.AppendAll(integers.size(), [&](std::size_t i) { return by.Quotient(distance(i)); });
  }
  encoded.bits = std::move(writer).Take();
}

void PackDelta(std::span<const std::int64_t> integers, const IntegerShape& shape,
               EncodedVector& encoded) {
  const auto factor = static_cast<std::int64_t>(shape.range.factor);
  const std::int64_t lowest = shape.delta_min / factor;
  encoded.base = integers[0];
  encoded.factor = factor;
  encoded.dictionary = {lowest};
  encoded.width = static_cast<std::int16_t>(
      BitWidth(static_cast<std::uint64_t>(shape.delta_max / factor - lowest)));
  BitWriter writer(encoded.width, integers.size() - 1);
  const auto delta = [&](std::size_t i) { return integers[i + 1] - integers[i]; };
  if (factor == 1) {
    writer.AppendAll(integers.size() - 1,
                     [&](std::size_t i) { return static_cast<std::uint64_t>(delta(i) - lowest); });
  } else {
    const ExactDivisor by(shape.range.factor);
    writer.AppendAll(integers.size() - 1, [&](std::size_t i) {
      return static_cast<std::uint64_t>(by.Quotient(delta(i)) - lowest);
    });
  }
  encoded.bits = std::move(writer).Take();
}

void PackRuns(std::span<const std::int64_t> integers, const FormChoice& choice,
              EncodedVector& encoded) {
  const std::vector<std::uint32_t>& ends = choice.run_ends;
  std::vector<std::int64_t> heads(ends.size());
  for (std::size_t run = 0; run < ends.size(); ++run) heads[run] = integers[ends[run] - 1];
  encoded.width2 = static_cast<std::int16_t>(BitWidth(choice.longest_run - 1));
  BitWriter lengths(encoded.width2, ends.size());
  std::uint32_t begin = 0;
  lengths.AppendAll(ends.size(), [&](std::size_t run) {
    return std::uint64_t{ends[run] - std::exchange(begin, ends[run]) - 1};
  });
  encoded.bits2 = std::move(lengths).Take();
  PackFrame(heads, choice.shape.range, encoded);
}

void PackSparse(std::span<const std::int64_t> integers, const FormChoice& choice,
                EncodedVector& encoded) {
  BitWriter presence(1, integers.size());
  presence.AppendAll(integers.size(),
                     [&](std::size_t i) { return std::uint64_t{integers[i] != 0 ? 1U : 0U}; });
  encoded.bits2 = std::move(presence).Take();
  PackFrame(choice.non_zeros, choice.non_zero_range, encoded);
}

void PackIndexes(const Dictionary& dictionary, EncodedVector& encoded) {
  encoded.width = static_cast<std::int16_t>(dictionary.Width());
  BitWriter writer(encoded.width, dictionary.indexes.size());
  writer.AppendAll(dictionary.indexes.size(),
                   [&](std::size_t i) { return std::uint64_t{dictionary.indexes[i]}; });
  encoded.bits = std::move(writer).Take();
}

void PackLine(std::span<const std::int64_t> integers, const IntegerLine& line,
              EncodedVector& encoded) {
  const IntegerRange& residual = line.residual;
  encoded.base = integers[0] + residual.min;
  encoded.factor = static_cast<std::int64_t>(residual.factor);
  encoded.dictionary = {line.step};
  encoded.width = static_cast<std::int16_t>(residual.Width());
  BitWriter writer(encoded.width, integers.size());
  std::int64_t at = encoded.base;
  const ExactDivisor by(residual.factor);
  writer.AppendAll(integers.size(), [&](std::size_t i) {
    const auto distance = static_cast<std::uint64_t>(integers[i] - at);
    at += line.step;
    return by.Quotient(distance);
  });
  encoded.bits = std::move(writer).Take();
}

EncodedVector Pack(std::span<const std::int64_t> integers, const FormChoice& choice) {
  EncodedVector encoded;
  encoded.form = choice.form;
  switch (choice.form) {
    case Form::kFrame:
      PackFrame(integers, choice.shape.range, encoded);
      break;
    case Form::kDelta:
      PackDelta(integers, choice.shape, encoded);
      break;
    case Form::kRuns:
      PackRuns(integers, choice, encoded);
      break;
    case Form::kSparse:
      PackSparse(integers, choice, encoded);
      break;
    case Form::kDictionary:
      PackIndexes(*choice.dictionary, encoded);
      encoded.dictionary = choice.dictionary->words;
      break;
    case Form::kLinear:
      PackLine(integers, choice.line, encoded);
      break;
    case Form::kRaw:
      STEPWELL_CHECK(choice.form != Form::kRaw);
  }
  return encoded;
}

std::uint64_t SpanOf(const IntegerTotals& totals) {
  return static_cast<std::uint64_t>(totals.max) - static_cast<std::uint64_t>(totals.min);
}

// As FormChoice counts. A few values of 61 bits each are cheaper as they are.
std::size_t RawBytes(std::span<const double> values) {
  return kArrayOverheadBytes + values.size_bytes();
}

// Values that no divisor holds: as they are, or by index where few of them differ (a gauge that is
// NaN now and then).
EncodedVector EncodeRaw(std::span<const double> values) {
  std::vector<std::int64_t> words(values.size());
  std::memcpy(words.data(), values.data(), values.size_bytes());
  const std::size_t words_max = DictionaryWordsMax(words.size(), RawBytes(values));
  EncodedVector encoded;
  if (const std::optional<Dictionary> dictionary = BuildDictionary(words, words_max)) {
    encoded.form = Form::kDictionary;
    PackIndexes(*dictionary, encoded);
    words = dictionary->words;
  } else {
    encoded.form = Form::kRaw;
  }
  encoded.raw.resize(words.size());
  std::memcpy(encoded.raw.data(), words.data(), words.size() * sizeof(double));
  return encoded;
}

}  // namespace

EncodedVector EncodeValues(std::span<const double> values) {
  return EncodeValues(values, ScaledColumn(values));
}

EncodedVector EncodeValues(std::span<const double> values, const ScaledColumn& scaled) {
  STEPWELL_CHECK(values.size() <= kVectorSamplesMax);
  if (values.empty()) return EncodedVector{};
  if (!scaled.exists()) return EncodeRaw(values);
  const FormChoice choice = ChooseForm(scaled.integers(), scaled.totals());
  if (choice.bytes > RawBytes(values)) return EncodeRaw(values);
  EncodedVector encoded = Pack(scaled.integers(), choice);
  encoded.divisor_exponent = scaled.divisor_exponent();
  return encoded;
}

EncodedVector EncodeIntegers(std::span<const std::int64_t> integers) {
  STEPWELL_CHECK(integers.size() <= kVectorSamplesMax);
  if (integers.empty()) return EncodedVector{};
  return Pack(integers, ChooseForm(integers, TotalsOf(integers)));
}

EncodedChoice EncodeCheaper(std::span<const double> values, std::span<const std::int64_t> integers,
                            std::int16_t divisor_exponent, std::span<const std::int64_t> instead) {
  STEPWELL_CHECK(!values.empty() && values.size() <= kVectorSamplesMax &&
                 integers.size() == values.size() && instead.size() == values.size());
  const std::size_t raw_bytes = RawBytes(values);
  const IntegerTotals own_totals = TotalsOf(integers);
  const IntegerTotals other_totals = TotalsOf(instead);
  std::optional<FormChoice> own;
  std::optional<FormChoice> other;
  // Mostly the narrower ones are cheaper: these are measured first, and the others until they can no longer be.
  if (SpanOf(own_totals) <= SpanOf(other_totals)) {
    own = ChooseFormBelow(raw_bytes + 1, integers, own_totals);
    other = ChooseFormBelow(own ? own->bytes : raw_bytes, instead, other_totals);
  } else {
    other = ChooseFormBelow(raw_bytes, instead, other_totals);
    own = ChooseFormBelow((other ? other->bytes : raw_bytes) + 1, integers, own_totals);
    if (own) other.reset();
  }
  if (other) return {.vector = Pack(instead, *other), .is_instead = true};
  if (!own) return {.vector = EncodeRaw(values)};
  EncodedChoice choice{.vector = Pack(integers, *own)};
  choice.vector.divisor_exponent = divisor_exponent;
  return choice;
}

}  // namespace stepwell
