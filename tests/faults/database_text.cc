#include "tests/faults/database_text.h"

#include <libpq-fe.h>

#include <memory>

#include "absl/strings/str_cat.h"

namespace stepwell::faults {
namespace {

struct Finish {
  void operator()(PGconn* connection) const { PQfinish(connection); }
  void operator()(PGresult* result) const { PQclear(result); }
};

// Leaves leave their tables, take the name of their new day, oldest first, and come back. Keys are moved
// out of each other's way before they are set. stepwell.aged_days: how many.
constexpr char kMoveDays[] = R"(
do $do$
declare
  days constant integer := current_setting('stepwell.aged_days')::integer;
  leaf record;
  is_empty boolean;
begin
  create temporary table leaves on commit drop as
    select m.leaf, m.parts[1] as parent, m.parts[2]::integer as keep_class, m.parts[3]::date as day,
           format('%s_k%s_%s', m.parts[1], m.parts[2],
                  to_char(m.parts[3]::date - days, 'YYYYMMDD')) as moved
    from (select c.relname as leaf, regexp_match(c.relname,
            '^(metrics|ticks|rollups|rollup_ticks)_k([0-7])_([0-9]{8})$') as parts
          from pg_inherits i join pg_class c on c.oid = i.inhrelid
          join pg_namespace n on n.oid = c.relnamespace and n.nspname = 'stepwell') m
    where m.parts is not null;
  for leaf in select * from leaves order by day loop
    execute format('alter table stepwell.%I detach partition stepwell.%I', leaf.parent, leaf.leaf);
    execute format('alter table stepwell.%I rename to %I', leaf.leaf, leaf.moved);
    execute format('update stepwell.%I set received_day = received_day - %s', leaf.moved, days);
    execute format('alter table stepwell.%I attach partition stepwell.%I for values from (%s, %L) '
                   'to (%s, %L)', leaf.parent, leaf.moved, leaf.keep_class, leaf.day - days,
                   leaf.keep_class, leaf.day - days + 1);
  end loop;
  -- From segment to segment, in one pass: each day has its own.
  create temporary table moved_rows on commit drop as select * from stepwell.recent_rollups;
  create temporary table moved_ticks on commit drop as select * from stepwell.recent_rollup_ticks;
  update moved_rows set received_day = received_day - days;
  update moved_ticks set received_day = received_day - days;
  for segment in 0..3 loop
    execute format('truncate stepwell.recent_rollups_%s, stepwell.recent_rollup_ticks_%s', segment, segment);
    execute format('insert into stepwell.recent_rollups_%s select * from moved_rows '
                   'where (received_day - date ''1970-01-01'') %% 4 = %s', segment, segment);
    execute format('insert into stepwell.recent_rollup_ticks_%s select * from moved_ticks '
                   'where (received_day - date ''1970-01-01'') %% 4 = %s', segment, segment);
  end loop;
  update stepwell.recent set received_day = received_day - days;
  update stepwell.recent_ticks set received_day = received_day - days;
  update stepwell.usage_lines set received_day = received_day - 100000;
  update stepwell.usage_lines set received_day = received_day + 100000 - days;
  update stepwell.swept_leaves set received_day = received_day - 100000;
  update stepwell.swept_leaves set received_day = received_day + 100000 - days;
end $do$;
)";

}  // namespace

std::string DatabaseText(const std::string& database_url, const std::string& sql) {
  const std::unique_ptr<PGconn, Finish> connection(PQconnectdb(database_url.c_str()));
  const std::unique_ptr<PGresult, Finish> result(PQexec(connection.get(), sql.c_str()));
  const ExecStatusType status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    return absl::StrCat("failed: ", PQerrorMessage(connection.get()));
  }
  return PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
}

std::string MakeOlder(const std::string& database_url, Age age) {
  const std::string us = absl::StrCat((age.days * 86'400LL + age.seconds) * 1'000'000);
  std::string sql = absl::StrCat(
      "begin; update stepwell.recent_ticks set received_time_us = received_time_us - ", us, ";");
  for (int segment = 0; segment < 8; ++segment) {
    absl::StrAppend(&sql, "update stepwell.journal_", segment,
                    " set received_time_us = received_time_us - ", us, ";");
  }
  if (age.days > 0)
    absl::StrAppend(&sql, "set local stepwell.aged_days = ", age.days, ";", kMoveDays);
  return DatabaseText(database_url, sql + "commit");
}

}  // namespace stepwell::faults
