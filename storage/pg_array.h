// Vectors as bound values: Exec(kSql, {PgArray(trial_ids), PgArray(names)}). The vector outlives
// the call.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "storage/pg_param.h"

namespace stepwell {

template <typename T>
PgParam PgArray(const std::vector<T>& values) {
  return PgParam(std::span<const T>(values));
}
inline PgParam PgArray(const std::vector<std::string>& values) {
  return PgParam::TextArray(values);
}

}  // namespace stepwell
