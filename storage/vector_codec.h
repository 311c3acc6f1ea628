// Codec v1: vectors of numbers to the columns of a row and back, without any loss. Stands between
// folds, merges and readers on one side and the tables on the other. A core: no SQL in it; the
// function stepwell.decode_values of migration 2 reads the same columns. Thread-safe.
//
//   const EncodedVector encoded = EncodeValues(values);
//   STEPWELL_ASSIGN_OR_RETURN(values, DecodeValues(encoded, sample_count));
//
// Every double comes back bit for bit, NaN payloads, -0 and denormals included, and so does every
// int64. docs/codec.md tells which form is chosen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/encoded_vector.h"
#include "storage/scaled_column.h"
#include "storage/wide.h"

namespace stepwell {

// REQUIRES: at most kVectorSamplesMax values.
EncodedVector EncodeValues(std::span<const double> values);
// `scaled`: the same values.
EncodedVector EncodeValues(std::span<const double> values, const ScaledColumn& scaled);
// For times in microseconds and for batches: never kRaw, no divisor.
// REQUIRES: at most kVectorSamplesMax integers.
EncodedVector EncodeIntegers(std::span<const std::int64_t> integers);

// Two ways to tell the same values: themselves, `integers` under a divisor, or `instead`, from which a
// reader makes them some other way. The cheaper one is encoded, `values` where they cost the same.
struct EncodedChoice {
  EncodedVector vector;
  bool is_instead = false;
};
// REQUIRES: values are not empty, and all are as many.
EncodedChoice EncodeCheaper(std::span<const double> values, std::span<const std::int64_t> integers,
                            std::int16_t divisor_exponent, std::span<const std::int64_t> instead);

// kDataLoss where the columns contradict each other or `sample_count`. The row may come from a
// damaged or foreign database: nothing in it is trusted.
[[nodiscard]] absl::StatusOr<std::vector<double>> DecodeValues(const EncodedVector& encoded,
                                                               std::size_t sample_count);
[[nodiscard]] absl::StatusOr<std::vector<std::int64_t>> DecodeIntegers(const EncodedVector& encoded,
                                                                       std::size_t sample_count);

// Those from sample `first` on, as many as `values` has: of a form that leads to each sample by itself they
// are all that is read, so that damage elsewhere may go unseen. REQUIRES: first + values.size() <=
// sample_count. After an error the content is unspecified.
[[nodiscard]] absl::Status DecodePartInto(const EncodedVector& encoded, std::size_t sample_count,
                                          std::size_t first, std::span<double> values,
                                          Lanes lanes = WidestLanes());

// All of them into memory of the caller; allocates nothing. After an error the content is unspecified.
[[nodiscard]] absl::Status DecodeValuesInto(const EncodedVector& encoded, std::span<double> values,
                                            Lanes lanes = WidestLanes());
[[nodiscard]] absl::Status DecodeIntegersInto(const EncodedVector& encoded,
                                              std::span<std::int64_t> integers,
                                              Lanes lanes = WidestLanes());

}  // namespace stepwell
