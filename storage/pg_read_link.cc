#include "storage/pg_read_link.h"

#include <iterator>
#include <utility>

#include "base/status_macros.h"

namespace stepwell {

absl::StatusOr<std::vector<PgResult>> PgReadLink::Run(std::vector<ReadStatement> statements) {
  const std::size_t ahead = put_off_.size();
  std::move(statements.begin(), statements.end(), std::back_inserter(put_off_));
  const std::vector<ReadStatement> all = std::exchange(put_off_, {});
  if (watch_) watch_(all);
  std::vector<PgStatement> sent;
  sent.reserve(all.size());
  for (const ReadStatement& each : all) sent.push_back(each.statement);
  STEPWELL_ASSIGN_OR_RETURN(std::vector<PgResult> results, loan_->ExecAll(sent));
  results.erase(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(ahead));
  return results;
}

absl::StatusOr<PgResult> PgReadLink::RunOne(ReadQuery query, std::string sql,
                                            std::vector<PgParam> params) {
  std::vector<ReadStatement> one;
  one.push_back({query, {std::move(sql), std::move(params)}});
  STEPWELL_ASSIGN_OR_RETURN(std::vector<PgResult> results, Run(std::move(one)));
  return std::move(results.front());
}

void PgReadLink::PutOff(std::string sql, std::vector<PgParam> params) {
  put_off_.push_back({ReadQuery::kControl, {std::move(sql), std::move(params)}});
}

}  // namespace stepwell
