#include "storage/pg_stop_watch.h"

#include <libpq-fe.h>

#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "storage/pg_url.h"

namespace stepwell {

PgStopWatch::PgStopWatch(Options options, const std::string& url, std::shared_ptr<PgCut> cut)
    : options_(options), cut_(std::move(cut)) {
  STEPWELL_CHECK(options_.grace < options_.interval);
  const auto targets =
      PgConninfoOfEachHost(url, {{"application_name", "stepwell-look"}, {"connect_timeout", "2"}});
  if (!targets.ok()) return;
  for (const std::string& target : *targets) hosts_.push_back({.conninfo = target});
}

void PgStopWatch::Look() {
  if (end_at_.HasPassed()) {
    end_at_ = SteadyTime::InfiniteFuture();
    const int ended = cut_->sessions().EndOver();
    if (ended > 0) log::Info("sessions_of_stopping_database_ended", {{"sessions", ended}});
  }
  if (hosts_.empty() || !next_look_.HasPassed()) return;
  Host& host = hosts_[next_host_];
  next_host_ = (next_host_ + 1) % hosts_.size();
  const bool stops = Ask(host);
  next_look_ = SteadyTime::Now() + options_.interval / static_cast<std::int64_t>(hosts_.size());
  if (!stops) return;
  const int given_up = cut_->sessions().GiveUp();
  if (given_up == 0) return;
  log::Warning("database_lets_nobody_in", {{"sessions_given_up", given_up}});
  end_at_ = SteadyTime::Now() + options_.grace;
}

bool PgStopWatch::Ask(Host& host) const {
  const bool refused_before = host.refuses;
  // libpq tells this one SQLSTATE of a refused connection, and of no other.
  host.refuses = PQping(host.conninfo.c_str()) == PQPING_REJECT;
  return host.refuses && (!refused_before || hosts_.size() == 1);
}

}  // namespace stepwell
