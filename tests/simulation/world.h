// World: one simulated run of the ingest core: training processes, agents on disks of their own, masters,
// a database, the network between them, and what goes wrong. One thread: each turn one of them does one
// thing, chosen by chance; while a master waits for its COMMIT, the others go on inside of that call.
// First all is faulty, and nothing promised may break; then faults end, and all must arrive. A seed
// always gives the same run.
//
//   const Outcome outcome = World(seed, /*trace_lines=*/0).Run();
//   if (!outcome.wrong.empty()) ...
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/history.h"
#include "tests/simulation/kernel_chance.h"
#include "tests/simulation/sim_agent.h"
#include "tests/simulation/sim_database.h"
#include "tests/simulation/sim_disk.h"
#include "tests/simulation/sim_master.h"
#include "tests/simulation/sim_stream.h"
#include "tests/simulation/trace.h"

namespace stepwell::simulation {

// Where the disks of a process' runs lie. One that died in a run left them.
std::vector<std::string> DiskFolders(pid_t pid);

struct Outcome {
  std::string wrong;  // empty: all as promised
  std::uint64_t digest = 0;
  std::size_t committed_count = 0;
  std::size_t acked_count = 0;
  std::map<std::string, int> seen;
  std::vector<std::string> lines;  // the newest of the trace
};

class World {
 public:
  World(std::uint64_t seed, std::size_t trace_lines);
  ~World();

  Outcome Run();

 private:
  // Safety while faulty.
  void GoWrong();
  // Liveness after.
  void GoRight();
  void CheckEnd();

  void Turn();
  // While a COMMIT is under way.
  void Meanwhile();
  void PassTime(absl::Duration longest);

  // What one turn may be.
  void Record();
  void VisitAgent();
  void Send();
  void DeliverUp();
  void TakeAnswers();
  void DeliverDown();
  void Commit();
  void Fold();
  void TickMaster();

  void Harm();
  void SetDatabaseBack();
  void StartMaster();
  void RestartAgent(SimAgent& agent);
  void Connect(SimAgent& agent);
  bool IsConnected(const SimAgent& agent) const;
  void DropOverStreams();
  SimAgent& AnyAgent() { return *agents_[chance_.Below(agents_.size())]; }
  SimStream* AnyStream();
  bool IsOver() const { return history_.wrong(); }

  Chance chance_;
  Trace trace_;
  History history_;
  FakeClock clock_;
  const Faults faults_;
  bool faulty_ = true;
  KernelChance kernel_;
  SimDisk disk_;
  SimDatabase database_;
  // Of its own, so that the runs without are what they were.
  Chance restores_;
  const double set_back_;  // per turn: the database is kept, or set back to that
  // The last one is it; those before it are dead, or do not know yet that they are not.
  std::vector<std::shared_ptr<SimMaster>> masters_;
  std::vector<std::unique_ptr<SimAgent>> agents_;
  std::vector<std::unique_ptr<SimStream>> streams_;
  int ranks_ = 0;
  int depth_ = 0;
};

}  // namespace stepwell::simulation
