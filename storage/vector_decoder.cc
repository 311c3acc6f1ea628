#include "storage/vector_codec.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "storage/bit_reader.h"
#include "storage/integer_frame.h"
#include "storage/value_scale.h"
#include "storage/wide_decode.h"

namespace stepwell {
namespace {

// PostgreSQL reads an index as an integer.
constexpr int kDictionaryWidthMax = 32;

template <typename... Parts>
absl::Status Corrupt(const EncodedVector& encoded, const Parts&... parts) {
  return absl::DataLossError(
      absl::StrCat("vector of form ", static_cast<int>(encoded.form), ": ", parts...));
}

absl::Status WrongBits(const EncodedVector& encoded, const char* column, const BitString& bits,
                       std::size_t count, int width) {
  return Corrupt(encoded, column, " has ", bits.bit_count, " bits in ", bits.bytes.size(),
                 " bytes, ", count, " integers of ", width, " bits are due");
}

absl::Status Overflows(const EncodedVector& encoded) {
  return Corrupt(encoded, "an integer does not fit 63 bits and a sign");
}

// Samples [first, end) of `count`, of which the integers are wanted, the first as number 0.
struct Part {
  explicit Part(std::size_t all) : count(all), end(all) {}
  Part(std::size_t all, std::size_t first_wanted, std::size_t wanted_count)
      : count(all), first(first_wanted), end(first_wanted + wanted_count) {}
  std::size_t count;
  std::size_t first = 0;
  std::size_t end;
};

// Whether all can be read, and nothing overflows.
absl::Status CheckFrame(const EncodedVector& encoded, std::size_t count) {
  const BitReader reader(encoded.bits, encoded.width);
  if (!reader.Holds(count)) {
    return WrongBits(encoded, "bits", encoded.bits, count, encoded.width);
  }
  if (!HoldsAll(IntegerFrame(encoded), reader, encoded.width, count)) return Overflows(encoded);
  return absl::OkStatus();
}

template <typename Emit>
absl::Status DecodeFrame(const EncodedVector& encoded, const Part& part, Emit emit) {
  STEPWELL_RETURN_IF_ERROR(CheckFrame(encoded, part.count));
  const IntegerFrame frame(encoded);
  BitReader(encoded.bits, encoded.width)
      .ReadRange(part.first, part.end,
                 [&](std::size_t i, std::uint64_t x) { emit(i - part.first, frame(x)); });
  return absl::OkStatus();
}

absl::Status CheckDelta(const EncodedVector& encoded, std::size_t count) {
  if (count == 0 || encoded.dictionary.size() != 1) {
    return Corrupt(encoded, "dictionary has ", encoded.dictionary.size(), " elements for ", count,
                   " samples, 1 is due");
  }
  const BitReader reader(encoded.bits, encoded.width);
  if (!reader.Holds(count - 1)) {
    return WrongBits(encoded, "bits", encoded.bits, count - 1, encoded.width);
  }
  if (!HoldsSums(IntegerFrame(encoded), reader, encoded, count - 1)) return Overflows(encoded);
  return absl::OkStatus();
}

template <typename Emit>
absl::Status DecodeDelta(const EncodedVector& encoded, std::size_t count, Emit emit) {
  STEPWELL_RETURN_IF_ERROR(CheckDelta(encoded, count));
  const IntegerFrame frame(encoded);
  const auto lowest = static_cast<std::uint64_t>(encoded.dictionary[0]);
  std::uint64_t x = 0;
  emit(std::size_t{0}, frame(x));
  BitReader(encoded.bits, encoded.width)
      .ReadAll(count - 1, [&](std::size_t i, std::uint64_t delta) {
        x += lowest + delta;
        emit(i + 1, frame(x));
      });
  return absl::OkStatus();
}

template <typename Emit>
absl::Status DecodeRuns(const EncodedVector& encoded, std::size_t count, Emit emit) {
  // Of width 0 all runs are one sample long.
  const std::size_t run_count =
      encoded.width2 == 0 ? count
                          : encoded.bits2.bit_count / static_cast<std::size_t>(encoded.width2);
  const BitReader heads(encoded.bits, encoded.width);
  const BitReader lengths(encoded.bits2, encoded.width2);
  if (run_count > count || !heads.Holds(run_count) || !lengths.Holds(run_count)) {
    return WrongBits(encoded, "bits or bits2", encoded.bits, run_count, encoded.width);
  }
  const IntegerFrame frame(encoded);
  if (!HoldsAll(frame, heads, encoded.width, run_count)) return Overflows(encoded);
  std::size_t at = 0;
  for (std::size_t run = 0; run < run_count; ++run) {
    const std::size_t length = lengths.Read(run) + 1;
    if (length > count - at) return Corrupt(encoded, "runs go beyond ", count, " samples");
    const std::int64_t k = frame(heads.Read(run));
    for (const std::size_t end = at + length; at < end; ++at) emit(at, k);
  }
  if (at != count) return Corrupt(encoded, "runs end at ", at, " of ", count, " samples");
  return absl::OkStatus();
}

// A damaged row may have ones behind its last bit; they make the count wrong and the row refused.
std::size_t CountOnes(const BitString& bits) {
  std::size_t ones = 0;
  for (const char byte : bits.bytes) {
    ones += static_cast<std::size_t>(std::popcount(static_cast<unsigned char>(byte)));
  }
  return ones;
}

template <typename Emit>
absl::Status DecodeSparse(const EncodedVector& encoded, std::size_t count, Emit emit) {
  if (!BitReader(encoded.bits2, 1).Holds(count))
    return WrongBits(encoded, "bits2", encoded.bits2, count, 1);
  const std::size_t present_count = CountOnes(encoded.bits2);
  const BitReader reader(encoded.bits, encoded.width);
  if (!reader.Holds(present_count)) {
    return WrongBits(encoded, "bits", encoded.bits, present_count, encoded.width);
  }
  // From one to the next: asking each sample whether it is 0 is a branch that nobody can predict.
  const IntegerFrame frame(encoded);
  if (!HoldsAll(frame, reader, encoded.width, present_count)) return Overflows(encoded);
  for (std::size_t i = 0; i < count; ++i) emit(i, std::int64_t{0});
  std::size_t next = 0;
  const std::string& bytes = encoded.bits2.bytes;
  for (std::size_t byte = 0; byte < bytes.size(); byte += sizeof(std::uint64_t)) {
    std::uint64_t ones = 0;
    std::memcpy(&ones, bytes.data() + byte, std::min(sizeof(ones), bytes.size() - byte));
    ones = __builtin_bswap64(ones);
    while (ones != 0) {
      const int skip = std::countl_zero(ones);
      ones ^= (std::uint64_t{1} << 63) >> skip;
      const std::size_t i = 8 * byte + static_cast<std::size_t>(skip);
      if (i >= count) return Corrupt(encoded, "bits2 has ones behind its last bit");
      emit(i, frame(reader.Read(next++)));
    }
  }
  return absl::OkStatus();
}

// `words` is the dictionary or raw; emits the elements themselves.
template <typename Word, typename Emit>
absl::Status DecodeIndexes(const EncodedVector& encoded, const std::vector<Word>& words,
                           const Part& part, Emit emit) {
  const std::size_t count = part.count;
  const BitReader reader(encoded.bits, encoded.width);
  if (!reader.Holds(count)) {
    return WrongBits(encoded, "bits", encoded.bits, count, encoded.width);
  }
  // The first sample whose index is too great; all after it are then 0.
  std::size_t beyond = words.empty() ? 0 : count;
  if (!words.empty()) {
    reader.ReadRange(part.first, part.end, [&](std::size_t i, std::uint64_t index) {
      if (index >= words.size()) [[unlikely]]
        beyond = std::min(beyond, i);
      emit(i - part.first, words[beyond == count ? index : 0]);
    });
  }
  if (beyond == count) return absl::OkStatus();
  return Corrupt(encoded, "index ", reader.Read(beyond), " of sample ", beyond,
                 " is beyond a dictionary of ", words.size());
}

absl::Status CheckLine(const EncodedVector& encoded, std::size_t count) {
  if (encoded.dictionary.size() != 1) {
    return Corrupt(encoded, "dictionary has ", encoded.dictionary.size(), " elements, 1 is due");
  }
  const BitReader reader(encoded.bits, encoded.width);
  if (!reader.Holds(count)) {
    return WrongBits(encoded, "bits", encoded.bits, count, encoded.width);
  }
  if (!HoldsLine(IntegerFrame(encoded), reader, encoded, count)) return Overflows(encoded);
  return absl::OkStatus();
}

template <typename Emit>
absl::Status DecodeLine(const EncodedVector& encoded, const Part& part, Emit emit) {
  STEPWELL_RETURN_IF_ERROR(CheckLine(encoded, part.count));
  const IntegerFrame frame(encoded);
  const auto step = static_cast<std::uint64_t>(encoded.dictionary[0]);
  BitReader(encoded.bits, encoded.width)
      .ReadRange(part.first, part.end, [&](std::size_t i, std::uint64_t x) {
        emit(i - part.first,
             static_cast<std::int64_t>(static_cast<std::uint64_t>(frame(x)) + step * i));
      });
  return absl::OkStatus();
}

// Whether a sample's place in the columns follows from its index.
bool LeadsToEach(Form form) {
  return form == Form::kFrame || form == Form::kRaw || form == Form::kDictionary ||
         form == Form::kLinear;
}

// Every form that is made of integers. REQUIRES: LeadsToEach(its form), or the part is all.
template <typename Emit>
absl::Status DecodeForm(const EncodedVector& encoded, const Part& part, Emit emit) {
  switch (encoded.form) {
    case Form::kFrame:
      return DecodeFrame(encoded, part, emit);
    case Form::kDelta:
      return DecodeDelta(encoded, part.count, emit);
    case Form::kRuns:
      return DecodeRuns(encoded, part.count, emit);
    case Form::kSparse:
      return DecodeSparse(encoded, part.count, emit);
    case Form::kDictionary:
      if (encoded.width > kDictionaryWidthMax) {
        return Corrupt(encoded, "width is ", encoded.width, ", 0 to ", kDictionaryWidthMax,
                       " are allowed");
      }
      return DecodeIndexes(encoded, encoded.dictionary, part, emit);
    case Form::kLinear:
      return DecodeLine(encoded, part, emit);
    case Form::kRaw:
      break;
  }
  return Corrupt(encoded, "no such form of integers");
}

#if defined(STEPWELL_WIDE)
// Forms whose integers follow each other, four at a time; nothing where that is not how they are read.
std::optional<absl::Status> DecodeWide(const EncodedVector& encoded, const Part& part,
                                       const DecodeTarget& target, Lanes lanes) {
  if (!IsWideWidth(encoded.width, lanes)) return std::nullopt;
  if (encoded.form == Form::kFrame) {
    STEPWELL_RETURN_IF_ERROR(CheckFrame(encoded, part.count));
    DecodeFrameWide(encoded, part.first, part.end, target);
  } else if (encoded.form == Form::kDelta) {
    STEPWELL_RETURN_IF_ERROR(CheckDelta(encoded, part.count));
    DecodeDeltaWide(encoded, part.count, target);
  } else if (encoded.form == Form::kLinear) {
    STEPWELL_RETURN_IF_ERROR(CheckLine(encoded, part.count));
    DecodeLineWide(encoded, part.first, part.end, target);
  } else {
    return std::nullopt;
  }
  return absl::OkStatus();
}
#else
std::optional<absl::Status> DecodeWide(const EncodedVector&, const Part&, const DecodeTarget&,
                                       Lanes) {
  return std::nullopt;
}
#endif

absl::Status CheckCount(const EncodedVector& encoded, std::size_t count) {
  if (count <= kVectorSamplesMax) return absl::OkStatus();
  return Corrupt(encoded, count, " samples, at most ", kVectorSamplesMax, " are allowed");
}

absl::Status CheckWidth(const EncodedVector& encoded, const char* name, int width, int width_max) {
  if (width >= 0 && width <= width_max) return absl::OkStatus();
  return Corrupt(encoded, name, " is ", width, ", 0 to ", width_max, " are allowed");
}

absl::Status CheckHeader(const EncodedVector& encoded, std::size_t count) {
  STEPWELL_RETURN_IF_ERROR(CheckCount(encoded, count));
  STEPWELL_RETURN_IF_ERROR(CheckWidth(encoded, "width", encoded.width, kVectorWidthMax));
  return CheckWidth(encoded, "width2", encoded.width2, kVectorWidth2Max);
}

absl::Status CheckDivisor(const EncodedVector& encoded) {
  if (encoded.divisor_exponent >= -kBinaryExponentMax &&
      encoded.divisor_exponent <= kDecimalExponentMax) {
    return absl::OkStatus();
  }
  return Corrupt(encoded, "divisor_exponent is ", encoded.divisor_exponent, ", ",
                 -kBinaryExponentMax, " to ", kDecimalExponentMax, " are allowed");
}

std::int64_t IntegerAt(std::span<const double> values, std::size_t index) {
  std::int64_t k;
  std::memcpy(&k, &values[index], sizeof(k));
  return k;
}

// `values` holds the bits of integers.
void DivideInPlace(std::span<double> values, double divisor) {
  using Pair [[gnu::vector_size(16)]] = double;
  const Pair divisors = {divisor, divisor};
  std::size_t i = 0;
  for (; i + 2 <= values.size(); i += 2) {
    Pair pair = {static_cast<double>(IntegerAt(values, i)),
                 static_cast<double>(IntegerAt(values, i + 1))};
    pair /= divisors;
    std::memcpy(&values[i], &pair, sizeof(pair));
  }
  if (i < values.size()) values[i] = static_cast<double>(IntegerAt(values, i)) / divisor;
}

absl::Status CopyRaw(const EncodedVector& encoded, const Part& part, std::span<double> values) {
  if (encoded.raw.size() != part.count) {
    return Corrupt(encoded, "raw has ", encoded.raw.size(), " elements for ", part.count,
                   " samples");
  }
  if (!values.empty()) {
    std::memcpy(values.data(), encoded.raw.data() + part.first, values.size_bytes());
  }
  return absl::OkStatus();
}

// What becomes of an integer of the vector.
DecodeTarget TargetOf(const EncodedVector& encoded, std::span<double> values) {
  // A division by 1 is skipped as a whole: most gauges are whole numbers.
  if (encoded.divisor_exponent == 0) return {values.data(), DecodeTarget::As::kDouble};
  const double divisor = Divisor(encoded.divisor_exponent);
  // Of a power of two the reciprocal is exact, and so is what it multiplies.
  if (encoded.divisor_exponent < 0) {
    return {values.data(), DecodeTarget::As::kProduct, 1 / divisor};
  }
  return {values.data(), DecodeTarget::As::kQuotient, divisor};
}

// Of integers under a divisor. The header is checked.
absl::Status DecodeScaled(const EncodedVector& encoded, const Part& part, std::span<double> values,
                          Lanes lanes) {
  const DecodeTarget target = TargetOf(encoded, values);
  if (std::optional<absl::Status> done = DecodeWide(encoded, part, target, lanes)) return *done;
  switch (target.as) {
    case DecodeTarget::As::kDouble:
      return DecodeForm(encoded, part,
                        [&](std::size_t i, std::int64_t k) { values[i] = static_cast<double>(k); });
    case DecodeTarget::As::kProduct:
      return DecodeForm(encoded, part, [&](std::size_t i, std::int64_t k) {
        values[i] = static_cast<double>(k) * target.by;
      });
    case DecodeTarget::As::kInteger:
    case DecodeTarget::As::kQuotient:
      break;
  }
  // First the integers, in the doubles' memory: divided in a loop of their own they go in pairs.
  STEPWELL_RETURN_IF_ERROR(DecodeForm(encoded, part, [&](std::size_t i, std::int64_t k) {
    std::memcpy(&values[i], &k, sizeof(k));
  }));
  DivideInPlace(values, target.by);
  return absl::OkStatus();
}

// `values` has as many elements as the part. REQUIRES: LeadsToEach(the form), or the part is all.
absl::Status DecodePart(const EncodedVector& encoded, const Part& part, std::span<double> values,
                        Lanes lanes) {
  STEPWELL_RETURN_IF_ERROR(CheckCount(encoded, part.count));
  // No other column counts then, neither here nor in SQL.
  if (encoded.form == Form::kRaw) return CopyRaw(encoded, part, values);
  STEPWELL_RETURN_IF_ERROR(CheckHeader(encoded, part.count));
  if (encoded.form == Form::kDictionary && encoded.dictionary.empty() && !encoded.raw.empty()) {
    return DecodeIndexes(encoded, encoded.raw, part,
                         [&](std::size_t i, double value) { values[i] = value; });
  }
  STEPWELL_RETURN_IF_ERROR(CheckDivisor(encoded));
  return DecodeScaled(encoded, part, values, lanes);
}

}  // namespace

absl::Status DecodeValuesInto(const EncodedVector& encoded, std::span<double> values, Lanes lanes) {
  return DecodePart(encoded, Part(values.size()), values, lanes);
}

absl::Status DecodePartInto(const EncodedVector& encoded, std::size_t sample_count,
                            std::size_t first, std::span<double> values, Lanes lanes) {
  STEPWELL_CHECK(first <= sample_count && values.size() <= sample_count - first);
  if (LeadsToEach(encoded.form)) {
    return DecodePart(encoded, Part(sample_count, first, values.size()), values, lanes);
  }
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<double> all, DecodeValues(encoded, sample_count));
  if (!values.empty()) std::memcpy(values.data(), all.data() + first, values.size_bytes());
  return absl::OkStatus();
}

