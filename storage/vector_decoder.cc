#include "storage/vector_codec.h"

#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/bit_reader.h"
#include "storage/value_scale.h"

namespace stepwell {
namespace {

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

// Integers of a damaged row may overflow; they then wrap, which is defined for unsigned ones.
class Frame {
 public:
  explicit Frame(const EncodedVector& encoded)
      : base_(static_cast<std::uint64_t>(encoded.base)),
        factor_(static_cast<std::uint64_t>(encoded.factor)) {}
  std::int64_t operator()(std::uint64_t x) const {
    return static_cast<std::int64_t>(base_ + factor_ * x);
  }

 private:
  const std::uint64_t base_;
  const std::uint64_t factor_;
};

template <typename Emit>
absl::Status DecodeFrame(const EncodedVector& encoded, std::size_t count, Emit emit) {
  const BitReader reader(encoded.bits, encoded.width);
  if (!reader.Holds(count)) {
    return WrongBits(encoded, "bits", encoded.bits, count, encoded.width);
  }
  const Frame frame(encoded);
  for (std::size_t i = 0; i < count; ++i) emit(i, frame(reader.Read(i)));
  return absl::OkStatus();
}

template <typename Emit>
absl::Status DecodeDelta(const EncodedVector& encoded, std::size_t count, Emit emit) {
  if (count == 0 || encoded.dictionary.size() != 1) {
    return Corrupt(encoded, "dictionary has ", encoded.dictionary.size(), " elements for ", count,
                   " samples, 1 is due");
  }
  const BitReader reader(encoded.bits, encoded.width);
  if (!reader.Holds(count - 1)) {
    return WrongBits(encoded, "bits", encoded.bits, count - 1, encoded.width);
  }
  const Frame frame(encoded);
  const auto lowest = static_cast<std::uint64_t>(encoded.dictionary[0]);
  std::uint64_t x = 0;
  emit(std::size_t{0}, frame(x));
  for (std::size_t i = 1; i < count; ++i) {
    x += lowest + reader.Read(i - 1);
    emit(i, frame(x));
  }
  return absl::OkStatus();
}

template <typename Emit>
absl::Status DecodeRuns(const EncodedVector& encoded, std::size_t count, Emit emit) {
  if (encoded.width2 < 0 || encoded.width2 > kVectorWidth2Max) {
    return Corrupt(encoded, "width2 is ", encoded.width2, ", 0 to ", kVectorWidth2Max,
                   " are allowed");
  }
  // Of width 0 all runs are one sample long.
  const std::size_t run_count =
      encoded.width2 == 0 ? count
                          : encoded.bits2.bit_count / static_cast<std::size_t>(encoded.width2);
  const BitReader heads(encoded.bits, encoded.width);
  const BitReader lengths(encoded.bits2, encoded.width2);
  if (run_count > count || !heads.Holds(run_count) || !lengths.Holds(run_count)) {
    return WrongBits(encoded, "bits or bits2", encoded.bits, run_count, encoded.width);
  }
  const Frame frame(encoded);
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
  const BitReader presence(encoded.bits2, 1);
  if (!presence.Holds(count)) return WrongBits(encoded, "bits2", encoded.bits2, count, 1);
  const std::size_t present_count = CountOnes(encoded.bits2);
  const BitReader reader(encoded.bits, encoded.width);
  if (!reader.Holds(present_count)) {
    return WrongBits(encoded, "bits", encoded.bits, present_count, encoded.width);
  }
  const Frame frame(encoded);
  std::size_t next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    emit(i, presence.Read(i) == 0 ? 0 : frame(reader.Read(next++)));
  }
  return absl::OkStatus();
}

// `words` is the dictionary or raw; emits the elements themselves.
template <typename Word, typename Emit>
absl::Status DecodeIndexes(const EncodedVector& encoded, const std::vector<Word>& words,
                           std::size_t count, Emit emit) {
  const BitReader reader(encoded.bits, encoded.width);
  if (!reader.Holds(count)) {
    return WrongBits(encoded, "bits", encoded.bits, count, encoded.width);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t index = reader.Read(i);
    if (index >= words.size()) {
      return Corrupt(encoded, "index ", index, " of sample ", i, " is beyond a dictionary of ",
                     words.size());
    }
    emit(i, words[index]);
  }
  return absl::OkStatus();
}

template <typename Emit>
absl::Status DecodeLine(const EncodedVector& encoded, std::size_t count, Emit emit) {
  if (encoded.dictionary.size() != 1) {
    return Corrupt(encoded, "dictionary has ", encoded.dictionary.size(), " elements, 1 is due");
  }
  const auto step = static_cast<std::uint64_t>(encoded.dictionary[0]);
  return DecodeFrame(encoded, count, [&](std::size_t i, std::int64_t k) {
    emit(i, static_cast<std::int64_t>(static_cast<std::uint64_t>(k) + step * i));
  });
}

// Every form that is made of integers.
template <typename Emit>
absl::Status DecodeForm(const EncodedVector& encoded, std::size_t count, Emit emit) {
  switch (encoded.form) {
    case Form::kFrame:
      return DecodeFrame(encoded, count, emit);
    case Form::kDelta:
      return DecodeDelta(encoded, count, emit);
    case Form::kRuns:
      return DecodeRuns(encoded, count, emit);
    case Form::kSparse:
      return DecodeSparse(encoded, count, emit);
    case Form::kDictionary:
      return DecodeIndexes(encoded, encoded.dictionary, count, emit);
    case Form::kLinear:
      return DecodeLine(encoded, count, emit);
    case Form::kRaw:
      break;
  }
  return Corrupt(encoded, "no such form of integers");
}

absl::Status CheckHeader(const EncodedVector& encoded, std::size_t count) {
  if (count > kVectorSamplesMax) {
    return Corrupt(encoded, count, " samples, at most ", kVectorSamplesMax, " are allowed");
  }
  if (encoded.width < 0 || encoded.width > kVectorWidthMax) {
    return Corrupt(encoded, "width is ", encoded.width, ", 0 to ", kVectorWidthMax, " are allowed");
  }
  if (encoded.divisor_exponent < -kBinaryExponentMax ||
      encoded.divisor_exponent > kDecimalExponentMax) {
    return Corrupt(encoded, "divisor_exponent is ", encoded.divisor_exponent, ", ",
                   -kBinaryExponentMax, " to ", kDecimalExponentMax, " are allowed");
  }
  return absl::OkStatus();
}

absl::Status CopyRaw(const EncodedVector& encoded, std::span<double> values) {
  if (encoded.raw.size() != values.size()) {
    return Corrupt(encoded, "raw has ", encoded.raw.size(), " elements for ", values.size(),
                   " samples");
  }
  if (!values.empty()) std::memcpy(values.data(), encoded.raw.data(), values.size_bytes());
  return absl::OkStatus();
}

}  // namespace

