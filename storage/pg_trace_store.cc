#include "storage/pg_trace_store.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/failpoint.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "storage/caps.h"
#include "storage/pg_caps_places.h"
#include "storage/pg_caps_read.h"
#include "storage/pg_owner.h"
#include "storage/pg_trace_rows.h"
#include "storage/pg_trace_sql.h"

namespace stepwell {
namespace {

// What Delete clears itself.
constexpr absl::Duration kClearDuration = absl::Seconds(1);

PgConnection::Options ConnectionOptions(const PgTraceStore::Options& options) {
  PgConnection::Options connection;
  connection.url = options.url;
  connection.application_name = "stepwell-traces";
  connection.idle_in_transaction_timeout = options.idle_in_transaction_timeout;
  connection.cut = options.cut;
  return connection;
}

absl::Status NoTrace(TrialId trial_id, std::int32_t trace_no) {
  return absl::NotFoundError(absl::StrCat("trial ", Value(trial_id), " has no trace ", trace_no,
                                          "; 'stepwell trace list' shows which there are"));
}

absl::Status Reasoned(absl::Status status, absl::string_view reason) {
  status.SetPayload("stepwell/reason", absl::Cord(reason));
  return status;
}

// Takes the trial for the transaction.
absl::Status HoldTrial(PgConnection& connection, std::int64_t owner_epoch, TrialId trial_id) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult held, connection.Exec(sql::kHoldTrialOfTraces,
                                                                 {Value(trial_id), owner_epoch}));
  if (held.row_count() > 0 && held.Int64(0, 2) != owner_epoch) {
    return absl::AbortedError(
        absl::StrCat("owner epoch ", owner_epoch, " is over: another master owns the database"));
  }
  if (held.row_count() == 0 || held.Bool(0, 1)) {
    return absl::NotFoundError(absl::StrCat("trial ", Value(trial_id), " was deleted"));
  }
  if (held.Bool(0, 0)) {
    return Reasoned(absl::FailedPreconditionError(
                        absl::StrCat("trial ", Value(trial_id),
                                     " is archived: nothing is added to it; take it out of the "
                                     "archive first")),
                    "TRIAL_ARCHIVED");
  }
  return absl::OkStatus();
}

absl::Status CheckWriter(PgConnection& connection, TrialId trial_id, const Uuid& writer) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult found,
                            connection.Exec(sql::kFindWriterOfTrial, {Value(trial_id), writer}));
  if (found.Bool(0, 0)) return absl::OkStatus();
  return Reasoned(absl::FailedPreconditionError(absl::StrCat("writer ", writer.ToText(),
                                                             " is none of trial ", Value(trial_id),
                                                             "; allowed: one of its own, or none")),
                  "WRITER_OF_ANOTHER_TRIAL");
}

template <typename T>
PgParam OptionalParam(const std::optional<T>& value, PgOid oid) {
  return value ? PgParam(*value) : PgParam::Null(oid);
}

std::vector<PgParam> InsertParams(TrialId trial_id, std::int32_t trace_no, StoredTraceState state,
                                  const StoredTraceHeader& header, const std::string& reason) {
  return {Value(trial_id),
          trace_no,
          static_cast<std::int16_t>(state),
          static_cast<std::int16_t>(header.format),
          OptionalParam(header.rank, PgOid::kInt4),
          OptionalParam(header.epoch, PgOid::kInt4),
          OptionalParam(header.first_batch, PgOid::kInt4),
          OptionalParam(header.last_batch, PgOid::kInt4),
          header.byte_count,
          OptionalParam(header.writer, PgOid::kUuid),
          header.name,
          header.machine,
          PgBytes{header.sha256},
          reason};
}

