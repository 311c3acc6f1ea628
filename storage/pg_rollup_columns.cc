#include "storage/pg_rollup_columns.h"

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

void AddVector(const char* prefix, bool has_values, std::string& list) {
  const auto add = [&](const char* column) {
    absl::StrAppend(&list, list.empty() ? "" : ", ", prefix, "_", column);
  };
  for (const char* column :
       {"form", "width", "width2", "base", "factor", "bits", "bits2", "dictionary"}) {
    add(column);
  }
  if (!has_values) return;
  add("divisor_exponent");
  add("raw");
}

}  // namespace

std::string RollupTickVectorList() {
  std::string list;
  for (const char* prefix : {"bucket", "tick_count", "last_offset", "first_batch", "last_batch"}) {
    AddVector(prefix, /*has_values=*/false, list);
  }
  return list;
}

std::string RollupVectorList() {
  std::string list;
  for (const char* prefix : {"min", "max", "sum", "last"}) {
    AddVector(prefix, /*has_values=*/true, list);
  }
  for (const char* prefix : {"count", "nan_count", "last_lag"}) {
    AddVector(prefix, /*has_values=*/false, list);
  }
  return list;
}

}  // namespace stepwell
