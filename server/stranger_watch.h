// StrangerWatch: the connections of the gRPC port on which nobody is known: no token or certificate that lives was shown
// there, or none of those any more.
//
// gRPC 1.51 reads the one message of a unary call before its method can ask who calls, and neither its own quota of
// memory nor HTTP/2's windows hold what it reads so: 24 connections of a stranger, with a hundred calls each that
// begin a message and do not end it, made a master larger by 9 GiB within a minute. So what comes from strangers
// is held by what the kernel counts of each connection: `kBytesMax` of one, `kManyBytesMax` of all beyond the first
// `kFewBytes` of each, `kTimeMax` for each. A connection beyond that ends; who has shown a token is not asked for any of it.
// Whoever comes with one shows it with the first call's headers: of a stream it is looked at before a byte of a message is
// read (64 KiB wait meanwhile), of a unary call once its message, kMessageReadBytesMax at most, is there.
//
// Thread-safe; the clock and the kernel are the caller's.
//
//   watch.Add(EndOfSocket(peer), address, {fd, inode}, now);   // before gRPC has it
//   watch.Know(call.peer(), caller);                           // by a call that showed what lives
//   for (const auto& ended : watch.Look(now)) ...              // each kLookEach
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "server/caller.h"
#include "server/connection_socket.h"
#include "server/limits.h"

namespace stepwell {

class StrangerWatch {
 public:
  // A unary call of the largest message that is read.
  static constexpr std::int64_t kBytesMax = kMessageReadBytesMax + (256 << 10);
  // A handshake, the headers of a hundred calls, a stream's window.
  static constexpr std::int64_t kFewBytes = 256 << 10;
  static constexpr std::int64_t kManyBytesMax = 32 << 20;
  static constexpr absl::Duration kTimeMax = absl::Seconds(30);
  static constexpr absl::Duration kLookEach = absl::Milliseconds(25);
  // Where no stranger is there: whether one who is known has ended.
  static constexpr absl::Duration kRestEach = absl::Seconds(1);
  // Of one connection, of which the oldest that live are asked no more.
  static constexpr std::size_t kCallersMax = 8;

  struct Ended {
    ConnectionSocket socket;
    std::string address;
    const char* why;
  };

  // `sockets` outlives this.
  explicit StrangerWatch(ConnectionSockets& sockets) : sockets_(sockets) {}

  // Of a connection that begins; one of before with the same end is gone.
  void Add(const std::string& end, const std::string& address, ConnectionSocket socket,
           SteadyTime now) ABSL_LOCKS_EXCLUDED(mu_);
  // `peer` as gRPC writes it; what is no connection of this port is ignored. `caller` null: nobody is asked, nothing is noted.
  void Know(std::string_view peer, const Caller& caller) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends what is to end, which it tells. One thread at a time.
  std::vector<Ended> Look(SteadyTime now) ABSL_LOCKS_EXCLUDED(mu_);
  // When to come again; infinite where there are no connections.
  absl::Duration NextLook() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Entry {
    ConnectionSocket socket;
    std::string address;
    SteadyTime since;              // that nobody is known
    std::int64_t bytes_first = 0;  // what had come by then
    std::int64_t bytes = 0;        // what has come since
    std::vector<Caller> callers;
    bool is_stranger = true;
  };
  struct Seen {
    std::string end;
    ConnectionSocket socket;
    std::optional<std::int64_t> bytes;  // nothing: it is gone
  };

  // Who is to be asked for what has come; those who are known now and then alone.
  std::vector<Seen> ToSee(SteadyTime now) ABSL_LOCKS_EXCLUDED(mu_);
  void Take(const std::vector<Seen>& seen, SteadyTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<Ended> TakeOut(SteadyTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  ConnectionSockets& sockets_;
  mutable absl::Mutex mu_;
  absl::flat_hash_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mu_);
  std::int64_t stranger_count_ ABSL_GUARDED_BY(mu_) = 0;
  SteadyTime all_seen_ ABSL_GUARDED_BY(mu_) = SteadyTime::InfinitePast();
};

}  // namespace stepwell
