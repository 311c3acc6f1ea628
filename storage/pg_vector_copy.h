// The parts of an encoded vector as fields of a COPY row; what is empty is NULL. Inline functions.
#pragma once

#include <cstdint>
#include <vector>

#include "storage/bit_string.h"
#include "storage/pg_copy.h"

namespace stepwell {

inline void AddBits(const BitString& bits, PgCopyRows& rows) {
  if (bits.bit_count == 0) {
    rows.Null();
  } else {
    rows.Bits({bits.bytes, static_cast<std::int32_t>(bits.bit_count)});
  }
}

inline void AddIntegers(const std::vector<std::int64_t>& values, PgCopyRows& rows) {
  if (values.empty()) {
    rows.Null();
  } else {
    rows.Int64Array(values);
  }
}

inline void AddDoubles(const std::vector<double>& values, PgCopyRows& rows) {
  if (values.empty()) {
    rows.Null();
  } else {
    rows.Float64Array(values);
  }
}

}  // namespace stepwell
