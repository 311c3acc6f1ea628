// PgReadMemory: what reads need not ask the database again, because it never changes: which number a
// trial's name has and in which project it lies, a trial's series, which are numbered from 1 without holes and only grow, and rows of
// ticks and of rollups. And what changes seldom, to begin a read with while the database is asked: a trial's ledger.
// And whole books of trials, with what tells whether they changed (book_memory.h), and what charts found of
// series with it (range_memory.h).
// Bounded. A database is set back only while nobody is connected, so a new connection clears it.
// Thread-safe.
//
//   const std::int64_t age = memory.age();          // before the snapshot is taken
//   auto known = memory.SeriesOf(trial_id);         // valid up to trials.series_count of any snapshot
//   memory.NoteSeries(trial_id, all, age);
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/steady_time.h"
#include "storage/book_memory.h"
#include "storage/ingest_store.h"
#include "storage/model.h"
#include "storage/range_memory.h"
#include "storage/read_store.h"
#include "storage/rollup_memory.h"
#include "storage/tick_memory.h"

namespace stepwell {

class PgReadMemory {
 public:
  using AllSeries = std::shared_ptr<const std::vector<Series>>;
  struct Options {
    std::size_t series_max = 100'000;
    // Of their lists, whatever labels they have. One that takes over half of it is not read whole, nor remembered.
    std::size_t series_bytes_max = 30 << 20;
    std::size_t names_max = 10'000;
    // Ticks of samples: a day of 1 Hz of 30 writers. Grids of rollups: two weeks of them.
    std::size_t tick_bytes_max = 32 << 20;
    std::size_t grid_bytes_max = 16 << 20;
    // Rollups: two days of 10 s of 60 series.
    std::size_t rollup_bytes_max = 32 << 20;
    // Lines of ledgers: about 10 MB.
    std::size_t usage_max = 100'000;
    // Books of trials; most take some kilobytes.
    std::size_t book_bytes_max = 16 << 20;
    // Rows and rollups of charts: a day of 1 Hz of some 240 series from rollups of 10 s, or from samples.
    std::size_t range_bytes_max = 128 << 20;

    // What all of these take in bytes, as they stand here.
    static constexpr std::size_t kBytes = std::size_t{272} << 20;
    // Each as much smaller or larger as `bytes` are than that.
    static Options Of(std::size_t bytes);
  };
  PgReadMemory() : PgReadMemory(Options()) {}
  explicit PgReadMemory(const Options& options);
  using Usage = std::shared_ptr<const std::vector<UsageRecord>>;
  using Ticks = std::shared_ptr<const TickVectors>;
  using Grid = std::shared_ptr<const RollupGrid>;

  // Where it is known to lie in one of `projects`.
  std::optional<TrialId> TrialOf(const TrialSelector& selector, const ProjectFilter& projects) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Of one list.
  std::size_t series_bytes_max() const { return options_.series_bytes_max / 2; }
  // Whether it was found to take more: series only get more.
  bool HasTooLargeSeries(TrialId trial_id) const ABSL_LOCKS_EXCLUDED(mu_);
  void NoteTooLargeSeries(TrialId trial_id, std::int64_t age) ABSL_LOCKS_EXCLUDED(mu_);
  // Null = unknown.
  AllSeries SeriesOf(TrialId trial_id) ABSL_LOCKS_EXCLUDED(mu_);
  // What some snapshot read last; null = unknown.
  Usage UsageOf(TrialId trial_id) const ABSL_LOCKS_EXCLUDED(mu_);
  std::optional<RememberedBook> BookOf(TrialId trial_id) ABSL_LOCKS_EXCLUDED(mu_);
  Ticks TicksOf(const TickKey& key) ABSL_LOCKS_EXCLUDED(mu_);
  Grid GridOf(const TickKey& key) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether most of the series have rollups here, so that asking for the keys of their rows may be enough.
  bool KnowsRollups(TrialId trial_id, std::int32_t step_seconds,
                    const std::vector<std::int32_t>& series_nos) const ABSL_LOCKS_EXCLUDED(mu_);
  // One for each key; without both it is unknown.
  struct KnownRollup {
    Grid grid;
    RollupMemory::Shared column;
  };
  std::vector<KnownRollup> RollupsOf(const std::vector<RollupKey>& keys) ABSL_LOCKS_EXCLUDED(mu_);

