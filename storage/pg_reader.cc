#include "storage/pg_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "storage/pg_reader_rollups.h"
#include "storage/pg_reader_rows.h"
#include "storage/pg_reader_snapshot.h"
#include "storage/pg_reader_sql.h"

namespace stepwell {
namespace {

// The longest deadline of a read, and what a client's pause within it may take.
constexpr absl::Duration kStatementMax = absl::Seconds(60);

PgConnection::Options ConnectionOptions(const PgReader::Options& reader) {
  PgConnection::Options options;
  options.url = reader.url;
  options.cut = reader.cut;
  options.application_name = "stepwell read";
  options.statement_timeout = kStatementMax;
  options.idle_in_transaction_timeout = kStatementMax + absl::Seconds(5);
  options.reply_timeout = kStatementMax + absl::Seconds(5);
  return options;
}

std::string MillisecondsText(absl::Duration duration) {
  return absl::StrCat(std::max<std::int64_t>(1, absl::ToInt64Milliseconds(duration)));
}

absl::Status NotFound(const TrialSelector& selector) {
  if (selector.trial_id != 0) {
    return absl::NotFoundError(absl::StrCat("there is no trial with the id ", selector.trial_id));
  }
  return absl::NotFoundError(absl::StrCat("there is no trial '", selector.external_id,
                                          "' in project '", selector.project, "'"));
}

absl::StatusOr<absl::Duration> Patience(absl::Time deadline) {
  const absl::Duration left = deadline - absl::Now();
  if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("read: no time is left");
  return std::min(left, kStatementMax);
}

}  // namespace

PgReader::PgReader(Options options)
    : shelf_(ConnectionOptions(options), options.connection_count_max) {}

absl::StatusOr<TrialId> PgReader::FindTrial(const TrialSelector& selector, absl::Time deadline) {
  STEPWELL_ASSIGN_OR_RETURN(const absl::Duration patience, Patience(deadline));
  STEPWELL_ASSIGN_OR_RETURN(PgShelf::Loan loan, shelf_.Borrow(patience));
  auto found = selector.trial_id != 0
                   ? loan->Exec(sql::kReadTrialIdById, {selector.trial_id})
                   : loan->Exec(sql::kReadTrialIdByName, {selector.project, selector.external_id});
  if (!found.ok()) return Annotate(found.status(), "find trial");
  if (found->row_count() == 0) return NotFound(selector);
  return TrialId{found->Int64(0, 0)};
}

absl::StatusOr<std::unique_ptr<ReadSnapshot>> PgReader::OpenSnapshot(absl::Time deadline) {
  STEPWELL_ASSIGN_OR_RETURN(const absl::Duration patience, Patience(deadline));
  STEPWELL_ASSIGN_OR_RETURN(PgShelf::Loan loan, shelf_.Borrow(patience));
  STEPWELL_ASSIGN_OR_RETURN(auto snapshot, PgReaderSnapshot::Begin(std::move(loan), deadline));
  return std::unique_ptr<ReadSnapshot>(std::move(snapshot));
}

absl::StatusOr<std::unique_ptr<PgReaderSnapshot>> PgReaderSnapshot::Begin(PgShelf::Loan loan,
                                                                          absl::Time deadline) {
  STEPWELL_ASSIGN_OR_RETURN(const absl::Duration left, Patience(deadline));
  std::unique_ptr<PgReaderSnapshot> snapshot(new PgReaderSnapshot(std::move(loan)));
  PgConnection& connection = *snapshot->loan_;
  STEPWELL_RETURN_IF_ERROR(connection.Exec(sql::kBeginRead).status());
  STEPWELL_RETURN_IF_ERROR(connection
                               .Exec(sql::kLimitRead, {MillisecondsText(left),
                                                       MillisecondsText(left + absl::Seconds(5))})
                               .status());
  return snapshot;
}

absl::StatusOr<std::unique_ptr<RollupCursor>> PgReaderSnapshot::ReadRollups(
    const RollupFilter& filter) {
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<UsageRecord> usage, ReadUsage(filter.trial_id));
  STEPWELL_ASSIGN_OR_RETURN(auto cursor, PgRollupCursor::Open(*loan_, filter, usage));
  return std::unique_ptr<RollupCursor>(std::move(cursor));
}

absl::StatusOr<std::unique_ptr<RowCursor>> PgReaderSnapshot::ReadRows(const RowFilter& filter) {
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<UsageRecord> usage, ReadUsage(filter.trial_id));
  STEPWELL_ASSIGN_OR_RETURN(auto cursor, PgRowCursor::Open(*loan_, filter, usage));
  return std::unique_ptr<RowCursor>(std::move(cursor));
}

}  // namespace stepwell
