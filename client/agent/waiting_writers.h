// WaitingWriters: writers of a root that have no place among those that are served: ones that no
// agent has drained yet, and ones that were drained and cannot be delivered now. Living writers never
// wait for these. Pure. Thread-compatible.
//
//   waiting.Add(name, {});                                 // it is dead, and all places are taken
//   if (auto taken = waiting.Take()) Serve(taken->name);   // a place is free
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"

namespace stepwell::agent {

// What is known of one that left its place.
struct AsideWriter {
  enum class State {
    kNew,        // was never served: its rings hold what is in no spool
    kUnsent,     // drained; no master takes it now
    kRefused,    // drained; the master will not have it
    kSpooled,    // drained, and no master is to have it
    kDelivered,  // nothing is left but its acked tail: it comes back no more
  };
  State state = State::kNew;
  // Of its spool.
  std::int64_t unacked_bytes = 0;
  std::uint64_t acked_sequence = 0;
};

class WaitingWriters {
 public:
  // One that waits already goes on as it is: a directory may list a name twice while it is renamed.
  void Add(const std::string& name, AsideWriter writer);
  struct Taken {
    std::string name;
    AsideWriter::State state;
  };
  // The one that waits longest, new ones first; it waits no more. None that was delivered.
  std::optional<Taken> Take();
  void Drop(const std::string& name);

  bool Contains(const std::string& name) const { return writers_.contains(name); }
  // Without those that come back no more.
  std::size_t count() const { return writers_.size() - delivered_count_; }
  // Of all, those too.
  std::size_t name_count() const { return writers_.size(); }
  std::size_t new_count() const { return new_count_; }
  std::int64_t unacked_bytes() const { return unacked_bytes_; }
  // Grows and shrinks with who waits: together with those of the served it only grows.
  std::uint64_t acked_sum() const { return acked_sum_; }
  // The master, or where there is to be none the spool, holds all of each.
  bool all_done() const;
  // The same, or it was refused: trying again is pointless.
  bool all_settled() const;

 private:
  std::optional<Taken> TakeFrom(std::deque<std::string>& queue);

  absl::flat_hash_map<std::string, AsideWriter> writers_;
  // In order of coming; names that were dropped are passed over.
  std::deque<std::string> new_;
  std::deque<std::string> drained_;
  std::size_t new_count_ = 0;
  std::size_t unsent_count_ = 0;
  std::size_t refused_count_ = 0;
  std::size_t delivered_count_ = 0;
  std::int64_t unacked_bytes_ = 0;
  std::uint64_t acked_sum_ = 0;
};

}  // namespace stepwell::agent
