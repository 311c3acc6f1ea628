// SimAgent: an agent process on a machine of its own, from the rings to the messages on the wire: the
// real writers, spools and sender over a simulated disk. The rings are a model: numbered samples, of
// which some find no room. What survives the process: the disk, and the rings while the machine has
// power. Confined to the run.
//
//   agent.Start(); agent.Record(0); agent.Visit();
//   if (auto message = agent.Next()) ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "client/agent/served_writer.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/history.h"
#include "tests/simulation/sim_disk.h"
#include "tests/simulation/trace.h"

namespace stepwell::simulation {

namespace pb = ::stepwell::v1;

class SimAgent {
 public:
  struct Options {
    std::string name;
    std::int64_t spool_bytes_max = 1 << 20;
    std::int64_t segment_bytes_max = 2048;
    bool sync_before_send = false;
    std::size_t ring_capacity = 40;
  };
  struct Surroundings {  // all outlive the agent
    Chance& chance;
    History& history;
    Trace& trace;
    SimDisk& disk;
    const Clock& clock;
  };
  SimAgent(Options options, const Surroundings& surroundings);
  ~SimAgent() { Kill(); }

  // --- the training processes
  // One more, which takes its samples under `rank`.
  void AddRank(int rank);
  void Record(std::size_t count);
  // Those that run end, in order or killed.
  enum class How { kClosed, kDied };
  void EndRank(How how);
  void EndAllRanks();

  // --- the agent
  void Start();
  void Kill();
  // The machine: its training processes end with it.
  void LosePower();
  // A copy of a rank's spool is kept; it comes back in its place under the rank that lives on, as from a
  // backup. False where it cannot: none was kept, or a successor told since what lies in it.
  void KeepSpool();
  bool SetSpoolBack();
  bool runs() const { return sender_ != nullptr; }
  // What it does each frame interval. It may die in it (SimDisk::stopped), and is then only good for Kill.
  void Visit();
  // Each training has ended, and all of it is the master's.
  bool done() const;

  // --- its stream
  void OnConnected(const std::string& incarnation);
  void OnDisconnected();
  bool HasNext() const;
  std::optional<pb::StreamChunksRequest> Next();
  // False: gives up the connection.
  bool OnMessage(const pb::StreamChunksResponse& message);
  // An answer is due, and nothing was heard for long.
  bool HearsNothing();

  const std::string& name() const { return options_.name; }

 private:
  // Of one call.
  struct Frames {
    std::uint64_t last_sequence = 0;
    // Which of the disk's writes.
    std::uint64_t first_write = 0;
    std::uint64_t last_write = 0;
    absl::Duration at;
  };
  struct Rank {
    int rank = 0;
    Uuid writer;
    // The ring.
    std::uint64_t head = 0;
    std::uint64_t tail = 0;
    std::uint64_t dropped = 0;
    bool ended = false;
    bool died = false;
    bool is_kept = false;
    // The agent's.
    std::unique_ptr<agent::ServedWriter> served;
    std::uint64_t read = 0;
    std::uint64_t dropped_told = 0;
    // So far history knows of frames.
    std::uint64_t framed = 0;
    std::uint64_t framed_sequence = 0;
    // Whose sequences those are; they may end, and a successor's begin at 1.
    const agent::OutboundWriter* framed_link = nullptr;
    bool may_be_succeeded = false;
    std::vector<Frames> sealed;
    // When it last looked whether they go to the disk.
    absl::Duration synced_at = -absl::InfiniteDuration();
    std::uint64_t acked = 0;
  };

  std::string FolderOf(const Rank& rank) const;
  void Serve(Rank& rank);
  void VisitRank(Rank& rank);
  void Drain(Rank& rank);
  // Behind a seal: `writes_before` of the disk came before it.
  void StoreTail(Rank& rank, std::uint64_t writes_before);
  // What nobody had acked half a second before the agent last looked is on the disk.
  void CheckSynced(const Rank& rank) const;
  void NoteFrames(Rank& rank);
  void NoteRetired(const Uuid& writer);
  void NoteAcked(const Uuid& writer, std::uint64_t sequence);
  std::ptrdiff_t RetiredCount() const;

  const Options options_;
  const Surroundings around_;
  std::vector<Rank> ranks_;
  std::unique_ptr<agent::Sender> sender_;
  absl::Duration heard_at_ = absl::ZeroDuration();
  // Whose sequences ended: what the master holds under them is not what the spool has.
  std::set<Uuid> retired_;
};

}  // namespace stepwell::simulation
