// PgStopWatch: lets go of a PostgreSQL that somebody stops smartly (pg_ctl stop -m smart, SIGTERM). Such a one lets
// nobody in and waits for all sessions to end, of which none is told: without this look it would wait for a
// master for ever. Of the private one its supervisor knows by itself. Confined to one thread.
//
//   PgStopWatch watch({}, url, cut);
//   watch.Look();   // at each tick
//
// Invariant: each host is asked once in each `interval`. Where it refuses as one that stops (SQLSTATE 57P03), all sessions
// that were begun before are given up: their owners close them where they use them next, between two transactions, and
// after `grace` those that are left end as by a fast stop: what was under way fails as unavailable, a COMMIT as in
// doubt. None that was begun later is touched. Only sessions that carry `cut` are known here.
//
// One that starts or recovers refuses in the same way, and has no sessions of ours. Of several hosts one that goes
// on refusing, as a standby may, costs the sessions at the others once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/steady_time.h"
#include "storage/pg_cut.h"

namespace stepwell {

class PgStopWatch {
 public:
  struct Options {
    // A connection each time, and a line in the log of a server that has log_connections on. What stops a
    // database waits a minute at least.
    absl::Duration interval = absl::Seconds(10);
    // REQUIRES: shorter than the interval.
    absl::Duration grace = absl::Seconds(5);
  };

  // A `url` that cannot be read is never looked at: who connects says why.
  PgStopWatch(Options options, const std::string& url, std::shared_ptr<PgCut> cut);

  // Returns at once unless a look is due, which blocks for 2 s for each address of one host where nobody answers.
  void Look();

 private:
  struct Host {
    std::string conninfo;
    bool refuses = false;
  };
  // Whether it has news of a stop.
  bool Ask(Host& host) const;

  const Options options_;
  const std::shared_ptr<PgCut> cut_;
  std::vector<Host> hosts_;
  std::size_t next_host_ = 0;
  SteadyTime next_look_;
  SteadyTime end_at_ = SteadyTime::InfiniteFuture();
};

}  // namespace stepwell
