// ReadStore: what the query half of the master asks of the database. A ReadSnapshot sees one
// moment: bookkeeping and rows agree with each other, whatever folds and merges do meanwhile.
// PgReader is the real one.
//
//   HeadsPin pin = heads.Pin(trial_id);                      // first the heads ...
//   STEPWELL_ASSIGN_OR_RETURN(auto snapshot, store.OpenSnapshot(deadline));   // ... then SQL
//   STEPWELL_ASSIGN_OR_RETURN(auto rows, snapshot->ReadRows({.fold_no_max = pin.fold_no(), ...}));
//   for (;;) { STEPWELL_ASSIGN_OR_RETURN(auto row, rows->Next()); if (!row) break; ... }
//
// Errors: kUnavailable = come again (connection, shutdown); kDeadlineExceeded; kNotFound;
// kDataLoss = a row contradicts itself; kResourceExhausted = too many reads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/steady_time.h"
#include "storage/batches_around.h"
#include "storage/encoded_vector.h"
#include "storage/ingest_store.h"
#include "storage/model.h"
#include "storage/project_filter.h"
#include "storage/rollup.h"

namespace stepwell {

struct TrialRecord {
  TrialId trial_id{};
  std::string project = {};
  std::string external_id = {};  // empty = known by number alone
  TrialState state{};
  std::int64_t created_time_us = 0;
  std::int32_t attempt_count = 0;
  std::int32_t writer_count = 0;
  std::int32_t series_count = 0;
  // Of what is folded, from the ledger; 0 while nothing is.
  std::int64_t sample_count = 0;
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;
  // As in GapList.
  std::int64_t missing_sample_count = 0;
  bool samples_missing = false;
  TrialProfiling profiling = {};
};

// Of one ListTrials: so many trials are looked at, whatever is looked for, so that it costs no more where there are
// more. Ten thousand take 4 to 7 ms, a tenth of a second where each lies in a page of its own.
inline constexpr std::int32_t kTrialsLookedAtMax = 10'000;

// Newest first, by (created_time_us, trial_id).
struct TrialPage {
  std::string project = {};  // empty = all
  ProjectFilter readable_projects;
  std::string name_contains = {};  // of the external id; empty = all
  std::optional<TrialState> state = {};
  // The last trial that the page before looked at.
  struct After {
    std::int64_t created_time_us = 0;
    std::int64_t trial_id = 0;
  };
  std::optional<After> after = {};
  std::int32_t limit = 100;
  std::int32_t looks_max = kTrialsLookedAtMax;
};

struct TrialList {
  std::vector<TrialRecord> trials = {};
  // Where `looks_max` ended it before `limit`: it goes on after this. None = these are all, or as many as asked for.
  std::optional<TrialPage::After> looked_up_to = {};
};

// Of one trial at most; ListWriters leaves out those that opened later.
inline constexpr std::size_t kWritersReadMax = 100'000;

struct WriterRecord {
  WriterNo writer_no{};
  std::int32_t attempt = 0;
  std::optional<std::int32_t> rank = {};  // none = a machine's sampler
  // Processes in its job, as it said; 0 = unknown.
  std::int32_t world_size = 0;
  std::string agent_id = {};
  WriterState state{};
  // At least; of an open writer as of its last fold, for progress is not to be read in a snapshot
  // (pg_progress.h).
  std::uint64_t committed_sequence = 0;
  // Samples up to here are in the snapshot's rows and in its ledger.
  std::uint64_t folded_sequence = 0;
};

// All given conditions must hold; those left empty hold for any series.
struct SeriesSelection {
  std::string metric_group = {};
  std::string name = {};
  Labels labels = {};
  std::vector<std::int32_t> series_nos = {};
};

struct GapList {
  std::vector<Gap> gaps = {};  // oldest first
  bool truncated = false;
  // Over all gaps of the trial, listed or not; cause kClock apart, since it misses nothing.
  std::int64_t missing_sample_count = 0;
  // True when some gap (listed or not) has samples missing, known in number or not.
  bool samples_missing = false;
};

// Only gaps that may touch these times are listed; both 0 = all.
struct GapFilter {
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;
  std::int32_t limit = 1000;
  // Only those of this cause; none = of any.
  std::optional<GapCause> cause = {};
  // Only those of this group or of all groups; empty = of any.
  std::string metric_group = {};

