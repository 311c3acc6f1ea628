#include "tests/simulation/sim_agent.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "server/chunk_decode.h"

namespace stepwell::simulation {
namespace {

constexpr std::uint64_t kDrainedPerVisit = 24;
constexpr int kSeriesCount = 3;
constexpr absl::Duration kSilenceMax = absl::Seconds(30);
// agent.md, rule 2.
constexpr absl::Duration kUnsyncedMax = absl::Milliseconds(500);

std::vector<SampleNumber> SamplesOf(const pb::Chunk& chunk) {
  pb::ChunkBody body;
  STEPWELL_CHECK(body.ParseFromString(chunk.body()));
  std::vector<TableTarget> targets;
  for (const pb::Table& table : body.tables()) {
    TableTarget& target = targets.emplace_back();
    target.tick_group = table.tick_group();
    for (const pb::Column& column : table.columns()) {
      target.columns.push_back({static_cast<SeriesNo>(column.ref()), 1});
    }
  }
  DecodedChunk decoded;
  STEPWELL_CHECK(!DecodeChunk(body, targets, decoded));
  std::vector<SampleNumber> samples;
  for (const TickTable& table : decoded.tables) {
    for (const TickColumn& column : table.columns) {
      for (const double value : column.values) {
        samples.push_back(static_cast<SampleNumber>(value));
      }
    }
  }
  std::sort(samples.begin(), samples.end());
  return samples;
}

}  // namespace

SimAgent::SimAgent(Options options, const Surroundings& surroundings)
    : options_(std::move(options)), around_(surroundings) {}

std::string SimAgent::FolderOf(const Rank& rank) const {
  return absl::StrCat(around_.disk.root(), "/", options_.name, "/", rank.rank);
}

void SimAgent::AddRank(int rank) {
  Rank& added = ranks_.emplace_back();
  added.rank = rank;
  added.writer = Uuid::Random();
  std::filesystem::create_directories(FolderOf(added));
}

void SimAgent::Record(std::size_t count) {
  if (ranks_.empty()) return;
  Rank& rank = ranks_[around_.chance.Below(ranks_.size())];
  if (rank.ended) return;
  for (std::size_t i = 0; i < count; ++i) {
    if (rank.head - rank.tail >= options_.ring_capacity) {
      ++rank.dropped;
      around_.history.Dropped(rank.rank, 1);
    } else {
      around_.history.Recorded(NumberOf(rank.rank, ++rank.head));
    }
  }
}

void SimAgent::EndRank(How how) {
  if (ranks_.empty()) return;
  Rank& rank = ranks_[around_.chance.Below(ranks_.size())];
  if (std::exchange(rank.ended, true)) return;
  rank.died = how == How::kDied;
  around_.trace.Add(options_.name, ": rank ", rank.rank, " ends at ", rank.head);
}

void SimAgent::EndAllRanks() {
  for (Rank& rank : ranks_) rank.ended = true;
}

void SimAgent::Start() {
  if (runs()) return;
  around_.trace.Add(options_.name, " starts");
  sender_ = std::make_unique<agent::Sender>();
}

void SimAgent::Kill() {
  if (!runs()) return;
  around_.trace.Add(options_.name, " is killed");
  // What destructors would still do, a killed process does not.
  around_.disk.Stop();
  for (Rank& rank : ranks_) {
    if (rank.served != nullptr && rank.served->done()) around_.history.Left(rank.rank);
    rank.served.reset();
    rank.framed_link = nullptr;
  }
  sender_.reset();
  around_.disk.GoOn();
}

void SimAgent::CheckSynced(const Rank& rank) const {
  if (retired_.contains(rank.writer)) return;  // its sequences are another writer's
  const std::set<std::uint64_t> unsynced = around_.disk.UnsyncedWrites(FolderOf(rank));
  for (const Frames& frames : rank.sealed) {
    if (frames.last_sequence <= rank.acked || frames.at + kUnsyncedMax > rank.synced_at) continue;
    const auto first = unsynced.lower_bound(frames.first_write);
    if (first == unsynced.end() || *first > frames.last_write) continue;
    around_.history.Fail(absl::StrCat(
        "sequence ", frames.last_sequence, " of rank ", rank.rank, " is not acked, and not synced ",
        absl::ToInt64Milliseconds(rank.synced_at - frames.at), " ms after it was sealed"));
  }
}

void SimAgent::LosePower() {
  for (const Rank& rank : ranks_) CheckSynced(rank);
  Kill();
  around_.trace.Add(options_.name, " loses its power");
  around_.disk.LosePower(absl::StrCat(around_.disk.root(), "/", options_.name));
  for (Rank& rank : ranks_) {
    around_.history.SetBack(rank.rank);
    rank.tail = rank.head;  // the rings are empty
    if (!std::exchange(rank.ended, true)) rank.died = true;
  }
}

void SimAgent::KeepSpool() {
  if (ranks_.empty()) return;
  Rank& rank = ranks_[around_.chance.Below(ranks_.size())];
  around_.disk.PutAside(FolderOf(rank));
  rank.is_kept = true;
}

bool SimAgent::SetSpoolBack() {
  const auto rank = std::find_if(ranks_.begin(), ranks_.end(),
                                 [](const Rank& each) { return each.is_kept && !each.ended; });
  if (rank == ranks_.end() || !retired_.empty()) return false;
  Kill();
  around_.trace.Add(options_.name, ": the spool of rank ", rank->rank, " is set back");
  around_.history.SetBack(rank->rank);
  around_.disk.SetBack(FolderOf(*rank));
  rank->sealed.clear();  // others come under their sequences
  rank->framed_sequence = 0;
  rank->is_kept = false;
  return true;
}

void SimAgent::Serve(Rank& rank) {
  agent::WriterIdentity identity;
  identity.writer = rank.writer;
  identity.project = "default";
  identity.trial = "trial";
  identity.rank = rank.rank;
  agent::Spool::Options spool;
  spool.bytes_max = options_.spool_bytes_max;
  spool.segment_bytes_max = options_.segment_bytes_max;
  spool.sync_before_send = options_.sync_before_send;
  const agent::ServeContext context{.sender = *sender_,
                                    .clock = around_.clock,
                                    .face = {options_.name, options_.name, "0.1.0"},
                                    .spool = spool};
  auto served = agent::ServedWriter::Open(
      agent::FileDescriptor(open(FolderOf(rank).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
      identity, context);
  if (!served.ok()) {
    around_.trace.Add(options_.name, ": rank ", rank.rank,
                      " is not served: ", static_cast<int>(served.status().code()));
    return;
  }
  rank.served = *std::move(served);
  rank.read = rank.tail;
  rank.dropped_told = 0;
  // An agent that died between its frame and the tail: what the frame holds is freed now.
  if (const auto& rings = rank.served->recovered().rings; rings.contains(0)) {
    rank.read = std::max(rank.read, rings.at(0).tail);
    rank.dropped_told = rings.at(0).dropped_told;
  }
  rank.tail = rank.read;
  NoteFrames(rank);
}

// What was sealed last names the ring as far as it is in frames.
void SimAgent::StoreTail(Rank& rank, std::uint64_t writes_before) {
  rank.sealed.push_back({.last_sequence = rank.served->last_sequence(),
                         .first_write = writes_before + 1,
                         .last_write = around_.disk.write_count(),
                         .at = around_.clock.Monotonic()});
  const auto& rings = rank.served->written().rings;
  if (const auto mark = rings.find(0); mark != rings.end()) {
    rank.tail = std::max(rank.tail, mark->second.tail);
  }
  NoteFrames(rank);
}

// What has left the ring since the last look lies in the frames since then.
void SimAgent::NoteFrames(Rank& rank) {
  const std::uint64_t last_sequence = rank.served->last_sequence();
  if (const auto* const link = rank.served->link().get(); link != rank.framed_link) {
    rank.framed_link = link;
    if (rank.may_be_succeeded) {
      around_.history.Renumbered(rank.rank);
      rank.framed_sequence = 0;
    }
  }
  for (; rank.framed < rank.tail; ++rank.framed) {
    around_.history.Framed(NumberOf(rank.rank, rank.framed + 1), rank.framed_sequence + 1,
                           last_sequence);
  }
  rank.framed_sequence = last_sequence;
}

void SimAgent::Visit() {
  if (!runs()) return;
  for (Rank& rank : ranks_) {
    if (rank.served == nullptr) Serve(rank);
    if (rank.served != nullptr) VisitRank(rank);
  }
  for (Rank& rank : ranks_) {
    if (rank.served == nullptr) continue;
    rank.served->TendSync(around_.clock.Monotonic());
    if (!around_.disk.stopped()) rank.synced_at = around_.clock.Monotonic();
  }
}

void SimAgent::VisitRank(Rank& rank) {
  agent::ServedWriter& served = *rank.served;
  if (served.status().retired) rank.may_be_succeeded = true;
  if (!served.close_requested()) Drain(rank);
  if (served.status().retired) rank.may_be_succeeded = true;
  served.Tend();
  NoteFrames(rank);
}

// As RankWriter::DrainAndSeal.
void SimAgent::Drain(Rank& rank) {
  agent::ServedWriter& served = *rank.served;
  if (served.pending()) {
    const std::uint64_t writes_before = around_.disk.write_count();
    if (!served.Retry().ok()) return;
    StoreTail(rank, writes_before);
  }
  const std::uint64_t end = std::min(rank.head, rank.read + kDrainedPerVisit);
  const std::int64_t now_us = absl::ToUnixMicros(around_.clock.Now());
  for (; rank.read < end; ++rank.read) {
    const SampleNumber sample = NumberOf(rank.rank, rank.read + 1);
    agent::SeriesSpec series;
    series.metric_group = "training";
    series.name = absl::StrCat("s", sample % kSeriesCount);
    const std::uint32_t ref = served.catalog().Ref({agent::TickGroupKind::kAlone, 0}, series);
    served.builder().AddSample(ref, now_us, -1, static_cast<double>(sample));
  }
  if (rank.dropped > rank.dropped_told) {
    pb::Loss loss;
    loss.set_cause(pb::GAP_CAUSE_RING_FULL);
    loss.set_sample_count(rank.dropped - rank.dropped_told);
    served.builder().AddLoss(loss);
    rank.dropped_told = rank.dropped;
  }
  if (!served.builder().empty()) {
    agent::Checkpoint checkpoint;
    checkpoint.rings[0] = {.tail = rank.read, .dropped_told = rank.dropped_told};
    const std::uint64_t writes_before = around_.disk.write_count();
    if (!served.Seal(checkpoint).ok()) return;
    StoreTail(rank, writes_before);
  }
  if (rank.ended && rank.read == rank.head) served.Close(rank.died);
}

bool SimAgent::done() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
    return rank.ended && rank.served != nullptr && rank.served->done();
  });
}