absl::Status DecodeValuesInto(const EncodedVector& encoded, std::span<double> values) {
  STEPWELL_RETURN_IF_ERROR(CheckHeader(encoded, values.size()));
  if (encoded.form == Form::kRaw) return CopyRaw(encoded, values);
  if (encoded.form == Form::kDictionary && encoded.dictionary.empty()) {
    return DecodeIndexes(encoded, encoded.raw, values.size(),
                         [&](std::size_t i, double value) { values[i] = value; });
  }
  // A division by 1 is skipped as a whole: most gauges are whole numbers.
  if (encoded.divisor_exponent == 0) {
    return DecodeForm(encoded, values.size(),
                      [&](std::size_t i, std::int64_t k) { values[i] = static_cast<double>(k); });
  }
  const double divisor = Divisor(encoded.divisor_exponent);
  return DecodeForm(encoded, values.size(), [&](std::size_t i, std::int64_t k) {
    values[i] = static_cast<double>(k) / divisor;
  });
}

absl::Status DecodeIntegersInto(const EncodedVector& encoded, std::span<std::int64_t> integers) {
  STEPWELL_RETURN_IF_ERROR(CheckHeader(encoded, integers.size()));
  if (encoded.divisor_exponent != 0) {
    return Corrupt(encoded, "divisor_exponent is ", encoded.divisor_exponent,
                   ", integers have none");
  }
  return DecodeForm(encoded, integers.size(),
                    [&](std::size_t i, std::int64_t k) { integers[i] = k; });
}

// A damaged count must not allocate before it is looked at.
absl::StatusOr<std::vector<double>> DecodeValues(const EncodedVector& encoded,
                                                 std::size_t sample_count) {
  STEPWELL_RETURN_IF_ERROR(CheckHeader(encoded, sample_count));
  std::vector<double> values(sample_count);
  STEPWELL_RETURN_IF_ERROR(DecodeValuesInto(encoded, values));
  return values;
}

absl::StatusOr<std::vector<std::int64_t>> DecodeIntegers(const EncodedVector& encoded,
                                                         std::size_t sample_count) {
  STEPWELL_RETURN_IF_ERROR(CheckHeader(encoded, sample_count));
  std::vector<std::int64_t> integers(sample_count);
  STEPWELL_RETURN_IF_ERROR(DecodeIntegersInto(encoded, integers));
  return integers;
}

}  // namespace stepwell