// The cap that `byte_count` more would exceed; empty = none.
struct Refusal {
  std::string cap = {};
  std::string text = {};
};
absl::StatusOr<Refusal> RefusalOf(PgConnection& connection, TrialId trial_id,
                                  std::int64_t byte_count, std::int64_t kept_bytes) {
  STEPWELL_ASSIGN_OR_RETURN(const auto placed, ReadCapsOfTrial(connection, trial_id));
  const EffectiveCaps caps =
      placed ? ResolveCaps(placed->placed, placed->project_id, Value(trial_id), "")
             : ResolveCaps({}, 0, Value(trial_id), "");
  if (caps.trace_bytes.value > 0 && byte_count > caps.trace_bytes.value) {
    return Refusal{"trace_bytes", absl::StrCat("it has ", byte_count, " bytes; allowed are up to ",
                                               caps.trace_bytes.value, " (trace_bytes)")};
  }
  const std::int64_t all_max = caps.trial_trace_bytes.value;
  if (all_max > 0 && (kept_bytes > all_max || byte_count > all_max - kept_bytes)) {
    return Refusal{
        "trial_trace_bytes",
        absl::StrCat("it has ", byte_count, " bytes, traces of trial ", Value(trial_id), " have ",
                     kept_bytes, "; allowed are up to ", all_max, " in all (trial_trace_bytes)")};
  }
  return Refusal{};
}

// Room for one more record.
absl::Status CheckTraceCount(PgConnection& connection, TrialId trial_id) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult count,
                            connection.Exec(sql::kCountTraces, {Value(trial_id)}));
  if (count.Int64(0, 0) < kTracesOfTrialMax) return absl::OkStatus();
  STEPWELL_ASSIGN_OR_RETURN(const PgResult dropped,
                            connection.Exec(sql::kDropOldestRecord, {Value(trial_id)}));
  if (dropped.affected_count() > 0) return absl::OkStatus();
  return Reasoned(absl::ResourceExhaustedError(absl::StrCat("trial ", Value(trial_id), " has ",
                                                            count.Int64(0, 0), " traces, limit ",
                                                            kTracesOfTrialMax)),
                  "TRACE_COUNT");
}

// What begins an upload, inside its transaction. `refusal` is to be told after the COMMIT: it is noted.
class Beginning {
 public:
  Beginning(PgConnection& connection, TrialId trial_id, const StoredTraceHeader& header)
      : connection_(connection), trial_id_(trial_id), header_(header) {}

  absl::Status Run(std::int64_t owner_epoch) {
    refusal_ = {};
    STEPWELL_RETURN_IF_ERROR(HoldTrial(connection_, owner_epoch, trial_id_));
    if (header_.writer) {
      STEPWELL_RETURN_IF_ERROR(CheckWriter(connection_, trial_id_, *header_.writer));
    }
    STEPWELL_RETURN_IF_ERROR(connection_.Exec(sql::kMakeTraceUsage, {Value(trial_id_)}).status());
    STEPWELL_ASSIGN_OR_RETURN(const PgResult usage,
                              connection_.Exec(sql::kLockTraceUsage, {Value(trial_id_)}));
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult same,
        connection_.Exec(sql::kFindTraceByContent,
                         {Value(trial_id_), PgBytes{header_.sha256}, header_.name}));
    if (same.row_count() > 0) trace_ = TraceAt(same, 0);
    const bool is_new = same.row_count() == 0;
    if (!is_new && trace_.header.byte_count != header_.byte_count) {
      return absl::InvalidArgumentError(
          absl::StrCat("header.byte_count is ", header_.byte_count, "; trace ", trace_.trace_no,
                       " of the same name and SHA-256 has ", trace_.header.byte_count));
    }
    if (!is_new && trace_.state != StoredTraceState::kRefused) return absl::OkStatus();
    STEPWELL_ASSIGN_OR_RETURN(
        refusal_, RefusalOf(connection_, trial_id_, header_.byte_count, usage.Int64(0, 1)));
    return is_new ? Insert(usage.Int32(0, 0) + 1) : Turn();
  }
  const TraceRecord& trace() const { return trace_; }
  absl::Status refused() const {
    if (refusal_.cap.empty()) return absl::OkStatus();
    return Reasoned(absl::ResourceExhaustedError(
                        absl::StrCat("trace '", header_.name, "' is refused: ", refusal_.text)),
                    refusal_.cap);
  }

 private:
  StoredTraceState state() const {
    return refusal_.cap.empty() ? StoredTraceState::kUploading : StoredTraceState::kRefused;
  }
  absl::Status Insert(std::int32_t trace_no) {
    STEPWELL_RETURN_IF_ERROR(CheckTraceCount(connection_, trial_id_));
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult inserted,
        connection_.Exec(sql::kInsertTrace,
                         InsertParams(trial_id_, trace_no, state(), header_, refusal_.cap)));
    trace_ = TraceAt(inserted, 0);
    return MoveUsage(1, refusal_.cap.empty() ? 0 : 1);
  }
  absl::Status Turn() {
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult turned,
        connection_.Exec(sql::kTurnTrace, {Value(trial_id_), trace_.trace_no,
                                           static_cast<std::int16_t>(state()), refusal_.cap}));
    trace_ = TraceAt(turned, 0);
    return MoveUsage(0, 0);
  }
  absl::Status MoveUsage(std::int32_t numbers, std::int64_t refused) {
    const std::int64_t bytes = refusal_.cap.empty() ? header_.byte_count : 0;
    return connection_.Exec(sql::kMoveTraceUsage, {Value(trial_id_), numbers, bytes, refused})
        .status();
  }

  PgConnection& connection_;
  const TrialId trial_id_;
  const StoredTraceHeader& header_;
  TraceRecord trace_ = {};
  Refusal refusal_ = {};
};

