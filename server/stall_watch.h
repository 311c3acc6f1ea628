// StallWatch: ends calls whose client has taken nothing, or sent nothing, for too long, so that it does not keep its place
// and its thread for ever; soon where its token has ended meanwhile, for who waits for it sees no such thing. One thread,
// "stall-watch", for all calls of a service. Thread-safe.
//
//   StallWatch::Call call(watch, [context] { context->TryCancel(); }, caller);
//   { const StallWatch::Write write(call); writer->Write(message); }   // may block
#pragma once

#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "base/worker.h"
#include "server/caller.h"

namespace stepwell {

class StallWatch {
 public:
  // One whose token has ended may finish what it says for so long: a client that listens is told why.
  static constexpr absl::Duration kEndedGrace = absl::Seconds(1);

  // A write that takes longer ends its call, within a quarter more. REQUIRES: above 0.
  explicit StallWatch(absl::Duration stall_max);
  // All calls are gone before.
  ~StallWatch();

  class Call {
   public:
    // `cancel` is called under the watch's lock, so that what it cancels is still there: it must not
    // block, nor come back here.
    Call(StallWatch& watch, std::function<void()> cancel, Caller caller);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    friend class StallWatch;
    void Since(SteadyTime since);

    StallWatch& watch_;
    const std::function<void()> cancel_;
    const Caller caller_;
    SteadyTime since_ = SteadyTime::InfiniteFuture();  // guarded by watch_.mu_
  };
  // While it lives, its call is being written to, or read from.
  class Write {
   public:
    explicit Write(Call& call);
    ~Write() { call_.Since(SteadyTime::InfiniteFuture()); }
    Write(const Write&) = delete;
    Write& operator=(const Write&) = delete;

   private:
    Call& call_;
  };

 private:
  void Run();
  void LookLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const absl::Duration stall_max_;
  absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  absl::flat_hash_set<Call*> calls_ ABSL_GUARDED_BY(mu_);
  Worker worker_;
};

}  // namespace stepwell