  bool operator==(const GapFilter&) const = default;
};

// One line of the ledger.
struct UsageRecord {
  std::int32_t received_day = 0;  // days since 1970
  std::int16_t keep_class = 0;
  std::string metric_group = {};
  std::int64_t row_count = 0;
  std::int64_t sample_count = 0;
  std::int64_t byte_count = 0;
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;
  // False: some of its merged rows are older than rollups are.
  bool has_rollups = true;
  // Of rollups and their ticks. Above 0 where row_count is 0: a cap removed the samples.
  std::int64_t rollup_byte_count = 0;
  // Of samples that a cap removed and that rollups may still tell of.
  std::int64_t removed_sample_count = 0;
};

// The decoded ticks that the rows of one stretch share.
struct TickVectors {
  std::vector<std::int64_t> times_us = {};
  std::vector<std::int32_t> batches = {};  // -1 = none
};

// One stored row: the samples of one series on one stretch of ticks.
struct StoredRow {
  SeriesNo series_no{};
  WriterNo writer_no{};
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;
  std::int32_t sample_count = 0;
  std::int32_t nan_count = 0;
  // Over samples that are not NaN; meaningless if there are none.
  double min = 0;
  double max = 0;
  double sum = 0;
  double last = 0;
  // Null for a row that RowFilter::grid asked for without vectors.
  std::shared_ptr<const TickVectors> ticks = {};  // shared with the other rows of its stretch
  EncodedVector values = {};                      // decode to sample_count doubles
  // As in TickColumn: empty = every tick has a sample.
  std::vector<std::uint8_t> presence = {};
};

// Buckets of time: [start + i * width, start + (i + 1) * width). A row that lies in one of them
// and holds no NaN comes without vectors, since its statistics say all.
struct TimeGrid {
  std::int64_t start_us = 0;
  std::int64_t end_us = 0;
  std::int64_t width_us = 0;  // 0 = every row comes with vectors
};

struct RowFilter {
  TrialId trial_id{};
  std::vector<std::int32_t> series_nos = {};
  // Rows that may hold samples of [start, end). INT64_MIN and INT64_MAX = no bound.
  std::int64_t start_us = INT64_MIN;
  std::int64_t end_us = INT64_MAX;
  // Rows that may hold batches of [start, end); both 0 = any, samples without batch included.
  std::int32_t start_batch = 0;
  std::int32_t end_batch = 0;
  // Only rows of these writers; empty = all.
  std::vector<std::int32_t> writer_nos = {};
  // Recent rows of later folds are left out: the reader has them in its heads.
  FoldNo fold_no_max{};
  // Leaves out merged rows: the reader takes their rollups.
  bool only_recent = false;
  TimeGrid grid = {};
};

// Rows one by one, ordered by (series_no, first_time_us). Confined to one thread; the snapshot
// outlives it. Holds one page of rows and the ticks they refer to.
class RowCursor {
 public:
  virtual ~RowCursor() = default;
  // No value = no more. Blocks on the database once per page.
  [[nodiscard]] virtual absl::StatusOr<std::optional<StoredRow>> Next() = 0;
};

struct RollupFilter {
  TrialId trial_id{};
  std::vector<std::int32_t> series_nos = {};
  // One of kRollupSteps.
  std::int32_t step_seconds = 0;
  // Rollups of rows that may hold samples of [start, end).
  std::int64_t start_us = INT64_MIN;
  std::int64_t end_us = INT64_MAX;
};

// The rollup of one merged row.
struct StoredRollup {
  SeriesNo series_no{};
  std::shared_ptr<const RollupGrid> grid = {};
  std::shared_ptr<const RollupColumn> column = {};
};

// Rollups one by one, by series_no. As RowCursor otherwise.
class RollupCursor {
 public:
  virtual ~RollupCursor() = default;
  [[nodiscard]] virtual absl::StatusOr<std::optional<StoredRollup>> Next() = 0;
};

// What a store remembers of a trial's bookkeeping, of some older snapshot.
struct PresumedBook {
  std::int32_t series_count = 0;
  std::vector<UsageRecord> usage = {};
};

// Batches that a writer's stored ticks span.
struct WriterBatches {
  WriterNo writer_no{};
  std::int32_t first_batch = 0;
  std::int32_t last_batch = 0;
};

// Of one ReadBatchesAround: each looks at all rows of ticks of its writer.
inline constexpr std::size_t kStretchesMax = 128;

struct StoredLatest {
  SeriesNo series_no{};
  std::int64_t time_us = 0;
  std::int32_t batch = -1;
  double value = 0;
};

// Asked for room for `bytes` in all of a list that is being read, before more of it is; for none once it is no longer the
// reader's alone. Unless OK the reading ends with that.
using ListRoom = std::function<absl::Status(std::size_t bytes)>;

// One moment of the database. Confined to one thread; holds one connection.
class ReadSnapshot {
 public:
  virtual ~ReadSnapshot() = default;