absl::StatusOr<TrialId> LivingTrial(PgConnection& connection, const TrialSelector& selector,
                                    const TrialFilter& trials) {
  STEPWELL_RETURN_IF_ERROR(CheckTarget({.trial = selector}));
  STEPWELL_ASSIGN_OR_RETURN(const FoundTrial found, FindTrialOf(connection, selector, trials));
  if (found.deleted) {
    return absl::NotFoundError(absl::StrCat("trial ", Value(found.trial_id), " was deleted"));
  }
  return found.trial_id;
}

}  // namespace

PgTraceStore::PgTraceStore(const Options& options)
    : shelf_(ConnectionOptions(options), options.connections_max) {}

absl::StatusOr<TraceRecord> PgTraceStore::Begin(std::int64_t owner_epoch,
                                                const TrialSelector& selector,
                                                const TrialFilter& trials,
                                                const StoredTraceHeader& header) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow());
  STEPWELL_ASSIGN_OR_RETURN(const TrialId trial_id, LivingTrial(*connection, selector, trials));
  Beginning beginning(*connection, trial_id, header);
  STEPWELL_RETURN_IF_ERROR(
      ComeAgainIfUnknown(connection->InTransaction([&] { return beginning.Run(owner_epoch); })));
  STEPWELL_RETURN_IF_ERROR(beginning.refused());
  return beginning.trace();
}

absl::Status PgTraceStore::Append(std::int64_t owner_epoch, TraceRecord& trace,
                                  std::string_view bytes) {
  const auto byte_count = static_cast<std::int64_t>(bytes.size());
  STEPWELL_CHECK(trace.received_bytes % kTracePartBytes == 0);
  STEPWELL_CHECK(byte_count > 0);
  STEPWELL_CHECK(byte_count ==
                 std::min(kTracePartBytes, trace.header.byte_count - trace.received_bytes));
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow());
  std::int64_t changed_us = 0;
  const absl::Status appended = connection->InTransaction([&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(HoldTrial(*connection, owner_epoch, trace.trial_id));
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult moved,
        connection->Exec(sql::kMoveTrace, {Value(trace.trial_id), trace.trace_no,
                                           trace.received_bytes, byte_count}));
    if (moved.row_count() == 0) {
      return Reasoned(absl::FailedPreconditionError(
                          absl::StrCat("another call goes on with trace ", trace.trace_no,
                                       ", or it was deleted; ask how far it is, and go on there")),
                      "TRACE_MOVED");
    }
    changed_us = moved.TimestampUs(0, 0);
    const auto part_no = static_cast<std::int32_t>(trace.received_bytes / kTracePartBytes);
    STEPWELL_RETURN_IF_ERROR(
        connection
            ->Exec(sql::kInsertTracePart,
                   {Value(trace.trial_id), trace.trace_no, part_no, PgBytes{bytes}})
            .status());
    return failpoint::Check("trace_part_before_commit");
  });
  STEPWELL_RETURN_IF_ERROR(ComeAgainIfUnknown(appended));
  STEPWELL_FAILPOINT("trace_part_after_commit");
  trace.received_bytes += byte_count;
  trace.changed_time_us = changed_us;
  if (trace.received_bytes == trace.header.byte_count) trace.state = StoredTraceState::kComplete;
  return absl::OkStatus();
}

