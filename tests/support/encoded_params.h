// Statement parameters of an EncodedVector, in the order of its columns, for tests that insert
// rows by hand. Header only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "storage/encoded_vector.h"
#include "storage/pg_param.h"

namespace stepwell::testing {

inline PgParam BitsParam(const BitString& bits) {
  if (bits.bit_count == 0) return PgParam::Null(PgOid::kVarbit);
  return PgBits{bits.bytes, static_cast<std::int32_t>(bits.bit_count)};
}

inline PgParam DictionaryParam(const EncodedVector& encoded) {
  if (encoded.dictionary.empty()) return PgParam::Null(PgOid::kInt8Array);
  return std::span<const std::int64_t>(encoded.dictionary);
}

// form, width, width2, divisor_exponent, base, factor, bits, bits2, dictionary, raw.
inline void AppendValue(const EncodedVector& encoded, std::vector<PgParam>& params) {
  params.insert(params.end(),
                {static_cast<std::int16_t>(encoded.form), encoded.width, encoded.width2,
                 encoded.divisor_exponent, encoded.base, encoded.factor, BitsParam(encoded.bits),
                 BitsParam(encoded.bits2), DictionaryParam(encoded),
                 encoded.raw.empty() ? PgParam::Null(PgOid::kFloat8Array)
                                     : PgParam(std::span<const double>(encoded.raw))});
}

// form, width, width2, base, factor, bits, bits2, dictionary.
inline void AppendInteger(const EncodedVector& encoded, std::vector<PgParam>& params) {
  params.insert(params.end(),
                {static_cast<std::int16_t>(encoded.form), encoded.width, encoded.width2,
                 encoded.base, encoded.factor, BitsParam(encoded.bits), BitsParam(encoded.bits2),
                 DictionaryParam(encoded)});
}

}  // namespace stepwell::testing
