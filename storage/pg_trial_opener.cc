#include "storage/pg_trial_opener.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/failpoint.h"
#include "base/status_macros.h"
#include "storage/open_rules.h"
#include "storage/pg_array.h"
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

// The vectors of kCreateWriters and kCreateWriterOrigins.
struct NewWriters {
  void Add(const OpenWriterRequest& request, const OpenedWriter& opened) {
    numbers.push_back(Value(opened.writer_no));
    writers.push_back(request.writer);
    generations.push_back(static_cast<std::int64_t>(opened.generation));
    attempts.push_back(opened.attempt);
    ranks.push_back(request.rank);
    samplers.push_back(request.is_sampler ? 1 : 0);
    agents.push_back(request.agent_id);
    machines.push_back(request.machine);
    world_sizes.push_back(request.world_size);
    labels.push_back(LabelsJson(request.labels));
    recorders.push_back(request.recorder_version);
    agent_versions.push_back(request.agent_version);
  }

  std::vector<std::int32_t> numbers, attempts, ranks, world_sizes;
  std::vector<std::int16_t> samplers;
  std::vector<std::int64_t> generations;
  std::vector<Uuid> writers;
  std::vector<std::string> agents, machines, labels, recorders, agent_versions;
};

using Answers = std::vector<absl::StatusOr<OpenedWriter>>;

// Opens of one trial, inside their transaction.
class Opening {
 public:
  Opening(PgConnection& connection, std::span<const OpenWriterRequest* const> requests)
      : connection_(connection),
        requests_(requests),
        first_(*requests.front()),
        answers_(requests.size(), OpenedWriter()) {}

  absl::Status Run() {
    STEPWELL_RETURN_IF_ERROR(CheckMasters());
    STEPWELL_RETURN_IF_ERROR(LockTrial());
    STEPWELL_RETURN_IF_ERROR(CheckEpoch());
    STEPWELL_RETURN_IF_ERROR(ReopenKnown());
    STEPWELL_RETURN_IF_ERROR(CreateNew());
    // Then nothing was done: a trial that was made for them goes again, a full one stays at rest.
    if (are_all_refused()) return answers_.front().status();
    return connection_
        .Exec(sql::kUpdateTrialOpened, {Value(trial_.trial_id), trial_.attempt_count,
                                        trial_.writer_count, first_.owner_epoch})
        .status();
  }
  bool are_all_refused() const {
    return std::none_of(answers_.begin(), answers_.end(),
                        [](const auto& answer) { return answer.ok(); });
  }
  Answers TakeAnswers() { return std::move(answers_); }

 private:
  // Held until our COMMIT, so that a take-over sees every trial that we created under the old epoch.
  absl::Status CheckMasters() {
    STEPWELL_ASSIGN_OR_RETURN(const PgResult owner, connection_.Exec(sql::kLockOwner));
    if (owner.row_count() == 0 || owner.Int64(0, 0) == first_.owner_epoch) {
      return absl::OkStatus();
    }
    return NotOwner(first_.owner_epoch, owner.Int64(0, 0));
  }

  absl::StatusOr<PgResult> FindTrial() {
    const TrialSelector& by = first_.trial;
    std::vector<PgParam> params = PgTrialFilter(first_.trials);
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
    const TrialSelector& by = first_.trial;
    if (by.trial_id >= kMasterTrialIdMin) {
      return absl::NotFoundError(absl::StrCat("trial ", by.trial_id, ": the master gave no such id",
                                              " (callers' own ids are 1 to ", kMasterTrialIdMin - 1,
                                              ")"));
    }
    if (by.trial_id != 0) {
      return connection_.Exec(sql::kCreateTrialById, {by.trial_id, first_.owner_epoch}).status();
    }
    STEPWELL_RETURN_IF_ERROR(connection_.Exec(sql::kCreateProject, {by.project}).status());
    return connection_
        .Exec(sql::kCreateTrialByName, {by.project, by.external_id, first_.owner_epoch})
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
    if (!found.Bool(0, 6)) return NotLetThrough(first_.trial);
    trial_ = {.trial_id = TrialId{found.Int64(0, 0)},
              .owner_epoch = found.Int64(0, 1),
              .attempt_count = found.Int32(0, 2),
              .writer_count = found.Int32(0, 3)};
    profiling_ = ProfilingAt(found, 0, 7);
    return CheckOpenTrial(first_.trial, trial_.trial_id,
                          {.archived = found.Bool(0, 4), .deleted = found.Bool(0, 5)});
  }