void SimAgent::OnConnected(const std::string& incarnation) {
  heard_at_ = around_.clock.Monotonic();
  sender_->OnConnected();
  sender_->OnMasterSeen({incarnation, /*behind=*/false});
}

void SimAgent::OnDisconnected() {
  if (runs()) sender_->OnDisconnected();
}

bool SimAgent::HasNext() const { return runs() && sender_->HasNext(around_.clock.Monotonic()); }

std::optional<pb::StreamChunksRequest> SimAgent::Next() {
  auto message = sender_->Next(around_.clock.Monotonic());
  if (message && message->has_chunk()) {
    around_.history.Sent(*Uuid::FromBytes(message->chunk().writer()), message->chunk().sequence(),
                         SamplesOf(message->chunk()));
  } else if (message && message->has_gap()) {
    around_.history.SentGap(*Uuid::FromBytes(message->gap().writer()),
                            message->gap().first_sequence(), message->gap().last_sequence());
  }
  return message;
}

bool SimAgent::OnMessage(const pb::StreamChunksResponse& message) {
  if (!runs()) return true;
  heard_at_ = around_.clock.Monotonic();
  if (message.has_refused()) around_.history.Saw("refused " + message.refused().reason());
  const auto retired_before = RetiredCount();
  if (sender_->OnMessage(message, heard_at_) == agent::Sender::Then::kGiveUp) return false;
  if (message.has_opened()) {
    const Uuid writer = *Uuid::FromBytes(message.opened().writer());
    if (RetiredCount() > retired_before) NoteRetired(writer);
    NoteAcked(writer, message.opened().committed_sequence());
  } else if (message.has_ack()) {
    NoteAcked(*Uuid::FromBytes(message.ack().writer()), message.ack().committed_sequence());
  }
  return true;
}

std::ptrdiff_t SimAgent::RetiredCount() const {
  return std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
    return rank.served != nullptr && rank.served->status().retired;
  });
}

void SimAgent::NoteRetired(const Uuid& writer) {
  retired_.insert(writer);
  for (const Rank& rank : ranks_) {
    if (rank.writer == writer) around_.history.Retired(rank.rank);
  }
}

void SimAgent::NoteAcked(const Uuid& writer, std::uint64_t sequence) {
  if (retired_.contains(writer)) return;
  around_.history.Acked(writer, sequence);
  for (Rank& rank : ranks_) {
    if (rank.writer == writer) rank.acked = std::max(rank.acked, sequence);
  }
}

bool SimAgent::HearsNothing() {
  if (!runs()) return false;
  const absl::Duration now = around_.clock.Monotonic();
  if (!sender_->awaits_answer()) heard_at_ = now;
  return now - heard_at_ > kSilenceMax;
}

}  // namespace stepwell::simulation
