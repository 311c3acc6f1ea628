// IngestStore: what the ingest half of the master asks of the database. The exactly-once step is
// Commit. PgIngestStore is the real one; tests/fakes has one in memory, and one contract suite
// runs against both.
//
// Errors: kUnavailable = come again (connection, shutdown, read-only); kInvalidArgument = the data
// itself was refused; kNotFound; kAborted = we are not the owner any more (stop everything).
// Thread-safe where said; otherwise confined to one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/model.h"
#include "storage/trial_filter.h"

namespace stepwell {

// Which trial an Open means: a number, or a name in a project.
struct TrialSelector {
  std::int64_t trial_id = 0;  // 0 = by name
  std::string project = "default";
  std::string external_id = {};
};

// So that nothing that looks at all writers of a trial takes longer than its callers wait: a reader lists as many
// (kWritersReadMax), and the master keeps so many nodes of a trial in memory.
inline constexpr std::int32_t kWritersPerTrialMax = 100'000;

struct OpenWriterRequest {
  TrialSelector trial;
  Uuid writer;
  std::string attempt_key;  // may be empty, see Open.attempt_key
  bool is_sampler = false;
  std::int32_t rank = 0;
  std::int32_t world_size = 0;
  std::string agent_id;
  std::string machine;
  Labels labels;
  std::string recorder_version;
  std::string agent_version;
  std::uint64_t last_generation = 0;
  std::int64_t owner_epoch = 0;
  // How many a trial may have that ever opened; one of them opens again all the same.
  std::int32_t writers_max = kWritersPerTrialMax;
  // To which the caller may add: kPermissionDenied where this is none of them, also where it would be made. None by
  // default.
  TrialFilter trials = ProjectFilter(std::vector<std::string>());
};

struct OpenedWriter {
  TrialId trial_id{};
  WriterNo writer_no{};
  std::int32_t attempt = 0;
  std::uint64_t generation = 0;  // max(stored, given) + 1
  std::uint64_t committed_sequence = 0;
  std::uint64_t folded_sequence = 0;
  std::uint32_t last_crc32c = 0;
  std::vector<Gap> rejections;  // cause kRejected, newest 1000
  TrialProfiling profiling = {};
};

// Where a chunk ends within the payload of its writer's advance.
struct JournalCut {
  std::uint64_t last_sequence = 0;
  std::size_t payload_end = 0;
};

// One writer's share of a commit group: sequences first..last are contiguous.
struct WriterAdvance {
  TrialId trial_id{};
  WriterNo writer_no{};
  std::uint64_t generation = 0;
  std::uint64_t first_sequence = 0;
  std::uint64_t last_sequence = 0;
  std::uint32_t last_crc32c = 0;
  // The Close that came after last_sequence, if one did. An advance that only closes has
  // first_sequence = last_sequence + 1 = committed + 1.
  std::optional<WriterState> closing;
  std::vector<Gap> gaps;
  // Journal bytes of these sequences, opaque here.
  std::string payload;
  // Its chunks' ends, ascending, the last one that of the payload: a row of the journal begins and ends
  // at one of them. Empty = it stands in one row.
  std::vector<JournalCut> cuts;
};

struct CommitGroupRequest {
  std::int64_t owner_epoch = 0;
  std::int64_t received_time_us = 0;
  // At most one entry per (trial, writer).
  std::vector<WriterAdvance> advances;
};

enum class AdvanceOutcome {
  kCommitted,  // stored and durable
  kRepeat,     // the database already had all of it, a closing is stored all the same: ack
  kFenced,     // another generation lives, or the writer or its trial is gone
  kMismatch,   // the database expects another sequence: see committed_sequence
};

struct AdvanceResult {
  AdvanceOutcome outcome{};
  std::uint64_t committed_sequence = 0;  // what the database holds now
};

// A journal row as replay sees it.
struct JournalRow {
  TrialId trial_id{};
  std::int64_t received_time_us = 0;
  struct Range {
    WriterNo writer_no{};
    std::uint64_t generation = 0;
    std::uint64_t first_sequence = 0;
    std::uint64_t last_sequence = 0;
    // Replay skips the chunks up to and including this; it may lie within the range.
    std::uint64_t folded_sequence = 0;
  };
  // Those with a sequence beyond folded_sequence; the others of the row are left out.
  std::vector<Range> ranges;
  // One per range, as given to Commit; none when the row is damaged.
  std::vector<std::string> payloads;
  // Not OK: what of the row could not be read. Its ranges are those that could.
  absl::Status damage = absl::OkStatus();
};

struct WriterProgress {
  TrialId trial_id{};
  WriterNo writer_no{};
  std::uint64_t generation = 0;
  std::uint64_t committed_sequence = 0;
  std::uint64_t folded_sequence = 0;
  WriterState state{};
};

// What the end of a trial depends on, of all the writers that it ever had.
struct TrialWriters {
  // Those that are open: the first by their numbers, kOpenWritersTold of them at most.
  std::vector<WriterNo> open = {};
  bool any_died = false;
};
inline constexpr std::int32_t kOpenWritersTold = 1000;

// What a master asks when it takes or renews the ownership.
struct OwnerClaim {
  std::string master_id;
  std::string address;
  // Held now; 0 = not owner.
  std::int64_t epoch = 0;
  // The newest that this process ever held; 0 = none yet: then the row of a former process of the
  // same master_id may be taken at once.
  std::int64_t last_epoch = 0;
  // Of the row that stood still for as long as an ownership lasts, as this claimant saw it (server/owner_lapse.h):
  // Ownership::renewal_us. 0 = none did.
  std::int64_t lapsed_renewal_us = 0;
};

struct Ownership {
  bool is_owner = false;
  std::int64_t epoch = 0;
  // While another owns it: who, and how old its renewal is.
  std::string owner_id;
  double renewed_age_seconds = 0;
  // Tells that renewal from others; a time of the database's clock, which may be set. 0 = it was released.
  std::int64_t renewal_us = 0;
  // To a claim without last_epoch: who owned it before this, or had owned it last; empty = nobody ever.
  std::string owner_before = {};
  // Of the owner: the database's, a new one where it lies elsewhere than when it was owned last.
  Uuid incarnation = {};
  // Not OK: the row is the owner's under `epoch`, and what the database is could not be read. Nothing may be made of it then
  // but the next claim, whose last_epoch this one is.
  absl::Status look = absl::OkStatus();
};

class IngestStore {
 public:
  virtual ~IngestStore() = default;

