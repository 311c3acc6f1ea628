// TrialView: one trial at one moment, as every read of it sees it: heads pinned first, then one
// snapshot of the database, then what only the master knows. Confined to one thread.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto view, TrialView::Open(sources, request.trial(), call));
//   STEPWELL_ASSIGN_OR_RETURN(auto series, view->FindSeries({selection}));
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/steady_time.h"
#include "base/uuid.h"
#include "server/heads.h"
#include "server/memory_room.h"
#include "server/writer_liveness.h"
#include "stepwell/v1/query.pb.h"
#include "storage/read_store.h"

namespace stepwell {

// Where reads take what they answer from. All outlive them.
struct QuerySources {
  ReadStore& store;
  Heads& heads;
  const Clock& clock;
  const WriterLiveness& liveness;
  // Its incarnation, which may change while a master runs.
  std::function<Uuid()> database = [] { return Uuid{}; };
  // Whether the trial's profiling window has passed; may ask the database.
  std::function<bool(TrialId)> window_over = [](TrialId) { return false; };
  // Under which this master owns the database, as far as it knows; 0 = it does not. Null = the heads are
  // those of the database's owner, whoever that is.
  std::function<std::int64_t()> owner_epoch = nullptr;
  // Another master owns the database, so that waiting for heads of one's own is in vain. Null = never.
  std::function<bool()> stands_by = nullptr;
  // Of one ListTrials.
  std::int32_t trials_looked_at_max = kTrialsLookedAtMax;
  // Of lists of series, of all reads together; null = nobody counts.
  MemoryRoom* series_room = nullptr;
};

// One call of a client.
struct ReadCall {
  SteadyTime deadline;
  // True when nobody waits for the answer any more.
  std::function<bool()> cancelled = [] { return false; };
  // Trials that lie elsewhere are not there, in lists and for whoever names one.
  ProjectFilter readable_projects;
  // Runs a wait for something else than the database; others may have the call's turn meanwhile.
  std::function<void(const std::function<void()>&)> rest = [](const auto& wait) { wait(); };
};

// Before the heads of a trial are pinned: waits for a fold of it in bulk, while others may have the call's turn.
// kUnavailable = it went on until the deadline.
absl::Status AwaitBulk(const QuerySources& sources, TrialId trial_id, const ReadCall& call);

// Series of one read at most; their names alone are about 30 MB.
inline constexpr std::int32_t kReadSeriesMax = 100'000;

class TrialView {
 public:
  // Whether the trial's bookkeeping is read at once, or with the first rows: until then what is remembered
  // of it is presumed to hold. kRemembered: rows are presumed, too, where both are remembered. What is read
  // by the latter two is remembered.
  enum class Book { kRead, kPresumed, kRemembered };

  // `gaps`: those that Completeness will be asked about, if it is known. kNotFound; kInvalidArgument for a
  // bad reference. Waits a while for a journal that is being replayed, then goes on without its last seconds
  // and says so.
  static absl::StatusOr<std::unique_ptr<TrialView>> Open(const QuerySources& sources,
                                                         const v1::TrialRef& ref_untrusted,
                                                         const ReadCall& call,
                                                         const GapFilter& gaps = {},
                                                         Book book = Book::kRead);
  // Several trials, each once, at one moment: they share a snapshot, and so one connection; one's rows
  // are read to their end before another's. As Open otherwise; errors name trials[i].
  static absl::StatusOr<std::vector<std::unique_ptr<TrialView>>> OpenAll(
      const QuerySources& sources, const google::protobuf::RepeatedPtrField<v1::TrialRef>& refs,
      const ReadCall& call);

  // Of a view with a presumed book only trial_id(), snapshot(), pin(), usage(), FindSeries() and CountSeries()
  // say anything, and usage() may be out of date.
  bool is_presumed() const { return is_presumed_; }
  // Its rows are, too.
  bool is_remembered() const { return is_remembered_; }
  // Reads the book, where it was presumed. False = what was found by it so far answers nothing, nor does
  // anything that comes out otherwise now that usage() is the snapshot's.
  absl::StatusOr<bool> ConfirmBook();

  TrialId trial_id() const { return record_.trial_id; }
  ReadSnapshot& snapshot() { return *snapshot_; }
  const HeadsPin& pin() const { return pin_; }
  const TrialRecord& record() const { return record_; }
  const std::vector<WriterRecord>& writers() const { return writers_; }
  const std::map<WriterNo, WriterSeen>& seen() const { return seen_; }
  const std::vector<UsageRecord>& usage() const { return usage_; }

  // The trial with what is in heads.
  v1::Trial Trial() const;
  // 0 for a writer that the snapshot does not know.
  std::int32_t AttemptOf(WriterNo writer_no) const;
  // The newest one with a rank, else the newest; 0 without writers.
  std::int32_t NewestAttempt() const;
  // Of an answer about `metric_group` (empty = several) in [first, last] (both 0 = all).
  absl::StatusOr<v1::Completeness> Completeness(const std::string& metric_group,
                                                std::int64_t first_time_us = 0,
                                                std::int64_t last_time_us = 0);
  // Those that any of `selections` chooses, each once, by number; no selection = all.
  // kResourceExhausted beyond kReadSeriesMax, and where there is no room for them.
  absl::StatusOr<std::vector<Series>> FindSeries(const std::vector<SeriesSelection>& selections);
  // By number, from `after` on: at most `count`, or about 2 MiB of them. kResourceExhausted likewise.
  struct SeriesPage {
    std::vector<Series> series;
    bool has_more = false;
  };
  absl::StatusOr<SeriesPage> ReadSeriesPage(const SeriesSelection& selection, SeriesNo after,
                                            std::int32_t count);
  // How many series each of `metric_groups` (sorted, each once) has; all that the trial has where it has too many to count.
  absl::StatusOr<std::vector<std::int32_t>> CountSeries(
      const std::vector<std::string>& metric_groups);

 private:
  TrialView(const QuerySources& sources, HeadsPin pin) : sources_(sources), pin_(std::move(pin)) {}
  static absl::StatusOr<std::vector<std::unique_ptr<TrialView>>> OpenFound(
      const QuerySources& sources, const std::vector<TrialId>& trial_ids, const ReadCall& call,
      const GapFilter& gaps = {}, Book book = Book::kRead);
  absl::Status ReadBookkeeping(TrialId trial_id);
  void PresumeBook(TrialId trial_id);
  // False = it is not remembered.
  absl::StatusOr<bool> OpenRemembered(TrialId trial_id, const ReadCall& call);
  // Null where they are too many, or too large, to be remembered, and where there is no room to read them.
  absl::StatusOr<std::shared_ptr<const std::vector<Series>>> ReadRemembered();
  absl::StatusOr<std::vector<Series>> CopyOf(const std::vector<const Series*>& series);
  std::int64_t HeadSampleCount() const;

  const QuerySources sources_;
  HeadsPin pin_;
  MemoryRoom::Place series_place_;
  std::shared_ptr<ReadSnapshot> snapshot_;  // that of the other views of one OpenAll
  TrialRecord record_;
  std::vector<WriterRecord> writers_;
  std::map<WriterNo, std::int32_t> attempts_;
  std::map<WriterNo, WriterSeen> seen_;
  std::vector<UsageRecord> usage_;
  bool is_presumed_ = false;
  bool is_remembered_ = false;
};

// The numbers of `series`, which are sorted.
std::vector<std::int32_t> NumbersOf(const std::vector<Series>& series);

}  // namespace stepwell
