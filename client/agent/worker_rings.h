// WorkerRings: the forked workers of one writer: found, drained, and removed when they are dead and
// all of theirs is stored. Training programs fork their loaders anew each epoch for days: nothing is
// kept of one that is gone. Confined to the agent's loop.
//
//   workers.Find(life);       // after the lock was asked
//   workers.Drain(sink);
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/steady_time.h"
#include "client/agent/directory_watch.h"
#include "client/agent/recorded_rings.h"
#include "client/agent/worker_name.h"
#include "client/agent/writer_lock.h"

namespace stepwell::agent {

class WorkerRings {
 public:
  // `directory`, `folder`, `lock` and `budget` are the writer's and outlive this. `progress` is the
  // spool's.
  WorkerRings(int directory, const RingFolder& folder, const WriterLock& lock, RingBudget& budget,
              std::map<WorkerKey, std::optional<RingProgress>> progress)
      : directory_(directory),
        folder_(folder),
        lock_(lock),
        budget_(budget),
        recovered_(std::move(progress)) {}

  // As the lock told just before.
  struct Life {
    bool process = false;
    bool any_worker = false;
  };
  // Finds new ones, asks which live, and removes what is done with.
  void Find(const Life& life);
  // The dead of whom all is stored.
  void RemoveFinished();
  void Drain(ThreadSampleSink& sink);
  // Whether Find and Drain would find what they did not last time, but for deaths.
  bool HasNews();
  // The last Drain left nothing behind.
  bool drained() const { return drained_; }
  // The last Find saw all there are.
  bool complete() const { return !look_again_; }

  RecordedRings::Moved TakeProgress(Checkpoint& checkpoint);
  void StoreTails(const Checkpoint& written);
  // Of all, also of those that come later.
  void StoreControl(std::uint32_t control);
  // Those that closed and of which all is sealed now are told `state` once `sequence` is stored.
  void NoteSealed(std::uint64_t sequence);
  void TellStored(std::uint64_t stored_sequence, spool::AgentState state);
  bool awaits_ack() const;

  // PackLastStep of the living worker of the lowest index that has steps; 0 = none has.
  std::uint64_t last_step() const;
  // A worker that outlived the process closed its recorder: a daemon, which is not said to have died.
  bool ended_in_order() const { return ended_in_order_; }

 private:
  using Name = WorkerName;
  struct Worker {
    std::unique_ptr<RecordedRings> rings;
    RecordedHeader header;
    bool alive = true;
    // Its files fail their checks.
    bool broken = false;
    std::optional<std::uint64_t> sealed_sequence;
    bool told = false;
    WorkerKey key;
  };

  std::vector<Name> List();
  bool IsDead(const Name& name, const std::vector<Name>& listed) const;
  void Serve(const Name& name, bool is_dead);
  void Remove(const Name& name);
  void ForgetAbsent();
  // Once a minute.
  void LogTrouble(const Name& name, const absl::Status& why);

  const int directory_;
  const RingFolder& folder_;
  const WriterLock& lock_;
  RingBudget& budget_;
  std::map<WorkerKey, std::optional<RingProgress>> recovered_;
  std::map<Name, Worker> workers_;
  DirectoryWatch watch_;
  bool look_again_ = true;
  bool drained_ = true;
  bool process_alive_ = true;
  bool ended_in_order_ = false;
  std::optional<std::uint32_t> control_;
  std::vector<std::uint64_t> left_;  // processes of which the sink is not told yet
  // Removed, and not yet told to the spool.
  std::vector<WorkerKey> gone_;
  SteadyTime trouble_logged_;
};

}  // namespace stepwell::agent