  // Takes or renews the masters row. Taken is a row that was released, one that is as the claimant saw it lapse, one
  // with the claim's last_epoch, and, at the first acquisition of a process, one of its master_id:
  // two masters that share an id by mistake do not take over from each other for ever. A new epoch is above last_epoch. The owner is told of the database's
  // incarnation, which is renewed where the database was restored (storage/pg_incarnation.h).
  // Thread-safe.
  [[nodiscard]] virtual absl::StatusOr<Ownership> AcquireOwnership(const OwnerClaim& claim) = 0;
  // An owner that stops in order lets the next one take over at once. Nothing happens where another
  // owns it already.
  [[nodiscard]] virtual absl::Status ReleaseOwnership(const std::string& master_id,
                                                      std::int64_t epoch) = 0;
  // After a take-over, before anything else: raises owner_epoch to `epoch`, in one transaction, of
  // all trials that are running or have open writers, unfolded sequences or unmerged rows. A commit
  // of the former owner that is under way ends before this returns.
  [[nodiscard]] virtual absl::Status FenceTrials(std::int64_t epoch) = 0;
  // Writers unfolded or open, and all of trials stored as running or lost, whose end may be due.
  [[nodiscard]] virtual absl::StatusOr<std::vector<WriterProgress>> ReadWriters() = 0;
  // Calls `row` for each journal row that holds a sequence beyond its writer's folded_sequence,
  // the oldest first, more or less. Streams; stops at the first error that `row` returns. A damaged row is
  // given with its damage, and rows may then be given a second time.
  [[nodiscard]] virtual absl::Status ReadUnfoldedJournal(
      const std::function<absl::Status(JournalRow)>& row) = 0;
  // Random id of this database, as it stands there: whoever owns it is told of a new one by AcquireOwnership.
  [[nodiscard]] virtual absl::StatusOr<Uuid> ReadIncarnation() = 0;

  // Idempotent; creates trial, attempt and writer as needed in one transaction, raises the
  // generation and, where it is lower, the trial's owner_epoch. kAborted when the request's epoch is
  // not that of the masters row (checked where there is one) or below the trial's. kResourceExhausted: a new one beyond
  // `writers_max`. Thread-safe.
  [[nodiscard]] virtual absl::StatusOr<OpenedWriter> OpenWriter(
      const OpenWriterRequest& request) = 0;
  // Numbers for all of `definitions`, in order; unknown ones are created, up to 1000 in a
  // transaction. SeriesNo{} for those that would be beyond `series_max` per trial: whoever is refused costs
  // one call, not one for each. kInvalidArgument if a known series has another unit or kind. `created`, where it is
  // given, grows by those that are new, also where the call fails behind them. Thread-safe.
  [[nodiscard]] virtual absl::StatusOr<std::vector<SeriesNo>> FindOrCreateSeries(
      TrialId trial_id, absl::Span<const SeriesDefinition> definitions, int series_max,
      std::int64_t* created = nullptr) = 0;

  // One transaction: checks owner_epoch of each trial under a lock, holds each writer's row
  // and moves it forward by AdvanceRules, stores gaps, copies journal rows (storage/journal_rows.h), commits. Results in the
  // order of `advances`; those not committed are stored in no part. On an unknown COMMIT it reads
  // back on a fresh connection and answers what the database says; if it cannot, CommitUnknown
  // (storage/pg_error.h): nothing may be assumed until ReadProgress answers.
  [[nodiscard]] virtual absl::StatusOr<std::vector<AdvanceResult>> Commit(
      const CommitGroupRequest& request) = 0;
  // Commits since the start whose answer was lost, settled since or not. Thread-safe.
  [[nodiscard]] virtual std::uint64_t commits_in_doubt() const = 0;
  // Where these writers stand. Thread-safe.
  [[nodiscard]] virtual absl::StatusOr<std::vector<WriterProgress>> ReadProgress(
      TrialId trial_id, absl::Span<const WriterNo> writers) = 0;

  // One statement that holds no lock, and few rows however many writers there are. A COMMIT in doubt may be in it or
  // not. Thread-safe.
  [[nodiscard]] virtual absl::StatusOr<TrialWriters> ReadTrialWriters(TrialId trial_id) = 0;
  // Stores what the master derived: running, completed, failed, lost. kNotFound: there is no such trial, or
  // it is deleted. kAborted when the epoch is not that of the masters row (checked where there is one) or
  // below the trial's. Thread-safe.
  [[nodiscard]] virtual absl::Status SetTrialState(TrialId trial_id, TrialState state,
                                                   std::int64_t owner_epoch) = 0;
  // Stores `wanted` with the trial under the next revision, which is answered; every later OpenWriter
  // sees it. kNotFound; kAborted as SetTrialState. Thread-safe.
  [[nodiscard]] virtual absl::StatusOr<TrialProfiling> SetProfiling(TrialId trial_id,
                                                                    const TrialProfiling& wanted,
                                                                    std::int64_t owner_epoch) = 0;
};

}  // namespace stepwell
