#include "storage/pg_trace_rows.h"

#include "base/status_macros.h"
#include "storage/pg_owner.h"
#include "storage/pg_trace_sql.h"

namespace stepwell {
namespace {

// Of 1 MiB each: some 20 ms, with what TOAST holds of them.
constexpr std::int64_t kPartsOfSlice = 32;

std::optional<std::int32_t> MaybeInt32(const PgResult& rows, int row, int column) {
  if (rows.IsNull(row, column)) return std::nullopt;
  return rows.Int32(row, column);
}

}  // namespace

TraceRecord TraceAt(const PgResult& rows, int row) {
  TraceRecord trace;
  trace.trial_id = TrialId{rows.Int64(row, 0)};
  trace.trace_no = rows.Int32(row, 1);
  trace.state = static_cast<StoredTraceState>(rows.Int32(row, 2));
  trace.header.format = static_cast<StoredTraceFormat>(rows.Int32(row, 3));
  trace.header.rank = MaybeInt32(rows, row, 4);
  trace.header.epoch = MaybeInt32(rows, row, 5);
  trace.header.first_batch = MaybeInt32(rows, row, 6);
  trace.header.last_batch = MaybeInt32(rows, row, 7);
  trace.header.byte_count = rows.Int64(row, 8);
  trace.received_bytes = rows.Int64(row, 9);
  trace.created_time_us = rows.TimestampUs(row, 10);
  trace.changed_time_us = rows.TimestampUs(row, 11);
  if (!rows.IsNull(row, 12)) trace.header.writer = rows.UuidAt(row, 12);
  trace.header.name = std::string(rows.Text(row, 13));
  trace.header.machine = std::string(rows.Text(row, 14));
  trace.header.sha256 = std::string(rows.Bytes(row, 15));
  trace.reason = std::string(rows.Text(row, 16));
  return trace;
}

absl::Status GiveUpTrace(PgConnection& connection, const TraceRecord& trace,
                         const std::string& reason) {
  const auto state = reason.empty() ? StoredTraceState::kDeleted : StoredTraceState::kRemoved;
  const bool was_kept =
      trace.state == StoredTraceState::kUploading || trace.state == StoredTraceState::kComplete;
  if (was_kept) {
    STEPWELL_RETURN_IF_ERROR(
        connection
            .Exec(sql::kMoveTraceUsage, {Value(trace.trial_id), std::int32_t{0},
                                         -trace.header.byte_count, std::int64_t{0}})
            .status());
  }
  return connection
      .Exec(sql::kGiveUpTrace,
            {Value(trace.trial_id), trace.trace_no, static_cast<std::int16_t>(state), reason})
      .status();
}

absl::StatusOr<bool> ClearTraceSlice(PgConnection& connection, std::int64_t owner_epoch,
                                     TrialId trial_id, std::int32_t trace_no) {
  bool is_clear = false;
  const absl::Status cleared = connection.InTransaction([&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(CheckMaster(connection, owner_epoch));
    STEPWELL_ASSIGN_OR_RETURN(const PgResult held,
                              connection.Exec(sql::kLockTraceToClear, {Value(trial_id), trace_no}));
    is_clear = held.row_count() == 0;
    if (is_clear) return absl::OkStatus();
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult left,
        connection.Exec(sql::kDropTraceParts, {Value(trial_id), trace_no, kPartsOfSlice}));
    is_clear = left.row_count() == 0 || left.Int64(0, 1) < kPartsOfSlice;
    if (!is_clear) return absl::OkStatus();
    return connection.Exec(sql::kDropDeletedTrace, {Value(trial_id), trace_no}).status();
  });
  STEPWELL_RETURN_IF_ERROR(cleared);
  return is_clear;
}

}  // namespace stepwell
