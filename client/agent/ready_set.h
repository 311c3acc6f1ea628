// ReadySet: which writers of a stream may have something to say, so that a wake asks those alone and not
// all. It stands between what gives them something (appends, answers of the master, tokens) and the
// sender, which asks. Knows no writer: they have places, numbered from 0. Thread-safe; no other lock is
// taken under its own, and none of its calls waits.
//
// The invariant: a writer that has something to say at a time is due at that time. It holds because
//   1. whatever gives a writer something happens first, and marks it then, which makes it due at once;
//   2. it stops being due by Rest alone, of who asked it at `now` and heard that it has nothing, until
//      when it may have something by itself (a heartbeat, a delay that ends);
//   3. a Rest is void where the writer was marked since it was found due: that came after the question.
// The other way round nothing is promised: one that is due may have nothing, and is asked once too often.
//
//   set->Take(3);          // a writer came, and is due
//   set->Mark(3);          // it was appended to
//   if (const auto due = set->FindDue(0, set->place_count(), now)) {
//     if (!Ask(due->place)) set->Rest(*due, now + heartbeat);
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace stepwell::agent {

class ReadySet {
 public:
  // One that was found due, and how often it was marked until then.
  struct Due {
    std::size_t place = 0;
    std::uint64_t mark_count = 0;
  };

  // Makes `place` one of a writer, which is due. Places are taken anew once they are left.
  void Take(std::size_t place) ABSL_LOCKS_EXCLUDED(mu_);
  void Leave(std::size_t place) ABSL_LOCKS_EXCLUDED(mu_);

  void Mark(std::size_t place) ABSL_LOCKS_EXCLUDED(mu_);
  void MarkAll() ABSL_LOCKS_EXCLUDED(mu_);
  // The first that is due among `count` places from `begin` on; behind the last comes the first. It stays due. Steps over
  // all others, some ten bytes each: what is saved is asking them.
  std::optional<Due> FindDue(std::size_t begin, std::size_t count, absl::Duration now) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // It was asked since it was found, and has nothing before `until` but for what marks it.
  void Rest(const Due& due, absl::Duration until) ABSL_LOCKS_EXCLUDED(mu_);

  // Taken ever; some may have been left.
  std::size_t place_count() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Place {
    bool is_taken = false;
    absl::Duration due;
    std::uint64_t mark_count = 0;  // goes on where another writer takes the place
  };
  static void MarkOne(Place& place);

  mutable absl::Mutex mu_;
  std::vector<Place> places_ ABSL_GUARDED_BY(mu_);
};

// One writer's place in the set of its stream, if it has one: for who gives it something to say and knows no
// stream. Thread-safe, as the set.
class ReadyMark {
 public:
  void Set() ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::MutexLock lock(&mu_);
    if (set_ != nullptr) set_->Mark(place_);
  }
  void Attach(std::shared_ptr<ReadySet> set, std::size_t place) ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::MutexLock lock(&mu_);
    set_ = std::move(set);
    place_ = place;
  }
  void Detach() ABSL_LOCKS_EXCLUDED(mu_) { Attach(nullptr, 0); }

 private:
  absl::Mutex mu_;
  std::shared_ptr<ReadySet> set_ ABSL_GUARDED_BY(mu_);  // also the sender's
  std::size_t place_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace stepwell::agent
