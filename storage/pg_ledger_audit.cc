#include "storage/pg_ledger_audit.h"

#include <string>
#include <vector>

#include "base/log.h"
#include "base/status_macros.h"
#include "storage/pg_sweeper_sql.h"

namespace stepwell {
namespace {

constexpr int kPlacesPerPage = 100;

}  // namespace

absl::StatusOr<AuditPlace> PgLedgerAudit::Run(AuditPlace from, std::int64_t only_trial_id) {
  bool has_checked = false;  // each call comes further
  for (;;) {
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult places,
        connection_.Exec(sql::kListLinesToAudit,
                         {from.trial_id, PgDate{from.received_day}, from.keep_class, only_trial_id,
                          std::int64_t{kPlacesPerPage}}));
    for (int row = 0; row < places.row_count(); ++row) {
      if (has_checked && pace_.IsOver()) return from;
      from = {places.Int64(row, 0), places.DateDays(row, 1),
              static_cast<std::int16_t>(places.Int32(row, 2))};
      STEPWELL_RETURN_IF_ERROR(Check(from));
      has_checked = true;
    }
    if (places.row_count() < kPlacesPerPage) return AuditPlace();
  }
}

absl::Status PgLedgerAudit::Check(const AuditPlace& place) {
  const std::vector<PgParam> key = {place.trial_id, place.keep_class, PgDate{place.received_day}};
  // One statement, one snapshot: the transactions that move rows move the ledger.
  STEPWELL_ASSIGN_OR_RETURN(const PgResult lacking, connection_.Exec(sql::kFindVanished, key));
  if (lacking.row_count() == 0) return absl::OkStatus();
  CapRemovals nothing;
  return InSweepTransaction(
      connection_, owner_epoch_, nothing, [&](std::vector<CapRemoval>&) -> absl::Status {
        // Again, with the lines held: nobody's rows come or go meanwhile.
        STEPWELL_RETURN_IF_ERROR(connection_.Exec(sql::kHoldLines, key).status());
        STEPWELL_ASSIGN_OR_RETURN(const PgResult noted, connection_.Exec(sql::kNoteVanished, key));
        for (int row = 0; row < noted.row_count(); ++row) {
          vanished_count_ += noted.Int64(row, 1);
          log::Warning("rows_vanished", {{"trial", place.trial_id},
                                         {"metric_group", std::string(noted.Text(row, 0))},
                                         {"samples", noted.Int64(row, 1)}});
        }
        return absl::OkStatus();
      });
}

}  // namespace stepwell
