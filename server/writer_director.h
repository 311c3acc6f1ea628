// WriterDirector: what the master asks of open writers: who samples a machine, whether and how
// densely a trial records, and who has some steps traced. It knows which stream holds which writer, and hands each its directives:
// those that hold when it opens, and each that changes. Stands between IngestStream, AdminService and
// OwnershipLoop, which tell it what happens, and the streams' boards, which send. Thread-safe; calls
// sinks without a lock held, so a directive carries a version by which the newest wins.
//
//   director.Opened({.trial_id = ..., .uuid = writer, .machine = boot_id, .is_sampler = true}, stream);
//   const int told = director.SetProfiling(trial_id, stored);
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/uuid.h"
#include "server/sampler_election.h"
#include "stepwell/v1/ingest.pb.h"
#include "storage/model.h"

namespace stepwell {

// Who carries a directive to a writer's client. Does not block.
class DirectiveSink {
 public:
  virtual ~DirectiveSink() = default;
  // Of one kind and writer the greatest version holds, in whatever order they come. False when the
  // writer is not there any more.
  virtual bool Direct(const Uuid& writer, std::uint64_t version,
                      const v1::Directive& directive) = 0;
};

class WriterDirector {
 public:
  struct Writer {
    TrialId trial_id{};
    WriterNo writer_no{};
    std::uint64_t generation = 0;
    Uuid uuid;
    std::string machine = {};
    bool is_sampler = false;
    // Of a process; not of a sampler.
    std::int32_t rank = 0;
    // As the database had it when the writer was opened.
    TrialProfiling profiling = {};
    // The trial's profiling window has passed: nothing is recorded, whatever is stored.
    bool window_over = false;
  };

  // `clock` outlives this.
  explicit WriterDirector(const Clock& clock) : clock_(clock) {}

  // `sink` holds the writer now, and may be directed before this returns.
  void Opened(const Writer& writer, std::weak_ptr<DirectiveSink> sink) ABSL_LOCKS_EXCLUDED(mu_);
  // The writer's Close is committed.
  void Closed(TrialId trial_id, WriterNo writer_no, std::uint64_t generation)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Its stream has ended, or another holds it.
  void Lost(TrialId trial_id, WriterNo writer_no, std::uint64_t generation)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The writer's definitions name these GPUs, those before them too.
  void Named(TrialId trial_id, WriterNo writer_no, std::uint64_t generation, const NamedGpus& gpus)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Tells all open writers of the trial what is stored now; how many those are.
  int SetProfiling(TrialId trial_id, const TrialProfiling& stored) ABSL_LOCKS_EXCLUDED(mu_);
  // Tells all open writers of the trial to record nothing, whatever is stored, or what is stored again;
  // how many those are. The same again changes nothing.
  int SetWindowOver(TrialId trial_id, bool over) ABSL_LOCKS_EXCLUDED(mu_);
  struct OpenRank {
    std::int32_t rank = 0;
    WriterNo writer_no{};
    std::uint64_t generation = 0;
  };
  // The processes of the trial that are open, by their writers' numbers.
  std::vector<OpenRank> OpenRanks(TrialId trial_id) const ABSL_LOCKS_EXCLUDED(mu_);
  bool IsOpen(TrialId trial_id, WriterNo writer_no, std::uint64_t generation) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Asks it for a trace, in place of one that it was asked for before. False where it is not open any more.
  bool Capture(TrialId trial_id, WriterNo writer_no, std::uint64_t generation,
               const v1::Capture& asked) ABSL_LOCKS_EXCLUDED(mu_);
  // Trials of which a writer is open.
  std::vector<TrialId> OpenTrials() const ABSL_LOCKS_EXCLUDED(mu_);
  // Who fell silent, and which GPUs have another sampler, at most once a second.
  void Look(const SamplerElection::HeardOf& heard_of) ABSL_LOCKS_EXCLUDED(mu_);
  // The ownership ended: all streams do.
  void Clear() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Held {
    std::uint64_t generation = 0;
    Uuid uuid;
    std::weak_ptr<DirectiveSink> sink;
    // As it is stored.
    TrialProfiling profiling = {};
    std::optional<std::int32_t> rank = {};  // none: a sampler
  };
  struct OpenTrial {
    std::map<WriterNo, Held> writers;
    bool window_over = false;
  };
  struct Delivery {
    std::shared_ptr<DirectiveSink> sink;
    Uuid writer;
    std::uint64_t version = 0;
    v1::Directive directive;
  };
  using Deliveries = std::vector<Delivery>;

  void AddProfilingLocked(const OpenTrial& trial, const Held& held, Deliveries& due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddSamplingLocked(const SamplerElection::Orders& orders, Deliveries& due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Delivery* AddLocked(const Held& held, Deliveries& due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  const Held* FindLocked(TrialId trial_id, WriterNo writer_no) const
      ABSL_SHARED_LOCKS_REQUIRED(mu_);
  void EraseLocked(TrialId trial_id, WriterNo writer_no, std::uint64_t generation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RememberLocked(TrialId trial_id, const TrialProfiling& stored)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // How many took theirs.
  static int Deliver(const Deliveries& due);

  const Clock& clock_;
  mutable absl::Mutex mu_;
  absl::flat_hash_map<TrialId, OpenTrial> trials_ ABSL_GUARDED_BY(mu_);
  SamplerElection election_ ABSL_GUARDED_BY(mu_);
  std::uint64_t last_version_ ABSL_GUARDED_BY(mu_) = 0;
  SteadyTime looked_at_ ABSL_GUARDED_BY(mu_);
  // What was set of late: a writer that was opened just before may come here just after.
  absl::flat_hash_map<TrialId, TrialProfiling> set_ ABSL_GUARDED_BY(mu_);
  std::deque<TrialId> set_order_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell
