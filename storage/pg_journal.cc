#include "storage/pg_journal.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/pg_array.h"
#include "storage/pg_copy.h"
#include "storage/pg_ddl.h"
#include "storage/pg_error.h"
#include "storage/pg_owner.h"
#include "storage/pg_progress.h"

namespace stepwell {
namespace {

constexpr int kJournalColumnCount = 7;
// Of UnfoldedSql.
constexpr int kLastColumn = 8;
// Rows of a fetch are in memory at once. Most have kJournalRowBytes at most, some are a chunk of megabytes.
constexpr int kFetchRowsMin = 4;
constexpr int kFetchRowsMax = 16;
// Of a segment that grew to gigabytes behind a lock that somebody held for an hour.
constexpr char kAllowLongScans[] = "set local statement_timeout = '3min'";
constexpr absl::Duration kScanReplyTimeout = absl::Minutes(4);
constexpr char kSelectPayload[] = "select payload from %table where ctid = $1::tid";

// Of the first and the last pages: a start must not wait until all payloads were read. Rows lie in the order in
// which they came, but for those of neighbouring commits, and there is about one in a page.
constexpr char kLookAtSegment[] = R"(
with size as (
  select pg_relation_size('%table') / current_setting('block_size')::bigint as pages
), first as (
  select received_time_us from %table limit 1
)
select exists (select from first), greatest(size.pages, 1), pg_total_relation_size('%table'),
  coalesce((select received_time_us from first), 0),
  coalesce((select max(received_time_us) from %table
            where ctid >= format('(%s,0)', greatest(size.pages - 16, 0))::tid),
           (select received_time_us from first), 0)
from size)";

SqlText Table(int segment) {
  STEPWELL_CHECK(segment >= 0 && segment < JournalRing::kSegmentCount);
  return SqlCat({"stepwell.journal_", SqlInteger(segment)});
}

// Put together once: each commit copies rows.
const SqlText& CopySql(int segment) {
  static const auto texts = [] {
    std::array<SqlText, JournalRing::kSegmentCount> made;
    for (int i = 0; i < JournalRing::kSegmentCount; ++i) {
      made[static_cast<std::size_t>(i)] =
          SqlCat({"copy ", Table(i),
                  " (trial_id, received_time_us, writer_nos, generations, first_sequences, "
                  "last_sequences, payload) from stdin (format binary)"});
    }
    return made;
  }();
  return texts.at(static_cast<std::size_t>(segment));
}

// `from` is a table, or a select in parentheses; `last_column` is read beside the lists. A writer
// that is gone (its trial was deleted) has nothing left to fold. Lists that are not of one length
// are filled with zeros and told. Payloads are fetched from their TOAST table only for the rows
// that pass. In no order, so that nothing is sorted, which would write all that does not fit memory.
SqlText UnfoldedSql(const SqlText& from, SqlPiece last_column) {
  return SqlCat({R"(
declare unfolded_rows no scroll cursor for
select j.trial_id, j.received_time_us, f.writer_nos, f.generations, f.first_sequences,
       f.last_sequences, f.folded_sequences, f.uneven, )",
                 last_column, " from ", from, R"( j
cross join lateral (
  select array_agg(coalesce(r.writer_no, 0) order by r.ordinal) as writer_nos,
         array_agg(coalesce(r.generation, 0) order by r.ordinal) as generations,
         array_agg(coalesce(r.first_sequence, 0) order by r.ordinal) as first_sequences,
         array_agg(coalesce(least(r.last_sequence, w.committed_sequence), 0) order by r.ordinal)
           as last_sequences,
         array_agg(coalesce(w.folded_sequence, r.last_sequence, 0) order by r.ordinal)
           as folded_sequences,
         bool_or(r.last_sequence > w.folded_sequence and r.first_sequence <= w.committed_sequence) as unfolded,
         bool_or(num_nulls(r.writer_no, r.generation, r.first_sequence, r.last_sequence) > 0)
           as uneven
  from unnest(j.writer_nos, j.generations, j.first_sequences, j.last_sequences) with ordinality
         as r (writer_no, generation, first_sequence, last_sequence, ordinal)
  left join stepwell.writers w on w.trial_id = j.trial_id and w.writer_no = r.writer_no) f
where f.unfolded or f.uneven)"});
}

// Whether the segment of progress tells anything that was not carried: it came since.
SqlText UncarriedSql(int segment) {
  return SqlCat(
      {"select exists (select from ", ProgressTable(segment),
       " p join stepwell.writers w on w.trial_id = p.trial_id and w.writer_no = p.writer_no "
       "where p.committed_sequence > w.committed_sequence)"});
}

// Whether any writer's newest sequence in the segment is not folded yet. What the
// segment of progress tells is carried before: a number beyond that is damage.
SqlText UnfoldedSequencesSql(int segment) {
  return SqlCat({R"(
select exists (
  select from (
    select j.trial_id, r.writer_no, max(r.last_sequence) as last_sequence
    from )",
                 Table(segment), R"( j
    cross join lateral unnest(j.writer_nos, j.last_sequences) as r (writer_no, last_sequence)
    group by 1, 2) newest
  join stepwell.writers w
    on w.trial_id = newest.trial_id and w.writer_no = newest.writer_no
  where least(newest.last_sequence, w.committed_sequence) > w.folded_sequence))"});
}

// `joined` is the payload, or why there is none.
JournalRow ReadRow(const PgResult& result, int row, absl::StatusOr<std::string_view> joined) {
  JournalRow read;
  read.trial_id = TrialId{result.Int64(row, 0)};
  read.received_time_us = result.Int64(row, 1);
  const auto writers = result.Int64Array(row, 2);
  const auto generations = result.Int64Array(row, 3);
  const auto firsts = result.Int64Array(row, 4);
  const auto lasts = result.Int64Array(row, 5);
  const auto folded = result.Int64Array(row, 6);
  absl::StatusOr<std::vector<std::string>> payloads =
      absl::DataLossError("journal row: its lists are not of one length");
  if (!joined.ok()) {
    payloads = joined.status();
  } else if (!result.Bool(row, 7)) {
    payloads = SplitPayloads(*joined, writers.size());
  }
  read.damage = payloads.status();
  for (std::size_t i = 0; i < writers.size(); ++i) {
    // The second: committed since the caller looked, and not carried. It is in heads.
    if (lasts[i] <= folded[i] || lasts[i] < firsts[i]) continue;
    read.ranges.push_back({.writer_no = WriterNo{static_cast<std::int32_t>(writers[i])},
                           .generation = static_cast<std::uint64_t>(generations[i]),
                           .first_sequence = static_cast<std::uint64_t>(firsts[i]),
                           .last_sequence = static_cast<std::uint64_t>(lasts[i]),
                           .folded_sequence = static_cast<std::uint64_t>(folded[i])});
    if (payloads.ok()) read.payloads.push_back(std::move((*payloads)[i]));
  }
  return read;
}

// How many rows the next fetch takes after one of `fetched`: few while any is longer than commits write them, for
// those of releases before have megabytes.
int NextFetch(const PgResult& fetched) {
  for (int i = 0; i < fetched.row_count(); ++i) {
    if (fetched.type(kLastColumn) == PgOid::kBytea &&
        fetched.Bytes(i, kLastColumn).size() > kJournalRowBytes) {
      return kFetchRowsMin;
    }
  }
  return std::min(fetched.row_count() * 2, kFetchRowsMax);
}

absl::Status ForEachRow(PgConnection& connection, const SqlText& cursor_sql,
                        const std::function<absl::Status(const PgResult&, int)>& row) {
  return connection.InTransaction([&]() -> absl::Status {
    // A few pages are read from their beginning to their end rather than by ctid: not by this.
    STEPWELL_RETURN_IF_ERROR(connection.ExecScript("set local enable_seqscan = off"));
    STEPWELL_RETURN_IF_ERROR(connection.ExecScript(cursor_sql));
    for (int count = kFetchRowsMin;;) {
      const SqlText fetch = SqlCat({"fetch ", SqlInteger(count), " from unfolded_rows"});
      STEPWELL_ASSIGN_OR_RETURN(const PgResult fetched, connection.Exec(fetch));
      if (fetched.row_count() == 0) return absl::OkStatus();
      for (int i = 0; i < fetched.row_count(); ++i) STEPWELL_RETURN_IF_ERROR(row(fetched, i));
      count = NextFetch(fetched);
    }
  });
}

// One payload, without harm to the transaction when it cannot be read.
absl::StatusOr<PgResult> ReadPayload(PgConnection& connection, int segment, std::string_view ctid) {
  const SqlText sql = SqlFill(kSelectPayload, Table(segment));
  STEPWELL_RETURN_IF_ERROR(connection.ExecScript("savepoint before_payload"));
  auto read = connection.Exec(sql, {std::string(ctid)});
  if (read.ok() && read->row_count() != 1) return absl::InternalError("a journal row went away");
  if (!read.ok() && !IsDamage(read.status())) return read;
  STEPWELL_RETURN_IF_ERROR(connection.ExecScript(
      read.ok() ? SqlText("release before_payload") : SqlText("rollback to before_payload")));
  return read;
}

// Of `rows`, a part of the segment: payload by payload. What is damaged is told, the rest is read.
absl::Status ReadByPayload(PgConnection& connection, int segment, const SqlText& rows,
                           const std::function<absl::Status(JournalRow)>& row) {
  return ForEachRow(connection, UnfoldedSql(rows, "j.ctid::text"),
                    [&](const PgResult& fetched, int i) -> absl::Status {
                      const auto payload =
                          ReadPayload(connection, segment, fetched.Text(i, kLastColumn));
                      if (!payload.ok() && !IsDamage(payload.status())) return payload.status();
                      if (!payload.ok()) return row(ReadRow(fetched, i, payload.status()));
                      return row(ReadRow(fetched, i, payload->Bytes(0, 0)));
                    });
}

// The slowest way: a page that cannot be read costs its own rows alone.
absl::Status ReadByPage(PgConnection& connection, int segment,
                        const std::function<absl::Status(JournalRow)>& row) {
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult size,
      connection.Exec(SqlCat({"select pg_relation_size(", SqlQuoted(Table(segment)),
                              ") / current_setting('block_size')::bigint"})));
  for (std::int64_t page = 0; page < size.Int64(0, 0); ++page) {
    const SqlText rows =
        SqlCat({"(select ctid, * from ", Table(segment), " where ctid >= '(", SqlInteger(page),
                ",0)' and ctid < '(", SqlInteger(page + 1), ",0)')"});
    const absl::Status read = ReadByPayload(connection, segment, rows, row);
    if (read.ok()) continue;
    if (!IsDamage(read)) return read;
    JournalRow lost;
    lost.damage = Annotate(read, absl::StrCat(Table(segment).c_str(), " page ", page));
    STEPWELL_RETURN_IF_ERROR(row(std::move(lost)));
  }
  return absl::OkStatus();
}

// The quick way, and the slower ones where PostgreSQL cannot read something.
absl::Status ReadSegment(PgConnection& connection, int segment,
                         const std::function<absl::Status(JournalRow)>& row) {
  const absl::Status read = ForEachRow(
      connection, UnfoldedSql(Table(segment), "j.payload"), [&](const PgResult& fetched, int i) {
        return row(ReadRow(fetched, i, fetched.Bytes(i, kLastColumn)));
      });
  if (!IsDamage(read)) return read;
  const SqlText all = SqlCat({"(select ctid, * from ", Table(segment), ")"});
  const absl::Status by_payload = ReadByPayload(connection, segment, all, row);
  return IsDamage(by_payload) ? ReadByPage(connection, segment, row) : by_payload;
}

// By the first row of each; those that cannot be read, and empty ones, come last.
absl::StatusOr<std::vector<int>> OldestFirst(PgConnection& connection) {
  std::vector<std::pair<std::int64_t, int>> found;
  for (int segment = 0; segment < JournalRing::kSegmentCount; ++segment) {
    const auto first =
        connection.Exec(SqlCat({"select received_time_us from ", Table(segment), " limit 1"}));
    if (!first.ok() && !IsUnreadable(first.status())) return first.status();
    const bool has_any = first.ok() && first->row_count() == 1;
    found.emplace_back(has_any ? first->Int64(0, 0) : INT64_MAX, segment);
  }
  std::sort(found.begin(), found.end());
  std::vector<int> segments;
  for (const auto& [time_us, segment] : found) segments.push_back(segment);
  return segments;
}

void AppendRow(const JournalRowPlan& row, std::int64_t received_time_us, PgCopyRows& copy) {
  std::vector<std::int32_t> writers;
  std::vector<std::int64_t> generations, firsts, lasts;
  for (const JournalRange& range : row.ranges) {
    writers.push_back(Value(range.advance->writer_no));
    generations.push_back(static_cast<std::int64_t>(range.advance->generation));
    firsts.push_back(static_cast<std::int64_t>(range.first_sequence));
    lasts.push_back(static_cast<std::int64_t>(range.last_sequence));
  }
  copy.Int64(Value(row.trial_id))
      .Int64(received_time_us)
      .Int32Array(writers)
      .Int64Array(generations)
      .Int64Array(firsts)
      .Int64Array(lasts)
      .Bytes(JoinPayloads(row));
}

// While it lives, statements on the connection may take minutes. Commits go on meanwhile, as long as what waits for its
// fold has room.
class LongScans {
 public:
  explicit LongScans(PgConnection& connection)
      : connection_(connection), reply_timeout_(connection.reply_timeout()) {
    connection_.set_reply_timeout(kScanReplyTimeout);
  }
  LongScans(const LongScans&) = delete;
  LongScans& operator=(const LongScans&) = delete;
  ~LongScans() { connection_.set_reply_timeout(reply_timeout_); }

