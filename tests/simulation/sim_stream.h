// SimStream: one connection of an agent to a master, and what is under way on it. Each end may be gone
// while the other does not know; messages keep their order, except where the run has a client or a
// proxy that does not. Confined to the run.
//
//   auto stream = SimStream::Connect(agent, master, chance, trace);
//   stream->Send(); stream->DeliverUp(); stream->TakeAnswer(); stream->DeliverDown();
#pragma once

#include <deque>
#include <memory>

#include "server/ingest_stream.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/sim_agent.h"
#include "tests/simulation/sim_master.h"
#include "tests/simulation/trace.h"

namespace stepwell::simulation {

class SimStream {
 public:
  // Null: the master takes none. All but the master outlive the stream.
  static std::unique_ptr<SimStream> Connect(SimAgent& agent, std::shared_ptr<SimMaster> master,
                                            Chance& chance, Trace& trace);
  ~SimStream();
  SimStream(const SimStream&) = delete;
  SimStream& operator=(const SimStream&) = delete;

  // Of chunks on their way to the master, by a client that is not ours.
  struct Disorder {
    double lost = 0;
    double repeated = 0;
    double swapped = 0;
  };
  void set_disorder(const Disorder& disorder) { disorder_ = disorder; }
  void set_stalled(bool stalled) { stalled_ = stalled; }

  // One message each; false where there was none.
  bool Send();
  bool DeliverUp();
  bool TakeAnswer();
  bool DeliverDown();

  // The agent's end: some of what it sent may still arrive.
  void CutByAgent();
  // The connection ends on the way; the master's end learns it in its own time.
  bool has_agent() const { return !agent_gone_; }
  bool over() const { return agent_gone_ && master_gone_; }
  const SimAgent& agent() const { return agent_; }
  const SimMaster* master() const { return master_.get(); }

 private:
  SimStream(SimAgent& agent, std::shared_ptr<SimMaster> master,
            std::shared_ptr<IngestStream> stream, Chance& chance, Trace& trace)
      : agent_(agent),
        master_(std::move(master)),
        stream_(std::move(stream)),
        chance_(chance),
        trace_(trace) {}
  void EndAtMaster();

  SimAgent& agent_;
  const std::shared_ptr<SimMaster> master_;
  const std::shared_ptr<IngestStream> stream_;
  Chance& chance_;
  Trace& trace_;
  Disorder disorder_;
  bool stalled_ = false;
  bool agent_gone_ = false;
  bool master_gone_ = false;
  std::deque<pb::StreamChunksRequest> up_;
  std::deque<pb::StreamChunksResponse> down_;
};

}  // namespace stepwell::simulation
