// FoldLoop: turns heads into recent rows, and recent rows into metrics rows, beside ingest; what comes in bulk
// goes into metrics at once, where nobody reads its trial. Step 10 of a sample's line. Folds every `interval`, when
// `unfolded_bytes_soft` wait, and when asked; then merges in slices, attaches leaves ahead and recycles the rings.
// One thread, "fold".
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/steady_time.h"
#include "base/worker.h"
#include "server/heads.h"
#include "server/master_state.h"
#include "storage/fold_store.h"

namespace stepwell {

struct FoldedCounts {
  std::int64_t sample_count = 0;
  int trial_count = 0;
  std::int64_t row_count = 0;
};

class FoldLoop {
 public:
  struct Options {
    // Between folds of everything; longer where very many series live, see NextFoldInterval.
    absl::Duration interval = absl::Seconds(10);
    std::int64_t unfolded_bytes_soft = 32 << 20;
    // One transaction: so long that its cost is spread, so short that no ack waits for it.
    std::int64_t slice_bytes = 8 << 20;
    // Rows of one transaction beyond what near ticks would make (storage/fold_spread.h): under 20 MB with their rollups
    // and the copy for the wire, which MemoryShares::kStore has room for.
    std::int64_t slice_rows = 10'000;
    MergeLimits merge;
  };
  // All outlive this. `settled_before_us`: see GroupCommitter.
  struct Parts {
    FoldStore& store;
    Heads& heads;
    MasterState& state;
    const Clock& clock;
    std::function<std::int64_t()> settled_before_us;
  };

  FoldLoop(Options options, Parts parts) : options_(options), parts_(std::move(parts)) {}
  ~FoldLoop() { Stop(); }

  void Start();
  // Does not fold what is left: FoldNow does. Twice is fine.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

  // Folds all that is acked now, of one trial or of all. Blocks until that is visible in SQL.
  // kUnavailable: not owner, recovering, the database is down, `deadline`; something that is acked is not in heads.
  absl::StatusOr<FoldedCounts> FoldNow(std::optional<TrialId> trial_id, SteadyTime deadline)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Soon, without waiting: a writer has closed.
  void FoldSoon(TrialId trial_id) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Request {
    std::optional<TrialId> trial_id;
    bool done = false;
    absl::StatusOr<FoldedCounts> result = absl::UnavailableError("not folded yet");
  };

  void Run();
  // Waits for a reason to fold; false when it is time to stop.
  bool WaitForWork(std::vector<std::shared_ptr<Request>>& requests, bool& all);
  absl::StatusOr<FoldedCounts> Fold(std::optional<TrialId> trial_id);
  // What is acked is not there to be folded: this epoch ends.
  absl::Status EndForHole(std::int64_t epoch, const std::pair<TrialId, WriterNo>& hole) const;
  // One plan: trials that come in bulk one by one, the others together.
  absl::Status FoldPlanned(std::int64_t epoch, const std::vector<WriterFold>& folds,
                           FoldedCounts& counts);
  // False: Fold is to take it.
  absl::StatusOr<bool> FoldBulk(std::int64_t epoch, TrialId trial_id,
                                const std::vector<WriterFold>& folds, FoldedCounts& counts);
  // What came of it, told to heads and to whoever looks after the ownership.
  absl::Status NoteFolded(std::int64_t epoch, const std::vector<WriterFold>& folds,
                          const absl::StatusOr<FoldResult>& folded, FoldedCounts& counts);
  void Answer(const std::vector<std::shared_ptr<Request>>& requests);
  // Merge, leaves, rings.
  void TidyUp();
  // Until nothing is ripe, or others wait; once at least.
  void Merge(std::int64_t epoch);
  void Recycle(std::int64_t epoch);
  std::int64_t TookMs(absl::Duration begin) const;
  // The interval is over, or much waits.
  bool MustFold() const;
  bool HasWorkLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return stopping_ || !requests_.empty();
  }

  const Options options_;
  const Parts parts_;
  SteadyTime next_fold_time_;    // confined to the thread
  SteadyTime next_attach_time_;  // confined to the thread
  // Others came first, and since the last fold of everything no fold has failed; confined to the thread.
  bool merges_wait_ = false;
  mutable absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::shared_ptr<Request>> requests_ ABSL_GUARDED_BY(mu_);
  Worker worker_;
};

}  // namespace stepwell