  // Of each of the series at `moment`; empty where one is unknown.
  std::vector<RangeMemory::Shared> RangesOf(TrialId trial_id, const RangeSource& source,
                                            const std::vector<std::int32_t>& series_nos,
                                            const ReadMoment& moment) ABSL_LOCKS_EXCLUDED(mu_);

  // Grows with each Clear: what was read before one is not noted after it.
  std::int64_t age() const ABSL_LOCKS_EXCLUDED(mu_);
  void NoteTrial(const TrialSelector& selector, TrialId trial_id, const std::string& project,
                 std::int64_t age) ABSL_LOCKS_EXCLUDED(mu_);
  // As they are remembered now: where others came first, theirs. Null = they are not. REQUIRES: by number, from 1 on, without
  // holes.
  AllSeries NoteSeries(TrialId trial_id, AllSeries series, std::int64_t age)
      ABSL_LOCKS_EXCLUDED(mu_);
  void NoteUsage(TrialId trial_id, Usage usage, std::int64_t age) ABSL_LOCKS_EXCLUDED(mu_);
  void NoteBook(TrialId trial_id, RememberedBook book, std::int64_t age) ABSL_LOCKS_EXCLUDED(mu_);
  // Of all trials: some of it led to a leaf that is gone.
  void ForgetUsage() ABSL_LOCKS_EXCLUDED(mu_);
  void NoteTicks(const TickKey& key, Ticks ticks, std::int64_t age) ABSL_LOCKS_EXCLUDED(mu_);
  void NoteGrid(const TickKey& key, Grid grid, std::int64_t age) ABSL_LOCKS_EXCLUDED(mu_);
  void NoteRollup(const RollupKey& key, RollupMemory::Shared column, std::int64_t age)
      ABSL_LOCKS_EXCLUDED(mu_);
  void NoteRanges(std::vector<std::pair<RangeKey, RangeMemory::Shared>> ranges,
                  const ReadMoment& moment, std::int64_t age) ABSL_LOCKS_EXCLUDED(mu_);
  void Clear() ABSL_LOCKS_EXCLUDED(mu_);

  // Whether leaves may be named. Not for a while after one was found to be gone: a sweep drops those that
  // have long been empty, and rows of their days may still be on their way into new ones.
  bool may_name_leaves() const ABSL_LOCKS_EXCLUDED(mu_);
  void NoteLeafGone() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Remembered {
    TrialId trial_id{};
    AllSeries series;
    std::size_t bytes = 0;
  };
  std::list<Remembered>::iterator FindLocked(TrialId trial_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetLocked(TrialId trial_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  mutable absl::Mutex mu_;
  std::int64_t age_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::pair<std::string, std::string>, TrialId> names_ ABSL_GUARDED_BY(mu_);
  std::map<TrialId, std::string> projects_ ABSL_GUARDED_BY(mu_);
  // Used last first.
  std::list<Remembered> series_ ABSL_GUARDED_BY(mu_);
  std::size_t series_count_ ABSL_GUARDED_BY(mu_) = 0;
  std::size_t series_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::set<TrialId> too_large_ ABSL_GUARDED_BY(mu_);
  std::map<TrialId, Usage> usage_ ABSL_GUARDED_BY(mu_);
  std::size_t usage_count_ ABSL_GUARDED_BY(mu_) = 0;
  BookMemory books_ ABSL_GUARDED_BY(mu_);
  TickMemory<TickVectors> ticks_ ABSL_GUARDED_BY(mu_);
  TickMemory<RollupGrid> grids_ ABSL_GUARDED_BY(mu_);
  RollupMemory rollups_ ABSL_GUARDED_BY(mu_);
  RangeMemory ranges_ ABSL_GUARDED_BY(mu_);
  SteadyTime name_leaves_from_ ABSL_GUARDED_BY(mu_) = SteadyTime::InfinitePast();
};

}  // namespace stepwell
