#include "bench/beside/old_leaf.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "tests/support/sql_of.h"

namespace stepwell::bench {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr char kSeeLock[] = R"(
select count(*) from pg_locks l join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'relation' and l.mode = 'AccessExclusiveLock' and l.granted
  and a.application_name = 'stepwell-caps')";

std::string CountLeaves(int days_ago) {
  return absl::StrCat(
      "select count(*) from pg_class where relnamespace = 'stepwell'::regnamespace and relname ~ "
      "('_k1_' || to_char((now() at time zone 'utc')::date - ",
      days_ago, ", 'YYYYMMDD') || '$') and relkind = 'r'");
}

}  // namespace

absl::Status MakeOldLeaf(AdminClient& admin, const std::string& trials, int days_ago) {
  return admin.sql().ExecScript(SqlOf(absl::StrCat(R"(
begin;
do $do$
declare
  today constant date := (now() at time zone 'utc')::date;
  day constant date := today - )",
                                                   days_ago, R"(;
  these constant bigint[] := array(select trial_id from stepwell.trials where external_id like ')",
                                                   trials, R"(');
  of text;
  source text;
  names text;
  picked text;
begin
  foreach of in array array['metrics', 'ticks', 'rollups', 'rollup_ticks', 'usage'] loop
    select string_agg(quote_ident(column_name), ', '),
           string_agg(case when column_name = 'received_day' then quote_literal(day) || '::date'
                      else quote_ident(column_name) end, ', ')
    into names, picked from information_schema.columns
    where table_schema = 'stepwell' and table_name = of;
    if of <> 'usage' then
      execute format('create table stepwell.%1$s_k1_%2$s partition of stepwell.%1$s '
                     'for values from (1, %3$L) to (1, %4$L)', of, to_char(day, 'YYYYMMDD'), day,
                     day + 1);
    end if;
    -- Rollups that wait to be joined with others of their series are in their leaf a day later.
    foreach source in array case when of like 'rollup%' then array[of, 'recent_' || of]
                            else array[of] end loop
      execute format('insert into stepwell.%1$s (%2$s) select %3$s from stepwell.%6$s where '
                     'trial_id = any(%4$L) and keep_class = 1 and received_day = %5$L', of, names,
                     picked, these, today, source);
    end loop;
  end loop;
end $do$;
commit)")));
}

absl::Status LetADayPass(AdminClient& admin, const std::string& trials) {
  STEPWELL_RETURN_IF_ERROR(admin.sql().ExecScript(SqlOf(
      absl::StrCat("delete from stepwell.gaps where writer_no = 0 and cause = 11 and trial_id in "
                   "(select trial_id from stepwell.trials where external_id like '",
                   trials, "')"))));
  STEPWELL_RETURN_IF_ERROR(admin.sql().ExecScript("vacuum"));
  return admin.sql().ExecScript("checkpoint");
}

absl::Status SweepAway(AdminClient& admin, int days_ago) {
  for (const absl::Time end = absl::Now() + kPatience; absl::Now() < end;) {
    STEPWELL_RETURN_IF_ERROR(admin.Sweep("").status());
    STEPWELL_ASSIGN_OR_RETURN(const std::int64_t left, admin.Number(CountLeaves(days_ago)));
    if (left == 0) return absl::OkStatus();
  }
  return absl::DeadlineExceededError("the leaf is not swept");
}

LockWatch::LockWatch(const std::string& database_url)
    : thread_([this, database_url] { status_ = Watch(database_url); }) {}

LockWatch::~LockWatch() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<absl::Duration> LockWatch::Longest() {
  stop_ = true;
  thread_.join();
  STEPWELL_RETURN_IF_ERROR(status_);
  return std::max(longest_, 2 * shortest_look_);
}

absl::Status LockWatch::Watch(const std::string& database_url) {
  STEPWELL_ASSIGN_OR_RETURN(
      const auto sql, PgConnection::Open({.url = database_url, .application_name = "lock watch"}));
  absl::Time unseen = absl::Now();
  bool was_held = false;
  while (!stop_) {
    const absl::Time before = absl::Now();
    STEPWELL_ASSIGN_OR_RETURN(const PgResult locks, sql->Exec(kSeeLock));
    const bool held = locks.Int64(0, 0) > 0;
    shortest_look_ = std::min(shortest_look_, absl::Now() - before);
    if (!held && was_held) longest_ = std::max(longest_, absl::Now() - unseen);
    if (!held) unseen = before;
    was_held = held;
  }
  return absl::OkStatus();
}

}  // namespace stepwell::bench
