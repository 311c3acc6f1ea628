#include "tests/simulation/world.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stepwell::simulation {
namespace {

constexpr std::size_t kTurnsMin = 300;
constexpr std::size_t kTurnsMax = 900;
// Of 250 ms each: a refused writer is shown again each minute, a successor is tried again within one.
constexpr int kCalmRoundsMax = 4000;
// Masters that act at once: one, and one that was replaced and does not know.
constexpr int kDepthMax = 2;

std::string DiskRoot(pid_t pid) { return absl::StrCat("/dev/shm/stepwell-simulation-", pid); }

}  // namespace

std::vector<std::string> DiskFolders(pid_t pid) {
  return {DiskRoot(pid), DiskRoot(pid) + "-aside"};
}

World::World(std::uint64_t seed, std::size_t trace_lines)
    : chance_(seed),
      trace_(trace_lines),
      faults_(DrawFaults(chance_)),
      kernel_(chance_),
      disk_(DiskRoot(getpid()), chance_),
      database_(chance_, history_, trace_),
      restores_(~seed),
      set_back_(restores_.Of(0.3) ? 0.02 * static_cast<double>(restores_.Between(1, 4)) / 4 : 0) {
  trace_.Add("faults: ", NamesOf(faults_), set_back_ > 0 ? " database_set_back" : "");
  const std::size_t agent_count = chance_.Between(1, 2);
  for (std::size_t i = 0; i < agent_count; ++i) {
    SimAgent::Options options;
    options.name = absl::StrCat("agent-", i);
    options.sync_before_send = chance_.Of(0.3);
    if (chance_.Of(0.4)) {
      options.spool_bytes_max = 3 << 10;
      options.segment_bytes_max = 1 << 10;
    }
    agents_.push_back(std::make_unique<SimAgent>(
        std::move(options), SimAgent::Surroundings{chance_, history_, trace_, disk_, clock_}));
    agents_.back()->AddRank(ranks_++);
    if (chance_.Of(0.5)) agents_.back()->AddRank(ranks_++);
    agents_.back()->Start();
  }
  disk_.set_sync_failure(faults_.sync_failed);
  database_.set_trouble(faults_.commit_refused, faults_.answer_lost);
  StartMaster();
}

World::~World() {
  streams_.clear();
  masters_.clear();
  agents_.clear();
}

Outcome World::Run() {
  GoWrong();
  if (!IsOver()) GoRight();
  if (!IsOver()) CheckEnd();
  Outcome outcome;
  outcome.wrong = history_.what();
  outcome.digest = trace_.digest();
  outcome.committed_count = history_.committed_count();
  outcome.acked_count = history_.acked_count();
  outcome.seen = history_.seen();
  outcome.lines.assign(trace_.lines().begin(), trace_.lines().end());
  return outcome;
}

void World::GoWrong() {
  const std::size_t turns = chance_.Between(kTurnsMin, kTurnsMax);
  for (std::size_t i = 0; i < turns && !IsOver(); ++i) Turn();
}

