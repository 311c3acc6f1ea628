#include "storage/pg_trial_opener.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/failpoint.h"
#include "base/status_macros.h"
#include "storage/open_rules.h"
#include "storage/pg_profiling.h"
#include "storage/pg_sql.h"
#include "storage/pg_trial_filter.h"
#include "storage/series_labels.h"

namespace stepwell {
namespace {

struct Trial {
  TrialId trial_id{};
  std::int64_t owner_epoch = 0;
  std::int32_t attempt_count = 0;
  std::int32_t writer_count = 0;
};

absl::Status NotOwner(std::int64_t asked, std::int64_t stored) {
  return absl::AbortedError(
      absl::StrCat("owner epoch ", asked, " is over: another master owns it with epoch ", stored));
}

// One Open, inside its transaction.
class Opening {
 public:
  Opening(PgConnection& connection, const OpenWriterRequest& request)
      : connection_(connection), request_(request) {}

  absl::StatusOr<OpenedWriter> Run() {
    STEPWELL_RETURN_IF_ERROR(CheckMasters());
    STEPWELL_RETURN_IF_ERROR(LockTrial());
    STEPWELL_RETURN_IF_ERROR(CheckEpoch());
    STEPWELL_RETURN_IF_ERROR(FindWriter());
    if (opened_.writer_no == WriterNo{}) STEPWELL_RETURN_IF_ERROR(CreateWriter());
    STEPWELL_RETURN_IF_ERROR(
        connection_
            .Exec(sql::kUpdateTrialOpened, {Value(trial_.trial_id), trial_.attempt_count,
                                            trial_.writer_count, request_.owner_epoch})
            .status());
    STEPWELL_RETURN_IF_ERROR(ReadRejections());
    return opened_;
  }

 private:
  // Held until our COMMIT, so that a take-over sees every trial that we created under the old epoch.
  absl::Status CheckMasters() {
    STEPWELL_ASSIGN_OR_RETURN(const PgResult owner, connection_.Exec(sql::kLockOwner));
    if (owner.row_count() == 0 || owner.Int64(0, 0) == request_.owner_epoch) {
      return absl::OkStatus();
    }
    return NotOwner(request_.owner_epoch, owner.Int64(0, 0));
  }

  absl::StatusOr<PgResult> FindTrial() {
    const TrialSelector& by = request_.trial;
    std::vector<PgParam> params = PgTrialFilter(request_.trials);
    if (by.trial_id != 0) {
      params.emplace_back(by.trial_id);
      return connection_.Exec(sql::kFindTrialById, params);
    }
    params.emplace_back(by.project);
    params.emplace_back(by.external_id);
    return connection_.Exec(sql::kFindTrialByName, params);
  }

  // Another Open may create the same one meanwhile: then ours does nothing, and finds it.
  absl::Status CreateTrial() {
    const TrialSelector& by = request_.trial;
    if (by.trial_id >= kMasterTrialIdMin) {
      return absl::NotFoundError(absl::StrCat("trial ", by.trial_id, ": the master gave no such id",
                                              " (callers' own ids are 1 to ", kMasterTrialIdMin - 1,
                                              ")"));
    }
    if (by.trial_id != 0) {
      return connection_.Exec(sql::kCreateTrialById, {by.trial_id, request_.owner_epoch}).status();
    }
    STEPWELL_RETURN_IF_ERROR(connection_.Exec(sql::kCreateProject, {by.project}).status());
    return connection_
        .Exec(sql::kCreateTrialByName, {by.project, by.external_id, request_.owner_epoch})
        .status();
  }

  absl::Status LockTrial() {
    STEPWELL_ASSIGN_OR_RETURN(PgResult found, FindTrial());
    if (found.row_count() == 0) {
      STEPWELL_RETURN_IF_ERROR(CreateTrial());
      STEPWELL_ASSIGN_OR_RETURN(found, FindTrial());
    }
    if (found.row_count() == 0) return absl::UnavailableError("trial: deleted while it was opened");
    // In the transaction that made it: what may not be made goes with it.
    if (!found.Bool(0, 6)) return NotLetThrough(request_.trial);
    trial_ = {.trial_id = TrialId{found.Int64(0, 0)},
              .owner_epoch = found.Int64(0, 1),
              .attempt_count = found.Int32(0, 2),
              .writer_count = found.Int32(0, 3)};
    opened_.trial_id = trial_.trial_id;
    opened_.profiling = ProfilingAt(found, 0, 7);
    return CheckOpenTrial(request_.trial, trial_.trial_id,
                          {.archived = found.Bool(0, 4), .deleted = found.Bool(0, 5)});
  }

  // A trial that was at rest during a take-over still has the former owner's epoch.
  absl::Status CheckEpoch() {
    if (trial_.owner_epoch > request_.owner_epoch) {
      return NotOwner(request_.owner_epoch, trial_.owner_epoch);
    }
    if (trial_.owner_epoch == request_.owner_epoch) return absl::OkStatus();
    return connection_.Exec(sql::kLockTrialToRaise, {Value(trial_.trial_id)}).status();
  }

