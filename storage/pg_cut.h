// PgCut: the moment at which all connections that carry it end, whatever they wait for: a server that
// stops must not wait for a database that hangs. Set from any thread, while others wait on their
// connections. Thread-safe.
//
//   auto cut = std::make_shared<PgCut>();
//   PgConnection::Open({.url = url, .cut = cut});
//   cut->CutAfter(absl::Seconds(7));   // their calls return kUnavailable then, and none is opened
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "storage/pg_sessions.h"

namespace stepwell {

class PgCut {
 public:
  PgCut();
  ~PgCut();
  PgCut(const PgCut&) = delete;
  PgCut& operator=(const PgCut&) = delete;

  // Counts from now; the earliest asked for holds. Does not block.
  void CutAfter(absl::Duration after);
  bool is_cut() const { return left() <= absl::ZeroDuration(); }
  // Until the cut; infinite where none was asked for.
  absl::Duration left() const;
  // Polls readable from the cut on. Below 0 where there is none: waits then end by their own bounds.
  int descriptor() const { return timer_; }
  // Those that carry it.
  PgSessions& sessions() const { return *sessions_; }

 private:
  const int timer_;
  // Of the monotonic clock.
  std::atomic<std::int64_t> cut_ns_;
  const std::unique_ptr<PgSessions> sessions_ = std::make_unique<PgSessions>();
};

}  // namespace stepwell