absl::StatusOr<TraceRecord> PgTraceStore::GiveUp(PgConnection& connection, std::int64_t owner_epoch,
                                                 TrialId trial_id, std::int32_t trace_no,
                                                 const TraceRecord* expected) {
  TraceRecord trace;
  const absl::Status given_up = connection.InTransaction([&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(CheckMaster(connection, owner_epoch));
    STEPWELL_RETURN_IF_ERROR(connection.Exec(sql::kLockTraceUsage, {Value(trial_id)}).status());
    STEPWELL_ASSIGN_OR_RETURN(const PgResult found,
                              connection.Exec(sql::kLockTrace, {Value(trial_id), trace_no}));
    if (found.row_count() == 0) return NoTrace(trial_id, trace_no);
    trace = TraceAt(found, 0);
    const bool is_expected =
        expected == nullptr || (trace.state == StoredTraceState::kUploading &&
                                trace.received_bytes == expected->received_bytes);
    if (!is_expected) {
      return Reasoned(
          absl::FailedPreconditionError(absl::StrCat("another call goes on with trace ", trace_no)),
          "TRACE_MOVED");
    }
    return GiveUpTrace(connection, trace, "");
  });
  STEPWELL_RETURN_IF_ERROR(ComeAgainIfUnknown(given_up));
  const SteadyTime deadline = SteadyTime::Now() + kClearDuration;
  while (!deadline.HasPassed()) {
    const auto is_clear = ClearTraceSlice(connection, owner_epoch, trial_id, trace_no);
    // It is deleted already; sweeps do the rest.
    if (!is_clear.ok() || *is_clear) break;
  }
  return trace;
}

absl::StatusOr<TraceRecord> PgTraceStore::Delete(std::int64_t owner_epoch,
                                                 const TrialSelector& selector,
                                                 const ProjectFilter& projects,
                                                 std::int32_t trace_no) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow());
  STEPWELL_ASSIGN_OR_RETURN(const TrialId trial_id, LivingTrial(*connection, selector, projects));
  return GiveUp(*connection, owner_epoch, trial_id, trace_no, nullptr);
}

absl::Status PgTraceStore::Discard(std::int64_t owner_epoch, const TraceRecord& trace) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow());
  return GiveUp(*connection, owner_epoch, trace.trial_id, trace.trace_no, &trace).status();
}

absl::StatusOr<TraceRecord> PgTraceStore::Find(const TrialSelector& selector,
                                               const ProjectFilter& projects,
                                               std::int32_t trace_no) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow());
  STEPWELL_ASSIGN_OR_RETURN(const TrialId trial_id, LivingTrial(*connection, selector, projects));
  STEPWELL_ASSIGN_OR_RETURN(const PgResult found,
                            connection->Exec(sql::kFindTrace, {Value(trial_id), trace_no}));
  if (found.row_count() == 0) return NoTrace(trial_id, trace_no);
  return TraceAt(found, 0);
}

absl::StatusOr<TraceList> PgTraceStore::List(const TrialSelector& selector,
                                             const ProjectFilter& projects,
                                             std::int32_t after_trace_no, std::int32_t limit) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow());
  STEPWELL_ASSIGN_OR_RETURN(const TrialId trial_id, LivingTrial(*connection, selector, projects));
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows,
                            connection->Exec(sql::kListTraces, {Value(trial_id), after_trace_no,
                                                                std::int64_t{limit} + 1}));
  TraceList list{.trial_id = trial_id, .more = rows.row_count() > limit};
  for (int row = 0; row < std::min(rows.row_count(), limit); ++row) {
    list.traces.push_back(TraceAt(rows, row));
  }
  STEPWELL_ASSIGN_OR_RETURN(const PgResult usage,
                            connection->Exec(sql::kReadTraceUsage, {Value(trial_id)}));
  if (usage.row_count() > 0) {
    list.byte_count = usage.Int64(0, 0);
    list.refused_count = usage.Int64(0, 1);
  }
  return list;
}

absl::StatusOr<std::string> PgTraceStore::ReadPart(const TraceRecord& trace, std::int64_t part_no) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow());
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult rows,
      connection->Exec(sql::kReadTracePart, {Value(trace.trial_id), trace.trace_no,
                                             static_cast<std::int32_t>(part_no)}));
  if (rows.row_count() == 0) {
    return absl::NotFoundError(absl::StrCat("trace ", trace.trace_no, " of trial ",
                                            Value(trace.trial_id), " went while it was read"));
  }
  return std::string(rows.Bytes(0, 0));
}

}  // namespace stepwell