  absl::Status FindWriter() {
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult found,
        connection_.Exec(sql::kFindWriter, {Value(trial_.trial_id), request_.writer}));
    opened_.generation = request_.last_generation + 1;
    if (found.row_count() == 0) return absl::OkStatus();
    opened_.writer_no = WriterNo{found.Int32(0, 0)};
    opened_.generation =
        std::max(opened_.generation, static_cast<std::uint64_t>(found.Int64(0, 1)) + 1);
    opened_.folded_sequence = static_cast<std::uint64_t>(found.Int64(0, 2));
    opened_.attempt = found.Int32(0, 3);
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult held,
        connection_.Exec(sql::kReadHeldWriter, {Value(trial_.trial_id), Value(opened_.writer_no)}));
    opened_.committed_sequence = static_cast<std::uint64_t>(held.Int64(0, 0));
    opened_.last_crc32c = static_cast<std::uint32_t>(held.Int64(0, 1));
    return connection_
        .Exec(sql::kReopenWriter,
              {Value(trial_.trial_id), Value(opened_.writer_no),
               static_cast<std::int64_t>(opened_.generation), held.Int64(0, 0), held.Int64(0, 1)})
        .status();
  }

  absl::Status CreateWriter() {
    STEPWELL_RETURN_IF_ERROR(CheckRoomForWriter(request_, trial_.trial_id, trial_.writer_count));
    STEPWELL_RETURN_IF_ERROR(FindAttempt());
    opened_.writer_no = WriterNo{++trial_.writer_count};
    STEPWELL_RETURN_IF_ERROR(
        connection_
            .Exec(sql::kCreateWriter,
                  {Value(trial_.trial_id), Value(opened_.writer_no), request_.writer,
                   static_cast<std::int64_t>(opened_.generation), opened_.attempt,
                   request_.is_sampler ? PgParam::Null(PgOid::kInt4) : PgParam(request_.rank)})
            .status());
    return connection_
        .Exec(sql::kCreateWriterOrigin,
              {Value(trial_.trial_id), Value(opened_.writer_no), request_.agent_id,
               request_.machine, request_.world_size, PgJsonb{LabelsJson(request_.labels)},
               request_.recorder_version, request_.agent_version})
        .status();
  }

  absl::Status FindAttempt() {
    if (JoinsNewestAttempt(request_) && trial_.attempt_count > 0) {
      opened_.attempt = trial_.attempt_count;
      return absl::OkStatus();
    }
    const std::string key = AttemptKeyOf(request_);
    for (const SqlText& statement : {SqlText(sql::kFindAttempt), SqlText(sql::kNameAttempt)}) {
      STEPWELL_ASSIGN_OR_RETURN(const PgResult found,
                                connection_.Exec(statement, {Value(trial_.trial_id), key}));
      if (found.row_count() == 0) continue;
      opened_.attempt = found.Int32(0, 0);
      return absl::OkStatus();
    }
    opened_.attempt = ++trial_.attempt_count;
    return connection_.Exec(sql::kCreateAttempt, {Value(trial_.trial_id), opened_.attempt, key})
        .status();
  }

  absl::Status ReadRejections() {
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult rows,
        connection_.Exec(sql::kReadRejections, {Value(trial_.trial_id), Value(opened_.writer_no)}));
    for (int row = 0; row < rows.row_count(); ++row) {
      opened_.rejections.push_back(
          {.writer_no = opened_.writer_no,
           .cause = GapCause::kRejected,
           .metric_group = std::string(rows.Text(row, 0)),
           .sample_count = rows.Int64(row, 1),
           .first_time_us = rows.Int64(row, 2),
           .last_time_us = rows.Int64(row, 3),
           .first_sequence = static_cast<std::uint64_t>(rows.Int64(row, 4)),
           .last_sequence = static_cast<std::uint64_t>(rows.Int64(row, 5)),
           .reason = std::string(rows.Text(row, 6))});
    }
    return absl::OkStatus();
  }

  PgConnection& connection_;
  const OpenWriterRequest& request_;
  Trial trial_;
  OpenedWriter opened_;
};

}  // namespace

absl::StatusOr<OpenedWriter> OpenWriterInTransaction(PgConnection& connection,
                                                     const OpenWriterRequest& request) {
  STEPWELL_RETURN_IF_ERROR(CheckOpen(request));
  OpenedWriter opened;
  STEPWELL_RETURN_IF_ERROR(connection.InTransaction([&]() -> absl::Status {
    STEPWELL_ASSIGN_OR_RETURN(opened, Opening(connection, request).Run());
    return failpoint::Check("open_before_commit");
  }));
  STEPWELL_FAILPOINT("open_after_commit");
  return opened;
}

}  // namespace stepwell