  // Whether nobody waits for its answers any more, asked each ReadPatience::kLookEach at most between two questions to
  // the database, so never of a short read: kCancelled from then on.
  virtual void Heed(std::function<bool()> cancelled) = 0;
  // ReadTrial, ListWriters, ReadUsage and ReadGaps with this filter will be asked of the trial: all that is
  // expected comes in one round trip with the first of them.
  virtual void ExpectBook(TrialId trial_id, const GapFilter& gaps) = 0;
  // What is remembered of the trial, if anything: rows and rollups are then asked by that, in the round
  // trip that brings the book, until ConfirmBook.
  [[nodiscard]] virtual std::optional<PresumedBook> PresumeBook(TrialId trial_id) = 0;
  // Whether they were found where the snapshot's own book says they are. False = they answer nothing.
  [[nodiscard]] virtual absl::StatusOr<bool> ConfirmBook(TrialId trial_id) = 0;
  [[nodiscard]] virtual absl::StatusOr<TrialRecord> ReadTrial(TrialId trial_id) = 0;
  [[nodiscard]] virtual absl::StatusOr<TrialList> ListTrials(const TrialPage& page) = 0;
  // By writer_no; at most 100,000.
  [[nodiscard]] virtual absl::StatusOr<std::vector<WriterRecord>> ListWriters(TrialId trial_id) = 0;
  // When the attempt's first writer opened, by the database's clock: what was received before is none of it. No value =
  // there is no such attempt.
  [[nodiscard]] virtual absl::StatusOr<std::optional<std::int64_t>> ReadAttemptCreated(
      TrialId trial_id, std::int32_t attempt) = 0;
  // By series_no, beyond `after`, at most `limit`.
  [[nodiscard]] virtual absl::StatusOr<std::vector<Series>> ListSeries(
      TrialId trial_id, const SeriesSelection& selection, SeriesNo after, std::int32_t limit) = 0;
  // The first `series_count` of the trial, which are all that the snapshot has: ReadTrial says how many.
  // From memory where they are known, since a series never changes. Null where they are too large to be remembered
  // (ListSeries reads them in pages). `room` is asked for what nobody remembers.
  [[nodiscard]] virtual absl::StatusOr<std::shared_ptr<const std::vector<Series>>> ReadAllSeries(
      TrialId trial_id, std::int32_t series_count, const ListRoom& room) = 0;
  [[nodiscard]] virtual absl::StatusOr<GapList> ReadGaps(TrialId trial_id,
                                                         const GapFilter& filter) = 0;
  [[nodiscard]] virtual absl::StatusOr<std::vector<UsageRecord>> ReadUsage(TrialId trial_id) = 0;
  // One cursor of rows and one of rollups at a time per snapshot. Cursors that are opened before the
  // first of them is asked share a round trip.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<RowCursor>> ReadRows(
      const RowFilter& filter) = 0;
  // Of merged rows; they say the same as the rows, and go on saying it where a cap has removed those.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<RollupCursor>> ReadRollups(
      const RollupFilter& filter) = 0;
  // Writers whose ticks have batches, of folds up to `fold_no_max`.
  [[nodiscard]] virtual absl::StatusOr<std::vector<WriterBatches>> ReadBatchSpans(
      TrialId trial_id, FoldNo fold_no_max) = 0;
  // For each of `stretches` what stored ticks of its writer, of folds up to `fold_no_max`, say; of several rows of
  // ticks that reach there, the densest are looked at. At most kStretchesMax.
  [[nodiscard]] virtual absl::StatusOr<std::vector<BatchesAround>> ReadBatchesAround(
      TrialId trial_id, const std::vector<WriterStretch>& stretches, FoldNo fold_no_max) = 0;
  // The newest stored sample of each of the series that has one.
  [[nodiscard]] virtual absl::StatusOr<std::vector<StoredLatest>> ReadLatest(
      TrialId trial_id, const std::vector<std::int32_t>& series_nos, FoldNo fold_no_max) = 0;
};

