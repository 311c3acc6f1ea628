#include "storage/pg_rollup_columns.h"

#include <vector>

namespace stepwell {
namespace {

constexpr SqlText kOfIntegers[] = {"form",   "width", "width2", "base",
                                   "factor", "bits",  "bits2",  "dictionary"};
constexpr SqlText kOfValues[] = {"divisor_exponent", "raw"};  // behind those

constexpr SqlText kTickVectors[] = {"bucket", "tick_count", "last_offset", "first_batch",
                                    "last_batch"};
constexpr SqlText kValueVectors[] = {"min", "max", "sum", "last"};
constexpr SqlText kCountVectors[] = {"count", "nan_count", "last_lag"};

void Add(const SqlText& vector, std::span<const SqlText> columns, std::vector<SqlText>& list) {
  for (const SqlText& column : columns) list.push_back(SqlCat({vector, "_", column}));
}

}  // namespace

SqlText RollupTickVectorList() {
  std::vector<SqlText> list;
  for (const SqlText& vector : kTickVectors) Add(vector, kOfIntegers, list);
  return SqlJoin(list, ", ");
}

SqlText RollupVectorList() {
  std::vector<SqlText> list;
  for (const SqlText& vector : kValueVectors) {
    Add(vector, kOfIntegers, list);
    Add(vector, kOfValues, list);
  }
  for (const SqlText& vector : kCountVectors) Add(vector, kOfIntegers, list);
  return SqlJoin(list, ", ");
}

}  // namespace stepwell
