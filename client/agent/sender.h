// Sender: which writer speaks next on the one stream of an agent, and which one an answer is for.
// In turn, so that no writer's backlog keeps another waiting. Of more writers than a master takes on a
// stream the others wait until one of those has closed. Knows no gRPC. Thread-safe.
//
// A wake asks only the writers that may have something to say (ReadySet), and says what a walk over all of them would
// have said: in the order of their places, behind the one that spoke last.
//
//   while (auto message = sender.Next(clock.Monotonic())) stream->Write(*message);
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/uuid.h"
#include "client/agent/clock_offset.h"
#include "client/agent/outbound_writer.h"
#include "client/agent/ready_set.h"

namespace stepwell::agent {

class Sender {
 public:
  // A master takes 256. The others are of writers that left without a Close.
  static constexpr std::size_t kOpenMax = 240;

  void Add(std::shared_ptr<OutboundWriter> writer) ABSL_LOCKS_EXCLUDED(mu_);
  void Remove(const OutboundWriter& writer) ABSL_LOCKS_EXCLUDED(mu_);

  void OnConnected() ABSL_LOCKS_EXCLUDED(mu_);
  void OnDisconnected() ABSL_LOCKS_EXCLUDED(mu_);
  // `now` is the monotonic clock's, here and below. Some writer's.
  bool HasNext(absl::Duration now) const ABSL_LOCKS_EXCLUDED(mu_);
  // The next message of any writer. Confined to the send thread.
  std::optional<pb::StreamChunksRequest> Next(absl::Duration now) ABSL_LOCKS_EXCLUDED(mu_);
  enum class Then {
    kGiveUp,   // the connection
    kGoOn,     // nothing comes of it
    kMaySend,  // what waited for this may go now
  };
  Then OnMessage(const pb::StreamChunksResponse& message, absl::Duration now)
      ABSL_LOCKS_EXCLUDED(mu_);

  // What the connection tells of the master before any writer opens.
  void OnMasterSeen(const OutboundWriter::MasterSeen& seen) ABSL_LOCKS_EXCLUDED(mu_);

  // Of one of its writers, which the master took; empty = none has one.
  std::string TakenToken() const ABSL_LOCKS_EXCLUDED(mu_);

  // Something was sent that the master must answer.
  bool awaits_answer() const ABSL_LOCKS_EXCLUDED(mu_);
  bool empty() const ABSL_LOCKS_EXCLUDED(mu_);

  // Of the master that the stream leads to.
  ClockOffset& clock_offset() { return clock_offset_; }

 private:
  using WriterPtr = std::shared_ptr<OutboundWriter>;  // loop, send and receive threads
  // Those that are there. O(writers), as everything that asks each of them.
  std::vector<WriterPtr> writers() const ABSL_LOCKS_EXCLUDED(mu_);
  // Null: it left.
  WriterPtr writer_at(std::size_t place) const ABSL_LOCKS_EXCLUDED(mu_);
  WriterPtr FindWriter(const Uuid& id) const ABSL_LOCKS_EXCLUDED(mu_);
  // The master may not give all of them a place.
  bool is_crowded() const ABSL_LOCKS_EXCLUDED(mu_);
  // False for one that would open while all places are taken; `is_full` is found out where it matters.
  bool MaySpeak(const OutboundWriter& writer, std::optional<bool>& is_full) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Asks those that are due, from `begin` on, each once at most, until `ask` says true of one. Those of which it
  // says false rest until they may have something.
  template <typename Ask>
  std::optional<std::size_t> AskDue(std::size_t begin, absl::Duration now, const Ask& ask) const;
  // Once for all writers: they have one version.
  void TellTooOld(const pb::StreamChunksResponse& message) ABSL_LOCKS_EXCLUDED(mu_);
  Then OnMessageTo(OutboundWriter& writer, const pb::StreamChunksResponse& message,
                   absl::Duration now);

  // Confined to the send thread: who spoke last.
  std::size_t turn_ = 0;

  ClockOffset clock_offset_;
  const std::shared_ptr<ReadySet> ready_ =
      std::make_shared<ReadySet>();  // and the marks of writers

  mutable absl::Mutex mu_;
  // By place in ready_; null = free.
  std::vector<WriterPtr> places_ ABSL_GUARDED_BY(mu_);
  std::vector<std::size_t> free_places_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<Uuid, std::size_t> place_by_id_ ABSL_GUARDED_BY(mu_);
  // Of the last one that spoke: as a rule its answer is awaited, and no other needs to be asked.
  std::size_t spoke_last_ ABSL_GUARDED_BY(mu_) = 0;
  bool connected_ ABSL_GUARDED_BY(mu_) = false;
  // The master said that this agent is too old, and that is in the log.
  bool too_old_told_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace stepwell::agent