void World::Turn() {
  struct Choice {
    std::size_t weight;
    void (World::*act)();
  };
  static constexpr Choice kChoices[] = {
      {8, &World::Record},     {8, &World::VisitAgent},   {14, &World::Send},
      {14, &World::DeliverUp}, {10, &World::TakeAnswers}, {14, &World::DeliverDown},
      {8, &World::Commit},     {2, &World::Fold},         {2, &World::TickMaster},
  };
  constexpr std::size_t kWeights = 80;
  if (faulty_) Harm();
  PassTime(absl::Milliseconds(chance_.Of(0.02) ? 20'000 : 50));
  std::size_t at = chance_.Below(kWeights);
  for (const Choice& choice : kChoices) {
    if (at < choice.weight) {
      (this->*choice.act)();
      break;
    }
    at -= choice.weight;
  }
  DropOverStreams();
}

void World::Meanwhile() {
  if (IsOver()) return;
  ++depth_;
  const std::size_t turns = chance_.Below(chance_.Of(0.15) ? 40 : 6);
  for (std::size_t i = 0; i < turns && !IsOver(); ++i) Turn();
  --depth_;
  // Whoever asks a database that is away asks for as long as it is.
  if (database_.down()) PassTime(absl::Seconds(1));
  if (database_.down() && (!faulty_ || chance_.Of(0.2))) database_.set_down(false);
}

void World::PassTime(absl::Duration longest) {
  clock_.Advance(longest * static_cast<std::int64_t>(chance_.Below(17)) / 16);
}

void World::Record() { AnyAgent().Record(chance_.Between(1, chance_.Of(0.1) ? 60 : 12)); }

void World::VisitAgent() {
  SimAgent& agent = AnyAgent();
  if (!agent.runs()) return RestartAgent(agent);
  agent.Visit();
  if (disk_.stopped()) {
    disk_.GoOn();
    RestartAgent(agent);
    return;
  }
  Connect(agent);
}

void World::RestartAgent(SimAgent& agent) {
  agent.Kill();
  for (const auto& stream : streams_) {
    if (&stream->agent() == &agent) stream->CutByAgent();
  }
  agent.Start();
}

void World::Connect(SimAgent& agent) {
  for (const auto& stream : streams_) {
    if (&stream->agent() != &agent || !stream->has_agent()) continue;
    if (agent.HearsNothing()) stream->CutByAgent();
    return;
  }
  // One that hangs takes connections, too; what is open there ends when it learns that it lost.
  auto stream = SimStream::Connect(agent, masters_.back(), chance_, trace_);
  if (stream == nullptr) return;
  if (faulty_) {
    stream->set_disorder({faults_.chunk_lost, faults_.chunk_repeated, faults_.chunks_swapped});
  }
  streams_.push_back(std::move(stream));
}

bool World::IsConnected(const SimAgent& agent) const {
  return std::any_of(streams_.begin(), streams_.end(), [&](const auto& stream) {
    return &stream->agent() == &agent && stream->has_agent() &&
           stream->master() == masters_.back().get();
  });
}

SimStream* World::AnyStream() {
  return streams_.empty() ? nullptr : streams_[chance_.Below(streams_.size())].get();
}

void World::Send() {
  if (SimStream* const stream = AnyStream()) {
    for (std::size_t i = chance_.Between(1, 4); i > 0 && stream->Send(); --i) {
    }
  }
}

void World::DeliverUp() {
  if (database_.down()) return;  // definitions and opens would wait for it
  if (SimStream* const stream = AnyStream()) {
    for (std::size_t i = chance_.Between(1, 4); i > 0 && stream->DeliverUp(); --i) {
    }
  }
}

void World::TakeAnswers() {
  if (SimStream* const stream = AnyStream()) {
    while (stream->TakeAnswer()) {
    }
  }
}

void World::DeliverDown() {
  if (SimStream* const stream = AnyStream()) {
    for (std::size_t i = chance_.Between(1, 6); i > 0 && stream->DeliverDown(); --i) {
    }
  }
}

void World::Commit() {
  if (depth_ >= kDepthMax) return;
  // Whichever; also one that was replaced.
  const std::shared_ptr<SimMaster> master = masters_[chance_.Below(masters_.size())];
  master->Commit();
}

void World::Fold() {
  const auto then = faulty_ && chance_.Of(faults_.killed_behind_fold) ? SimMaster::Then::kDie
                                                                      : SimMaster::Then::kGoOn;
  const std::shared_ptr<SimMaster> master = masters_[chance_.Below(masters_.size())];
  master->Fold(static_cast<std::int64_t>(chance_.Between(1, 64)) << 8, then);
}

void World::TickMaster() {
  for (std::size_t i = 0; i < masters_.size(); ++i) {
    const std::shared_ptr<SimMaster> master = masters_[i];
    if (!faulty_ || chance_.Of(0.5)) master->Tick();
    if (!faulty_ || chance_.Of(0.5)) master->Replay();
  }
  // A service manager brings it back.
  if (!masters_.back()->serves()) StartMaster();
}

void World::StartMaster() {
  auto master = std::make_shared<SimMaster>(
      database_, clock_, [this] { Meanwhile(); }, trace_);
  if (!master->Start()) {
    if (masters_.empty()) masters_.push_back(std::move(master));
    return;
  }
  masters_.push_back(std::move(master));
  // Those on the stack are held by it.
  std::erase_if(masters_, [this](const auto& each) {
    return each != masters_.back() && (each->killed() || !each->serves());
  });
}

void World::DropOverStreams() {
  if (depth_ > 0) return;
  std::erase_if(streams_, [](const auto& stream) { return stream->over(); });
}

void World::Harm() {
  if (chance_.Of(faults_.cut)) {
    if (SimStream* const stream = AnyStream()) stream->CutByAgent();
  }
  if (chance_.Of(faults_.stall)) {
    if (SimStream* const stream = AnyStream()) stream->set_stalled(true);
  }
  if (chance_.Of(faults_.master_killed) && !masters_.back()->killed()) {
    trace_.Add("epoch ", masters_.back()->epoch(), " is killed");
    masters_.back()->Kill();
  }
  if (chance_.Of(faults_.master_replaced) && depth_ < kDepthMax) StartMaster();
  if (chance_.Of(faults_.database_away)) {
    trace_.Add("the database goes away");
    database_.set_down(true);
  } else if (database_.down() && chance_.Of(0.05)) {
    trace_.Add("the database comes back");
    database_.set_down(false);
  }
  if (chance_.Of(faults_.agent_killed)) RestartAgent(AnyAgent());
  if (chance_.Of(faults_.agent_killed_in_write)) disk_.StopAfter(chance_.Below(6));
  if (chance_.Of(faults_.power_lost)) {
    SimAgent& agent = AnyAgent();
    agent.LosePower();
    RestartAgent(agent);
    agent.AddRank(ranks_++);
  }
  if (chance_.Of(faults_.spool_set_back)) {
    // As often kept as set back: what lies between is some frames.
    SimAgent& agent = AnyAgent();
    if (agent.SetSpoolBack()) {
      RestartAgent(agent);
    } else {
      agent.KeepSpool();
    }
  }
  if (disk_.full() ? chance_.Of(0.05) : chance_.Of(faults_.disk_full)) {
    disk_.set_full(!disk_.full());
    trace_.Add(disk_.full() ? "the disk is full" : "the disk has room");
  }
  if (set_back_ > 0 && restores_.Of(set_back_)) {
    // As often kept as set back.
    if (restores_.Of(0.5)) {
      database_.Keep();
    } else {
      SetDatabaseBack();
    }
  }
  if (chance_.Of(0.004)) {
    AnyAgent().EndRank(chance_.Of(0.5) ? SimAgent::How::kClosed : SimAgent::How::kDied);
  }
}

// A master that lives on finds another database in its place. Of a copy put back as it is nothing tells it, so that whoever
// does that has stopped it.
void World::SetDatabaseBack() {
  const bool is_noticed = restores_.Of(0.7);
  const bool lives_on = is_noticed && restores_.Of(0.6);
  if (!database_.PutBack(is_noticed) || lives_on) return;
  for (const auto& master : masters_) master->Kill();
}

void World::GoRight() {
  trace_.Add("faults end");
  faulty_ = false;
  database_.set_down(false);
  database_.set_trouble(0, 0);
  disk_.GoOn();
  disk_.set_full(false);
  disk_.set_sync_failure(0);
  for (const auto& agent : agents_) agent->EndAllRanks();
  for (const auto& stream : streams_) {
    stream->set_stalled(false);
    stream->set_disorder({});
  }
  for (int round = 0; round < kCalmRoundsMax && !IsOver(); ++round) {
    clock_.Advance(absl::Milliseconds(250));
    for (const auto& agent : agents_) {
      agent->Start();
      agent->Visit();
      Connect(*agent);
    }
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      while (streams_[i]->Send()) {
      }
      while (streams_[i]->DeliverUp()) {
      }
    }
    TickMaster();
    for (std::size_t i = 0; i < masters_.size(); ++i) {
      const std::shared_ptr<SimMaster> master = masters_[i];
      master->Commit();
    }
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      while (streams_[i]->TakeAnswer()) {
      }
      while (streams_[i]->DeliverDown()) {
      }
    }
    DropOverStreams();
    // One that has heard of the master is done; before, it may have to tell again what a database lacks that it had.
    const bool all_done = std::all_of(agents_.begin(), agents_.end(), [this](const auto& agent) {
      return agent->done() && IsConnected(*agent);
    });
    if (all_done) return;
  }
  if (!IsOver()) history_.Fail("all is calm, and not all arrives");
}

void World::CheckEnd() {
  SimMaster& master = *masters_.back();
  master.Replay();
  while (master.unfolded_bytes() > 0 && !IsOver()) {
    const std::int64_t before = master.unfolded_bytes();
    master.Fold(1 << 20, SimMaster::Then::kGoOn);
    if (master.unfolded_bytes() == before) return history_.Fail("a fold does not go on");
  }
  auto declared = database_.DeclaredByRank();
  for (int rank = 0; rank < ranks_ && !IsOver(); ++rank) {
    history_.Ended(rank, declared[rank]);
  }
}

}  // namespace stepwell::simulation