  // In a transaction.
  absl::Status Allow() const { return connection_.ExecScript(kAllowLongScans); }

 private:
  PgConnection& connection_;
  const absl::Duration reply_timeout_;
};

}  // namespace

bool IsDamage(const absl::Status& status) {
  return status.code() == absl::StatusCode::kDataLoss && !SqlState(status).empty();
}

absl::StatusOr<std::int64_t> CopyJournalRows(PgConnection& connection, int segment,
                                             std::int64_t received_time_us,
                                             const std::vector<JournalRowPlan>& rows,
                                             const std::function<absl::Status()>& before_send) {
  PgCopyRows copy(kJournalColumnCount);
  for (const JournalRowPlan& row : rows) AppendRow(row, received_time_us, copy);
  const std::string data = copy.Take();
  STEPWELL_RETURN_IF_ERROR(before_send());
  STEPWELL_RETURN_IF_ERROR(connection.CopyIn(CopySql(segment), data).status());
  return static_cast<std::int64_t>(data.size());
}

absl::StatusOr<JournalSegment> ReadJournalSegment(PgConnection& connection, int segment) {
  const auto read = connection.Exec(SqlFill(kLookAtSegment, Table(segment)));
  if (IsUnreadable(read.status())) {
    LogDamagedSegment(segment, read.status());
    return JournalSegment{.is_damaged = true};
  }
  STEPWELL_RETURN_IF_ERROR(read.status());
  // An empty table still has a page or two.
  if (!read->Bool(0, 0)) return JournalSegment{};
  return JournalSegment{.row_count = read->Int64(0, 1),
                        .bytes = read->Int64(0, 2),
                        .first_time_us = read->Int64(0, 3),
                        .last_time_us = read->Int64(0, 4)};
}

