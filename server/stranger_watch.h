// StrangerWatch: the connections of the gRPC port on which nobody is known: no token or certificate that lives was shown
// there, or none of those any more.
//
// gRPC 1.51 reads the one message of a unary call before its method can ask who calls, and neither its own quota of
// memory nor HTTP/2's windows hold what it reads so: 24 connections of a stranger, with a hundred calls each that
// begin a message and do not end it, made a master larger by 9 GiB within a minute. So what comes from strangers
// is held by what the kernel counts of each connection: `kBytesMax` of one, `kManyBytesMax` of all beyond the first
// `kFewBytes` of each, `kTimeMax` for each. Calls without a message cost memory and hardly a byte: so there are `kCountMax`
// of them at a time. Of whom there are many, or much, goes first: a flood of one address ends itself. Where there is no
// room and nobody has more than a share of it newcomers wait in the kernel's backlog, as after a restart, when thousands
// come at once. Calls that are reset at once cost memory until gRPC's threads have seen them, whatever there may be of them at
// a time: so there are `kCallsMax` of one before somebody is known there, by gRPC's own count. Where it is a flood its address
// rests.
//
// A connection that is over is not yet gone: gRPC frees its calls one by one and closes its descriptor after the last of them.
// Until then it is *closing*, and what it holds counts: newcomers of an address that has much of that are refused, where all have
// newcomers wait, and what comes beyond the first bytes of strangers ends. So whoever comes anew faster than gRPC takes apart
// what he left does not make it more.
//
// Who has shown a token is not asked for any of it. Whoever comes with one shows it with the first call's headers: of a stream it is
// looked at before a byte of a message is read (64 KiB wait meanwhile), of a unary call once its message, kMessageReadBytesMax at
// most, is there. Whose first calls are several large ones at once sends them all before one of them is whole: such a client shows
// its token in a small call first.
//
// A call names its connection by its other end alone, as does gRPC's count. So of two with the same other end, which only come of
// one that calls on two of the master's addresses from one port, or again before gRPC has closed the first, the second is not taken.
//
// Know is thread-safe, the rest one thread's. The clock and the kernel are the caller's.
//
//   if (watch.HasRoom()) fd = accept(...);
//   const char* why = watch.Add(EndOfSocket(peer), address, {fd, inode}, now);   // before gRPC has it
//   if (why != nullptr) close(fd);
//   watch.Know(call.peer(), caller);                           // by a call that showed what lives
//   for (const auto& ended : watch.Look(now).ended) ...        // each kLookEach
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
#include "server/connection_calls.h"
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
  // As many as there may be at a time, and some. They are counted where so much came, and again with each so much more.
  static constexpr std::int64_t kCallsMax = 128;
  static constexpr std::int64_t kCallsEachBytes = 4 << 10;
  // Of one, or so many with more than kCallsMax at a look: then the address' others that sent so much end, too, and it rests.
  static constexpr std::int64_t kCallsFlood = 1024;
  static constexpr int kCallsCrowd = 4;
  static constexpr absl::Duration kCallsRest = absl::Seconds(10);
  // A hundred calls of one, each with 2 KiB of a message, take 1.2 MiB.
  static constexpr std::size_t kCountMax = 256;
  // Where there are so many: what an address may have of them, beyond which its oldest goes for somebody else's new one, and
  // how many go with a look, and when: of addresses that have more than a share, else of any.
  static constexpr std::size_t kShareWhenFull = 32;
  static constexpr std::size_t kRoomEach = 32;
  static constexpr absl::Duration kTimeWhenFull = absl::Seconds(2);
  static constexpr absl::Duration kLookEach = absl::Milliseconds(25);
  // Whether one who is known has ended.
  static constexpr absl::Duration kRestEach = absl::Seconds(1);
  // Of one connection, of which those that end soonest are asked no more, of equal ones the first.
  static constexpr std::size_t kCallersMax = 64;
  // Closing ones, and bytes of those beyond the first of each: of an address, beyond which it is refused; of all, beyond which
  // newcomers wait. What is beyond kManyBytesMax strangers have less. One that a handler keeps open is counted no longer than this.
  static constexpr std::size_t kClosingShare = 16;
  static constexpr std::int64_t kClosingShareBytes = 8 << 20;
  static constexpr std::size_t kClosingMax = 128;
  static constexpr std::int64_t kClosingBytesMax = 2 * kManyBytesMax;
  static constexpr absl::Duration kClosingTimeMax = absl::Minutes(1);

  struct Ended {
    ConnectionSocket socket;
    std::string address;
    const char* why;
  };
  struct Looked {
    std::vector<Ended> ended;
    // About what strangers held whose descriptors were closed since the look before: what they sent, and some for each.
    std::int64_t freed_bytes = 0;
  };

  // Both outlive this.
  StrangerWatch(ConnectionSockets& sockets, ConnectionCalls& calls)
      : sockets_(sockets), calls_(calls) {}

  // Whether somebody may have a place; else the next look may find one.
  bool HasRoom() const ABSL_LOCKS_EXCLUDED(mu_);
  // Of a connection that begins. Null, or why it is not taken. `address` is whose share it counts to.
  const char* Add(const std::string& end, const std::string& address, ConnectionSocket socket,
                  SteadyTime now) ABSL_LOCKS_EXCLUDED(mu_);
  // `peer` as gRPC writes it; what is no connection of this port is ignored. `caller` null: nobody is asked, nothing is noted.
  void Know(std::string_view peer, const Caller& caller) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends what is to end; tells what has since the look before.
  Looked Look(SteadyTime now) ABSL_LOCKS_EXCLUDED(mu_);
  // When to come again; infinite where there are no connections.
  absl::Duration NextLook() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  static std::int64_t BeyondFew(std::int64_t bytes) {
    return bytes > kFewBytes ? bytes - kFewBytes : 0;
  }
  struct Stranger {
    ConnectionSocket socket;
    std::string address;
    SteadyTime since;  // that nobody is known
    bool is_over = false;
    std::int64_t bytes_first = 0;  // what had come by then
    std::int64_t bytes = 0;        // what has come since
    std::int64_t counter = 0;      // of its calls; 0: not known
    std::int64_t calls_first = 0;  // what it had begun by then; -1: to be asked
    std::int64_t calls = 0;
    std::int64_t bytes_counted = 0;  // as of when its calls were
    std::int64_t beyond_few() const { return BeyondFew(bytes); }
  };
  struct Closing {
    std::string end;
    ConnectionSocket socket;
    std::string address;
    std::int64_t bytes = 0;
    SteadyTime since;
  };
  struct Known {
    ConnectionSocket socket;
    std::string address;
    std::vector<Caller> callers;
    std::int64_t counter = 0;
  };
  struct Seen {
    std::string end;
    ConnectionSocket socket;
    std::optional<ConnectionSockets::State> state = std::nullopt;  // nothing: it is gone
  };
  using Strangers = absl::flat_hash_map<std::string, Stranger>;

  std::optional<ConnectionSocket> SocketOf(const std::string& end) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Insert(const std::string& end, Stranger stranger) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Stranger Erase(Strangers::iterator stranger) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Somebody ended it, or will.
  void Close(const std::string& end, Stranger stranger, SteadyTime now);
  void End(Strangers::iterator stranger, const char* why, SteadyTime now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The address that has most, if that is more than a share; else empty.
  std::string OverShare() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndOldestOf(const std::string& address, SteadyTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Who is to be asked for what has come: strangers, those who were known, and now and then all.
  std::vector<Seen> ToSee(SteadyTime now) ABSL_LOCKS_EXCLUDED(mu_);
  void Take(const Seen& seen, SteadyTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What those held that are gone now. `stood`: how long nobody looked.
  std::int64_t ForgetGone(SteadyTime now, absl::Duration stood);
  std::int64_t ClosingBytes() const;
  bool IsClosingMuch(const std::string& address) const;
  // Asks for the calls of those of whom more has come.
  void CountCalls() ABSL_LOCKS_EXCLUDED(mu_);
  // Of connections that are new.
  void ListCounters() ABSL_LOCKS_EXCLUDED(mu_);
  // Who begins too many calls, hung up or not; then those who hung up.
  void EndForCalls(SteadyTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CloseOver(SteadyTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Those beyond what one may have; then of all bytes; then of all.
  void EndEach(SteadyTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndForBytes(SteadyTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndForRoom(SteadyTime now, bool has_stood) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  ConnectionSockets& sockets_;
  ConnectionCalls& calls_;
  std::int64_t counter_seen_ = 0;                       // the greatest
  std::vector<Closing> closing_;                        // in the order in which they ended
  absl::flat_hash_map<std::string, SteadyTime> rests_;  // addresses, until when
  SteadyTime look_time_ = SteadyTime::InfinitePast();
  mutable absl::Mutex mu_;
  // By their other ends, each of which is in one of them.
  Strangers strangers_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<std::string, Known> known_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<std::string, std::size_t> count_of_address_
      ABSL_GUARDED_BY(mu_);             // of strangers
  Looked looked_ ABSL_GUARDED_BY(mu_);  // since the look before
  SteadyTime known_looked_ ABSL_GUARDED_BY(mu_) = SteadyTime::InfinitePast();
  SteadyTime all_seen_ ABSL_GUARDED_BY(mu_) = SteadyTime::InfinitePast();
};

}  // namespace stepwell
