#include "bench/beside/old_leaf.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "tests/support/sql_of.h"

namespace stepwell::bench {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(3);
// By transaction. A table that is not in the catalogue yet is nobody else's.
constexpr char kSeeLocks[] = R"(
select distinct l.virtualtransaction from pg_locks l join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'relation' and l.granted and a.application_name like $1
  and l.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
  and exists (select from pg_class c where c.oid = l.relation))";

std::string CountLeaves(const OldLeaf& leaf, Until until) {
  return absl::StrCat(
      "select count(*) from pg_class where relnamespace = 'stepwell'::regnamespace and relname ~ "
      "('^(metrics|ticks",
      until == Until::kAllGone ? "|rollups|rollup_ticks" : "", ")_k", leaf.keep_class,
      "_' || to_char((now() at time zone 'utc')::date - ", leaf.days_ago,
      ", 'YYYYMMDD') || '$') and relkind = 'r'");
}

}  // namespace

absl::Status MakeOldLeaf(AdminClient& admin, const std::string& trials, const OldLeaf& leaf) {
  return admin.sql().ExecScript(SqlOf(absl::StrCat(R"(
begin;
do $do$
declare
  today constant date := (now() at time zone 'utc')::date;
  day constant date := today - )",
                                                   leaf.days_ago, R"(;
  class constant smallint := )",
                                                   leaf.keep_class, R"(;
  these constant bigint[] := array(select trial_id from stepwell.trials where external_id like ')",
                                                   trials, R"(');
  of text;
  source text;
  names text;
  picked text;
begin
  foreach of in array array['metrics', 'ticks', 'rollups', 'rollup_ticks', 'usage_lines'] loop
    select string_agg(quote_ident(column_name), ', '),
           string_agg(case column_name when 'received_day' then quote_literal(day) || '::date'
                      when 'keep_class' then class::text
                      else quote_ident(column_name) end, ', ')
    into names, picked from information_schema.columns
    where table_schema = 'stepwell' and table_name = of;
    if of <> 'usage_lines' then
      execute format('create table stepwell.%1$s_k%5$s_%2$s partition of stepwell.%1$s '
                     'for values from (%5$s, %3$L) to (%5$s, %4$L)', of, to_char(day, 'YYYYMMDD'), day,
                     day + 1, class);
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

absl::Status SweepAway(AdminClient& admin, const OldLeaf& leaf, Until until) {
  for (const absl::Time end = absl::Now() + kPatience; absl::Now() < end;) {
    STEPWELL_RETURN_IF_ERROR(admin.Sweep("").status());
    STEPWELL_ASSIGN_OR_RETURN(const std::int64_t left, admin.Number(CountLeaves(leaf, until)));
    if (left == 0) return absl::OkStatus();
  }
  return absl::DeadlineExceededError("the leaf is not swept");
}

absl::Status KeepRollupsFor(AdminClient& admin, int keep_class, int days) {
  return admin.sql().ExecScript(
      SqlOf(absl::StrCat("update stepwell.keep_classes set rollup_age = make_interval(secs => ",
                         days, " * 86400.0) where keep_class = ", keep_class)));
}

LockWatch::LockWatch(const std::string& database_url, const std::string& sessions)
    : thread_([this, database_url, sessions] { status_ = Watch(database_url, sessions); }) {}

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

absl::Status LockWatch::Watch(const std::string& database_url, const std::string& sessions) {
  STEPWELL_ASSIGN_OR_RETURN(
      const auto sql, PgConnection::Open({.url = database_url, .application_name = "lock watch"}));
  absl::Time before = absl::Now();
  // When each of those that hold one was not seen yet.
  std::map<std::string, absl::Time> held;
  while (!stop_) {
    const absl::Time unseen = std::exchange(before, absl::Now());
    STEPWELL_ASSIGN_OR_RETURN(const PgResult locks, sql->Exec(kSeeLocks, {sessions}));
    const absl::Time now = absl::Now();
    shortest_look_ = std::min(shortest_look_, now - before);
    std::map<std::string, absl::Time> still_held;
    for (int row = 0; row < locks.row_count(); ++row) {
      const std::string transaction(locks.Text(row, 0));
      const auto found = held.find(transaction);
      if (found == held.end()) ++seen_count_;
      still_held.emplace(transaction, found == held.end() ? unseen : found->second);
    }
    for (const auto& [transaction, since] : held) {
      if (!still_held.contains(transaction)) longest_ = std::max(longest_, now - since);
    }
    held = std::move(still_held);
  }
  return absl::OkStatus();
}

}  // namespace stepwell::bench