absl::StatusOr<std::array<JournalSegment, JournalRing::kSegmentCount>> ReadJournalSegments(
    PgConnection& connection) {
  std::array<JournalSegment, JournalRing::kSegmentCount> segments{};
  for (std::size_t i = 0; i < segments.size(); ++i) {
    STEPWELL_ASSIGN_OR_RETURN(segments[i], ReadJournalSegment(connection, static_cast<int>(i)));
  }
  return segments;
}

void LogDamagedSegment(int segment, const absl::Status& why) {
  log::Error("journal_segment_damaged", {{"segment", segment}, {"status", why.ToString()}});
}

absl::Status ReadUnfoldedRows(PgConnection& connection,
                              const std::function<absl::Status(JournalRow)>& row) {
  // What lies beyond committed_sequence is damage: of the writers' rows alone that must be true now.
  for (int segment = 0; segment < JournalRing::kSegmentCount; ++segment) {
    STEPWELL_RETURN_IF_ERROR(CarryProgress(connection, segment));
  }
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<int> segments, OldestFirst(connection));
  absl::Status unanswered;
  for (const int segment : segments) {
    const absl::Status read = ReadSegment(connection, segment, row);
    // The disk does not answer there: the others first, and all again when the caller comes again.
    if (!IsUnreadable(read)) STEPWELL_RETURN_IF_ERROR(read);
    unanswered.Update(read);
  }
  return unanswered;
}

absl::StatusOr<bool> TruncateIfFolded(PgConnection& connection, int segment,
                                      std::int64_t owner_epoch) {
  const SqlText tables = SqlCat({Table(segment), ", ", ProgressTable(segment)});
  // While somebody reads it nothing is gone through in vain, nor does anybody queue up behind this.
  const absl::Status free = InDdlTransaction(connection, [&] {
    return connection.ExecScript(
        SqlCat({"lock table ", tables, " in access exclusive mode nowait"}));
  });
  if (IsLockTimeout(free)) return false;
  STEPWELL_RETURN_IF_ERROR(free);
  const LongScans scans(connection);
  // Who owns the database is asked last, behind the writers' rows (pg_sql.h says why that makes no circle): a take-over waits
  // for who has asked, and a segment that grew while nothing could be emptied takes a minute to go through. What is carried is
  // so, whoever carries it.
  const absl::Status carried = InDdlTransaction(connection, [&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(scans.Allow());
    STEPWELL_RETURN_IF_ERROR(CarryProgress(connection, segment));
    STEPWELL_RETURN_IF_ERROR(CheckMaster(connection, owner_epoch));
    return failpoint::Check("carry_progress_before_commit");
  });
  if (IsLockTimeout(carried)) return false;
  STEPWELL_RETURN_IF_ERROR(carried);
  STEPWELL_FAILPOINT("carry_progress_after_commit");
  bool truncated = false;
  const absl::Status status = InDdlTransaction(connection, [&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(scans.Allow());
    // From here on nothing new comes, and readers go on while all rows are looked at.
    STEPWELL_RETURN_IF_ERROR(
        connection.ExecScript(SqlCat({"lock table ", tables, " in share mode"})));
    for (const SqlText& sql : {UncarriedSql(segment), UnfoldedSequencesSql(segment)}) {
      STEPWELL_ASSIGN_OR_RETURN(const PgResult left, connection.Exec(sql));
      if (left.Bool(0, 0)) return absl::OkStatus();
    }
    STEPWELL_RETURN_IF_ERROR(CheckMaster(connection, owner_epoch));
    STEPWELL_RETURN_IF_ERROR(connection.ExecScript(
        SqlCat({"lock table ", tables, " in access exclusive mode; truncate ", tables})));
    truncated = true;
    return failpoint::Check("recycle_journal_before_commit");
  });
  if (IsLockTimeout(status)) return false;
  STEPWELL_RETURN_IF_ERROR(status);
  if (truncated) STEPWELL_FAILPOINT("recycle_journal_after_commit");
  return truncated;
}

}  // namespace stepwell
