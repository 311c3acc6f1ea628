// Scene: the stage of one fault test: a directory, one trial, its producers and their ledgers, one
// agent, a timeline on stdout and a seed that repeats the test. Masters are the test's own.
//
//   Scene scene("master killed");
//   scene.StartAgent(master.grpc_address());
//   scene.StartTrainer(0);
//   ...
//   scene.StopProducers();
//   scene.ExpectExact(master, Demand::kRecorded);
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/faults/checker/checker.h"
#include "tests/faults/stored_samples.h"
#include "tests/support/child_process.h"
#include "tests/support/master_process.h"
#include "tests/support/scratch_directory.h"

namespace stepwell::faults {

using testing::ChildProcess;
using testing::Eventually;
using testing::MasterProcess;

class Scene {
 public:
  // Prints the seed (tests/faults/seed.h).
  explicit Scene(const std::string& name);
  ~Scene();

  // Said by a test that starts no master and no agent, for bounds_watch.cc, which wants to see them.
  static constexpr char kStartsNobody[] = "starts_nobody";
  static void StartsNobody();
  // Said by StartTrainer: of these it wants to see one, too.
  static constexpr char kStartsTrainer[] = "starts_trainer";

  // One line of the timeline, with the seconds since the beginning.
  void Say(const std::string& what) const;

  std::string path(const std::string& name) const { return scratch_ / name; }
  std::string spool_dir() const { return spool_dir_; }
  // Elsewhere than in the scratch directory. Before anything is started.
  void set_spool_dir(const std::string& spool_dir) { spool_dir_ = spool_dir; }
  // Folder of another build, of which agent and producers are from now on; empty: those beside the test.
  void set_programs(const std::string& folder) { programs_ = folder; }
  std::mt19937_64& random() { return random_; }
  // Uniform in [low, high].
  int Random(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  absl::Duration Elapsed() const { return absl::Now() - start_; }

  ChildProcess& agent() { return agent_; }
  void StartAgent(const std::string& server, const std::vector<std::string>& flags = {},
                  const std::string& failpoints = "");
  // `options` are the program's own: see its Main. The producer logs in a ledger of its own.
  ChildProcess& StartTrainer(int rank, const std::map<std::string, std::string>& options = {});
  ChildProcess& StartRawWriter(int rank, const std::string& servers,
                               const std::map<std::string, std::string>& options = {});
  // `rank` = the first of its writers, whose spools lie in a directory of their own.
  ChildProcess& StartCrowd(int rank, const std::string& server,
                           const std::map<std::string, std::string>& options);
  // SIGTERM to all that run, then waits: each must end with exit code 0, which means that each got
  // its last ack.
  void StopProducers(absl::Duration patience);

  // Until `condition`, which must not take longer than `patience`; says how long it took.
  bool Await(const std::string& what, absl::Duration patience,
             const std::function<bool()>& condition) const;

  // What all producers say so far.
  Ledger ReadLedgers() const;
  // What recorders say that they dropped for want of room, and not one sample more. Of producers that
  // have ended: they say it last.
  Allowance DropsOfRecorders() const;
  // Flush, then compares; fails the test on anything but an exact match, and prints the verdict.
  // `allowed`: what the test expects gaps to tell as lost.
  Verdict ExpectExact(MasterProcess& master, Demand demand, const Allowance& allowed = {});
  // The gaps that the last ExpectExact read.
  const StoredTrial& stored() const { return stored_; }
  // For messages: the last lines of the agent's log and of the producers'.
  std::string Logs() const;

 private:
  std::string Program(const std::string& name) const;
  ChildProcess& StartProducer(const std::string& program, int rank,
                              std::map<std::string, std::string> options);

  const std::string name_;
  const absl::Time start_;
  const std::uint64_t seed_;
  std::mt19937_64 random_;
  const testing::ScratchDirectory scratch_;
  std::string spool_dir_;
  std::string programs_;
  ChildProcess agent_;
  std::vector<std::unique_ptr<ChildProcess>> producers_;
  std::vector<std::string> ledgers_;
  StoredTrial stored_;
};

}  // namespace stepwell::faults
