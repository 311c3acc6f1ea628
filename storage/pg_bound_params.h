// PgBoundParams: the values of a statement as libpq takes them. It borrows the values.
#pragma once

#include <span>
#include <vector>

#include "storage/pg_param.h"

namespace stepwell {

struct PgBoundParams {
  static constexpr int kBinary = 1;

  explicit PgBoundParams(std::span<const PgParam> params) : formats(params.size(), kBinary) {
    for (const PgParam& param : params) {
      types.push_back(static_cast<unsigned int>(param.oid()));
      values.push_back(param.null() ? nullptr : param.bytes().data());
      lengths.push_back(static_cast<int>(param.bytes().size()));
    }
  }
  int count() const { return static_cast<int>(types.size()); }

  std::vector<unsigned int> types;  // Oid
  std::vector<const char*> values;
  std::vector<int> lengths;
  std::vector<int> formats;
};

}  // namespace stepwell
