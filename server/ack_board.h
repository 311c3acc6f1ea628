// AckBoard: what one stream still has to send. Acks of a writer that wait are one: cumulative, with
// their rejections gathered; of its directives the newest of a kind waits; other messages keep their
// order and go first. Bounded in number and bytes: a stream whose client does not read stops being read itself (WaitForRoom).
// Step 9 of a sample's line. Thread-safe.
//
//   board.HoldAck(writer, {.committed_sequence = 7, .credit_bytes = 1 << 20});   // the committer
//   board.Tell();                                                                // once for all of a commit
//   while (board.TakeNext(message)) ...                                          // the stream
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/steady_time.h"
#include "base/uuid.h"
#include "server/wire.h"
#include "stepwell/v1/ingest.pb.h"

namespace stepwell {

class AckBoard {
 public:
  struct Ack {
    std::uint64_t committed_sequence = 0;
    std::vector<pb::Rejection> rejections = {};
    std::int64_t credit_bytes = 0;
    bool closed = false;
  };

  // `on_post` is called after each post, and by Tell, without a lock held; at most until the board is closed.
  explicit AckBoard(std::function<void()> on_post = [] {}) : on_post_(std::move(on_post)) {}

  void Post(pb::StreamChunksResponse message) ABSL_LOCKS_EXCLUDED(mu_);
  // Nobody is called until Tell: of a stream's acks many come at once.
  void HoldAck(const Uuid& writer, Ack ack) ABSL_LOCKS_EXCLUDED(mu_);
  void Tell() ABSL_LOCKS_EXCLUDED(mu_);
  // The writer opens under that generation, for the first time or anew: what waits for it is out of
  // date, and its directives wait for PostOpened.
  void Expect(const Uuid& writer, std::uint64_t generation) ABSL_LOCKS_EXCLUDED(mu_);
  // An Opened, with the directives that came since Expect in it.
  void PostOpened(const Uuid& writer, pb::StreamChunksResponse opened) ABSL_LOCKS_EXCLUDED(mu_);
  // Of one kind and writer the greatest version alone is sent, and none after it. False for a writer
  // that is not expected or open here.
  bool PostDirective(const Uuid& writer, std::uint64_t version, pb::Directive directive)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The writer of that generation has left this stream: it is asked for nothing any more.
  void DropDirectives(const Uuid& writer, std::uint64_t generation) ABSL_LOCKS_EXCLUDED(mu_);

  // False when nothing waits.
  bool TakeNext(pb::StreamChunksResponse& out) ABSL_LOCKS_EXCLUDED(mu_);
  // Likewise, but leaves acks and directives to gather.
  bool TakeMessage(pb::StreamChunksResponse& out) ABSL_LOCKS_EXCLUDED(mu_);
  bool empty() const ABSL_LOCKS_EXCLUDED(mu_);
  // Blocks while too many messages wait; false once closed or at `deadline`.
  bool WaitForRoom(SteadyTime deadline) ABSL_LOCKS_EXCLUDED(mu_);
  // Nothing is posted or waited for any more.
  void Close() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  static constexpr std::size_t kMessageCountMax = 1024;
  // An Opened tells up to a thousand rejections, 100 KB: a client that opens and reads nothing has few of them here.
  static constexpr std::size_t kMessageBytesMax = 256 << 10;
  // What one takes in memory beside its words.
  static constexpr std::size_t kMessageOwnBytes = 256;
  using Kind = pb::Directive::DirectiveCase;
  struct Wanted {
    std::uint64_t version = 0;
    std::optional<pb::Directive> waiting = {};
  };
  struct Waiting {
    pb::StreamChunksResponse message;
    std::size_t bytes = 0;
  };
  // What an open writer is asked for.
  struct Place {
    std::uint64_t generation = 0;
    bool opened = false;
    std::map<Kind, Wanted> wanted = {};
  };

  void PushLocked(pb::StreamChunksResponse message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ErasePlaceLocked(const Uuid& writer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool TakeMessageLocked(pb::StreamChunksResponse& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool TakeDirectiveLocked(pb::StreamChunksResponse& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::function<void()> on_post_;
  mutable absl::Mutex mu_;
  std::deque<Waiting> messages_ ABSL_GUARDED_BY(mu_);
  std::size_t message_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<Uuid, Ack> acks_ ABSL_GUARDED_BY(mu_);
  std::map<Uuid, Place> places_ ABSL_GUARDED_BY(mu_);
  // Those of opened writers that wait.
  std::set<std::pair<Uuid, Kind>> directives_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace stepwell