  // A trial that was at rest during a take-over still has the former owner's epoch.
  absl::Status CheckEpoch() {
    if (trial_.owner_epoch > first_.owner_epoch) {
      return NotOwner(first_.owner_epoch, trial_.owner_epoch);
    }
    if (trial_.owner_epoch == first_.owner_epoch) return absl::OkStatus();
    return connection_.Exec(sql::kLockTrialToRaise, {Value(trial_.trial_id)}).status();
  }

  // Those that opened before: their rows are locked, and stand from then on where they are.
  absl::Status ReopenKnown() {
    std::vector<Uuid> writers;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      OpenedWriter& opened = *answers_[i];
      opened.trial_id = trial_.trial_id;
      opened.profiling = profiling_;
      opened.generation = requests_[i]->last_generation + 1;
      writers.push_back(requests_[i]->writer);
    }
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult found,
        connection_.Exec(sql::kFindWriters, {Value(trial_.trial_id), PgArray(writers)}));
    for (int row = 0; row < found.row_count(); ++row) {
      OpenedWriter& opened = *answers_[static_cast<std::size_t>(found.Int32(row, 0)) - 1];
      opened.writer_no = WriterNo{found.Int32(row, 1)};
      opened.generation =
          std::max(opened.generation, static_cast<std::uint64_t>(found.Int64(row, 2)) + 1);
      opened.folded_sequence = static_cast<std::uint64_t>(found.Int64(row, 3));
      opened.attempt = found.Int32(row, 4);
      known_[found.Int32(row, 1)] = &opened;
    }
    if (known_.empty()) return absl::OkStatus();
    std::vector<std::int32_t> numbers;
    for (const auto& [writer_no, opened] : known_) numbers.push_back(writer_no);
    STEPWELL_RETURN_IF_ERROR(MoveOn(numbers));
    return ReadRejections(numbers);
  }

  absl::Status MoveOn(const std::vector<std::int32_t>& numbers) {
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult held,
        connection_.Exec(sql::kReadHeldWriters, {Value(trial_.trial_id), PgArray(numbers)}));
    std::vector<std::int32_t> writer_nos;
    std::vector<std::int64_t> generations, sequences, crcs;
    for (int row = 0; row < held.row_count(); ++row) {
      OpenedWriter& opened = *known_.at(held.Int32(row, 0));
      opened.committed_sequence = static_cast<std::uint64_t>(held.Int64(row, 1));
      opened.last_crc32c = static_cast<std::uint32_t>(held.Int64(row, 2));
      writer_nos.push_back(held.Int32(row, 0));
      generations.push_back(static_cast<std::int64_t>(opened.generation));
      sequences.push_back(held.Int64(row, 1));
      crcs.push_back(held.Int64(row, 2));
    }
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult moved,
        connection_.Exec(sql::kReopenWriters,
                         {Value(trial_.trial_id), PgArray(writer_nos), PgArray(generations),
                          PgArray(sequences), PgArray(crcs)}));
    if (moved.affected_count() == static_cast<std::int64_t>(numbers.size())) {
      return absl::OkStatus();
    }
    return absl::InternalError(absl::StrCat("reopened ", moved.affected_count(), " of ",
                                            numbers.size(), " writers whose rows are held"));
  }

  absl::Status ReadRejections(const std::vector<std::int32_t>& numbers) {
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult rows,
        connection_.Exec(sql::kReadRejections, {Value(trial_.trial_id), PgArray(numbers)}));
    for (int row = 0; row < rows.row_count(); ++row) {
      OpenedWriter& opened = *known_.at(rows.Int32(row, 0));
      opened.rejections.push_back({.writer_no = opened.writer_no,
                                   .cause = GapCause::kRejected,
                                   .metric_group = std::string(rows.Text(row, 1)),
                                   .sample_count = rows.Int64(row, 2),
                                   .first_time_us = rows.Int64(row, 3),
                                   .last_time_us = rows.Int64(row, 4),
                                   .first_sequence = static_cast<std::uint64_t>(rows.Int64(row, 5)),
                                   .last_sequence = static_cast<std::uint64_t>(rows.Int64(row, 6)),
                                   .reason = std::string(rows.Text(row, 7))});
    }
    return absl::OkStatus();
  }

  absl::Status CreateNew() {
    NewWriters made;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const OpenWriterRequest& request = *requests_[i];
      if (answers_[i]->writer_no != WriterNo{}) continue;
      const absl::Status room = CheckRoomForWriter(request, trial_.trial_id, trial_.writer_count);
      if (!room.ok()) {
        answers_[i] = room;
        continue;
      }
      STEPWELL_ASSIGN_OR_RETURN(answers_[i]->attempt, FindAttempt(request));
      answers_[i]->writer_no = WriterNo{++trial_.writer_count};
      made.Add(request, *answers_[i]);
    }
    if (made.numbers.empty()) return absl::OkStatus();
    STEPWELL_RETURN_IF_ERROR(
        connection_
            .Exec(sql::kCreateWriters,
                  {Value(trial_.trial_id), PgArray(made.numbers), PgArray(made.writers),
                   PgArray(made.generations), PgArray(made.attempts), PgArray(made.ranks),
                   PgArray(made.samplers)})
            .status());
    return connection_
        .Exec(sql::kCreateWriterOrigins,
              {Value(trial_.trial_id), PgArray(made.numbers), PgArray(made.agents),
               PgArray(made.machines), PgArray(made.world_sizes), PgArray(made.labels),
               PgArray(made.recorders), PgArray(made.agent_versions)})
        .status();
  }

  absl::StatusOr<std::int32_t> FindAttempt(const OpenWriterRequest& request) {
    if (JoinsNewestAttempt(request) && trial_.attempt_count > 0) return trial_.attempt_count;
    const std::string key = AttemptKeyOf(request);
    const auto [known, is_new] = attempts_.try_emplace(key);
    if (is_new) {
      STEPWELL_ASSIGN_OR_RETURN(known->second, FindAttemptOf(key));
    }
    return known->second;
  }

  absl::StatusOr<std::int32_t> FindAttemptOf(const std::string& key) {
    for (const SqlText& statement : {SqlText(sql::kFindAttempt), SqlText(sql::kNameAttempt)}) {
      STEPWELL_ASSIGN_OR_RETURN(const PgResult found,
                                connection_.Exec(statement, {Value(trial_.trial_id), key}));
      if (found.row_count() > 0) return found.Int32(0, 0);
    }
    const std::int32_t attempt = ++trial_.attempt_count;
    STEPWELL_RETURN_IF_ERROR(
        connection_.Exec(sql::kCreateAttempt, {Value(trial_.trial_id), attempt, key}).status());
    return attempt;
  }

  PgConnection& connection_;
  const std::span<const OpenWriterRequest* const> requests_;
  const OpenWriterRequest& first_;  // of what they have in common
  Trial trial_;
  TrialProfiling profiling_;
  Answers answers_;                              // in the order of the requests
  std::map<std::int32_t, OpenedWriter*> known_;  // of those that opened before, by their numbers
  std::map<std::string, std::int32_t> attempts_;
};

}  // namespace

absl::StatusOr<std::vector<absl::StatusOr<OpenedWriter>>> OpenWritersInTransaction(
    PgConnection& connection, std::span<const OpenWriterRequest* const> requests) {
  Opening opening(connection, requests);
  const absl::Status done = connection.InTransaction([&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(opening.Run());
    return failpoint::Check("open_before_commit");
  });
  if (!done.ok() && !opening.are_all_refused()) return done;
  STEPWELL_FAILPOINT("open_after_commit");
  return opening.TakeAnswers();
}

}  // namespace stepwell