absl::Status DecodeIntegersInto(const EncodedVector& encoded, std::span<std::int64_t> integers,
                                Lanes lanes) {
  STEPWELL_RETURN_IF_ERROR(CheckHeader(encoded, integers.size()));
  if (encoded.divisor_exponent != 0) {
    return Corrupt(encoded, "divisor_exponent is ", encoded.divisor_exponent,
                   ", integers have none");
  }
  const Part all(integers.size());
  if (std::optional<absl::Status> done = DecodeWide(encoded, all, {integers.data()}, lanes)) {
    return *done;
  }
  return DecodeForm(encoded, all, [&](std::size_t i, std::int64_t k) { integers[i] = k; });
}

// A damaged count must not allocate before it is looked at.
absl::StatusOr<std::vector<double>> DecodeValues(const EncodedVector& encoded,
                                                 std::size_t sample_count) {
  STEPWELL_RETURN_IF_ERROR(CheckCount(encoded, sample_count));
  std::vector<double> values(sample_count);
  STEPWELL_RETURN_IF_ERROR(DecodeValuesInto(encoded, values));
  return values;
}

absl::StatusOr<std::vector<std::int64_t>> DecodeIntegers(const EncodedVector& encoded,
                                                         std::size_t sample_count) {
  STEPWELL_RETURN_IF_ERROR(CheckCount(encoded, sample_count));
  std::vector<std::int64_t> integers(sample_count);
  STEPWELL_RETURN_IF_ERROR(DecodeIntegersInto(encoded, integers));
  return integers;
}

}  // namespace stepwell
