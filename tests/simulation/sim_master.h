// SimMaster: the ingest half of one master process, from its streams to heads, as server/server.cc puts
// it together, without threads: each of its threads is a call here. Killed or left behind by another
// one at any point where it waits for the database. Confined to the run.
//
//   SimMaster master(database, clock, [&] { world.Meanwhile(); }, trace);
//   if (master.Start()) master.Commit();
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "server/group_committer.h"
#include "server/ingest_context.h"
#include "server/ingest_stream.h"
#include "server/recovery.h"
#include "tests/simulation/sim_database.h"
#include "tests/simulation/trace.h"
#include "tests/unit/server/no_folds.h"

namespace stepwell::simulation {

class SimMaster {
 public:
  // All outlive this. `meanwhile` is called while a COMMIT is under way.
  SimMaster(SimDatabase& database, const Clock& clock, std::function<void()> meanwhile,
            Trace& trace);

  // Becomes the owner; false where the database is away.
  bool Start();
  // The thread "replay", until it has succeeded.
  void Replay();
  // A turn of the thread "commit".
  void Commit();
  // A turn of the thread "ownership".
  void Tick();
  // A turn of the thread "fold". `dies`: behind its transaction.
  enum class Then { kGoOn, kDie };
  void Fold(std::int64_t bytes_max, Then then);

  // SIGKILL: nothing of it acts any more. It may still be on the stack.
  void Kill() { killed_ = true; }
  bool killed() const { return killed_; }
  bool committing() const { return committing_; }
  // Streams may begin and go on.
  bool serves() const { return !killed_ && state_.epoch() != 0; }
  std::int64_t epoch() const { return epoch_; }
  // All that is committed can be read.
  bool whole() const { return !unreplayed_; }
  const IngestContext& context() const { return context_; }
  std::int64_t unfolded_bytes() const { return heads_.unfolded_bytes(); }

 private:
  RecoveryParts Recovery() { return {store_, folds_, heads_, registry_, state_, stats_}; }
  void Lose();

  SimDatabase& database_;
  Trace& trace_;
  bool killed_ = false;
  bool committing_ = false;
  std::int64_t epoch_ = 0;
  std::optional<TakenOver> unreplayed_;
  SimStore store_;
  testing::NoFolds folds_;
  Heads heads_;
  MasterState state_;
  IngestStats stats_;
  WriterRegistry registry_;
  WriterDirector director_;
  CommitQueue queue_;
  GroupCommitter committer_;
  const IngestContext context_;
};

}  // namespace stepwell::simulation