struct TrialBook;  // trial_book.h

// Thread-safe.
class ReadStore {
 public:
  virtual ~ReadStore() = default;

  // What FindTrial said of it last, or the number itself where all projects are let through, without asking: the
  // trial may be gone. No value = unknown, or not known to lie in one of `projects`.
  [[nodiscard]] virtual std::optional<TrialId> KnownTrial(const TrialSelector& selector,
                                                          const ProjectFilter& projects) const = 0;
  // A name's number and a trial's project never change, so this may run before the heads are pinned. kNotFound,
  // in the same words for one that lies in none of `projects`.
  [[nodiscard]] virtual absl::StatusOr<TrialId> FindTrial(const TrialSelector& selector,
                                                          const ProjectFilter& projects,
                                                          SteadyTime deadline) = 0;
  // Whether the masters row has this epoch. One round trip.
  [[nodiscard]] virtual absl::StatusOr<bool> IsOwnedUnder(std::int64_t owner_epoch,
                                                          SteadyTime deadline) = 0;
  // The trial's bookkeeping, of a moment within the call. From memory where this master, which owns the
  // database under `owner_epoch`, has changed nothing since it was read. Null where another master owns it
  // by now. kNotFound. `room` as for ReadAllSeries.
  [[nodiscard]] virtual absl::StatusOr<std::shared_ptr<const TrialBook>> ReadBook(
      TrialId trial_id, std::int64_t owner_epoch, SteadyTime deadline, const ListRoom& room);
  // Waits for a connection until `deadline`. Nothing is asked after it, kDeadlineExceeded; a statement that runs then ends
  // within a quarter of a second, but each of several that travel in one round trip has the time that is left for itself.
  // The snapshot is of the moment of its first statement.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<ReadSnapshot>> OpenSnapshot(
      SteadyTime deadline) = 0;
  // What is remembered of the trial by this master, which owns the database under `owner_epoch`, without
  // asking: what it answers counts when its ConfirmBook says so (remembered_snapshot.h). Null = nothing.
  [[nodiscard]] virtual std::unique_ptr<ReadSnapshot> OpenRemembered(TrialId, std::int64_t,
                                                                     SteadyTime) {
    return nullptr;
  }
  // A snapshot of which is remembered what is read of the trial.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<ReadSnapshot>> OpenToRemember(
      TrialId, std::int64_t /*owner_epoch*/, SteadyTime deadline) {
    return OpenSnapshot(deadline);
  }
};

}  // namespace stepwell
