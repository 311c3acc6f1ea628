// AckBoard: what one stream still has to send. Acks of a writer that wait are one: cumulative, with
// their rejections gathered; other messages keep their order and go first. Bounded: a stream whose
// client does not read stops being read itself (HasRoom). Step 9 of a sample's line. Thread-safe.
//
//   board.PostAck(writer, {.committed_sequence = 7, .credit_bytes = 1 << 20});   // the committer
//   while (board.TakeNext(message)) ...                                          // the stream
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
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

  // `on_post` is called after each post, without a lock held; at most until the board is closed.
  explicit AckBoard(std::function<void()> on_post = [] {}) : on_post_(std::move(on_post)) {}

  void Post(pb::StreamChunksResponse message) ABSL_LOCKS_EXCLUDED(mu_);
  void PostAck(const Uuid& writer, Ack ack) ABSL_LOCKS_EXCLUDED(mu_);
  // The writer was opened anew: what waits for it is out of date.
  void Forget(const Uuid& writer) ABSL_LOCKS_EXCLUDED(mu_);

  // False when nothing waits.
  bool TakeNext(pb::StreamChunksResponse& out) ABSL_LOCKS_EXCLUDED(mu_);
  // Likewise, but leaves acks to gather.
  bool TakeMessage(pb::StreamChunksResponse& out) ABSL_LOCKS_EXCLUDED(mu_);
  bool empty() const ABSL_LOCKS_EXCLUDED(mu_);
  // Blocks while too many messages wait; false once closed or at `deadline`.
  bool WaitForRoom(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mu_);
  // Nothing is posted or waited for any more.
  void Close() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  static constexpr std::size_t kMessageCountMax = 1024;

  const std::function<void()> on_post_;
  mutable absl::Mutex mu_;
  std::deque<pb::StreamChunksResponse> messages_ ABSL_GUARDED_BY(mu_);
  std::map<Uuid, Ack> acks_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace stepwell
