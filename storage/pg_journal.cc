#include "storage/pg_journal.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/failpoint.h"
#include "base/status_macros.h"
#include "storage/pg_array.h"
#include "storage/pg_copy.h"
#include "storage/pg_ddl.h"
#include "storage/pg_owner.h"
#include "storage/pg_progress.h"

namespace stepwell {
namespace {

constexpr int kJournalColumnCount = 7;
// Rows of a fetch are in memory at once, each at most kJournalRowBytes and a little.
constexpr char kFetchRows[] = "fetch 4 from unfolded_rows";
constexpr char kSelectPayload[] = "select payload from %table where ctid = $1::tid";

SqlText Table(int segment) {
  STEPWELL_CHECK(segment >= 0 && segment < JournalRing::kSegmentCount);
  return SqlCat({"stepwell.journal_", SqlInteger(segment)});
}

SqlText AllSegments(SqlPiece select) {
  std::vector<SqlText> each;
  for (int segment = 0; segment < JournalRing::kSegmentCount; ++segment) {
    each.push_back(SqlFill(select, Table(segment)));
  }
  return SqlJoin(each, " union all ");
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
// that pass.
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
         bool_or(r.last_sequence > w.folded_sequence) as unfolded,
         bool_or(num_nulls(r.writer_no, r.generation, r.first_sequence, r.last_sequence) > 0)
           as uneven
  from unnest(j.writer_nos, j.generations, j.first_sequences, j.last_sequences) with ordinality
         as r (writer_no, generation, first_sequence, last_sequence, ordinal)
  left join stepwell.writers w on w.trial_id = j.trial_id and w.writer_no = r.writer_no) f
where f.unfolded or f.uneven
order by j.received_time_us)"});
}

// How many rows the segment has, of the journal and of progress.
SqlText RowsSql(int segment) {
  return SqlCat({"select (select count(*) from ", Table(segment), "), (select count(*) from ",
                 ProgressTable(segment), ")"});
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
    if (lasts[i] <= folded[i]) continue;
    read.ranges.push_back({.writer_no = WriterNo{static_cast<std::int32_t>(writers[i])},
                           .generation = static_cast<std::uint64_t>(generations[i]),
                           .first_sequence = static_cast<std::uint64_t>(firsts[i]),
                           .last_sequence = static_cast<std::uint64_t>(lasts[i]),
                           .folded_sequence = static_cast<std::uint64_t>(folded[i])});
    if (payloads.ok()) read.payloads.push_back(std::move((*payloads)[i]));
  }
  return read;
}

// A page or a value that PostgreSQL cannot read, as opposed to what a caller's function returns.
bool IsDamage(const absl::Status& status) {
  return status.code() == absl::StatusCode::kDataLoss && !SqlState(status).empty();
}

absl::Status ForEachRow(PgConnection& connection, const SqlText& cursor_sql,
                        const std::function<absl::Status(const PgResult&, int)>& row) {
  return connection.InTransaction([&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(connection.ExecScript(cursor_sql));
    while (true) {
      STEPWELL_ASSIGN_OR_RETURN(const PgResult fetched, connection.Exec(kFetchRows));
      if (fetched.row_count() == 0) return absl::OkStatus();
      for (int i = 0; i < fetched.row_count(); ++i) STEPWELL_RETURN_IF_ERROR(row(fetched, i));
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

// The slow way, payload by payload: what is damaged is told, the rest is read.
absl::Status ReadSegmentByRow(PgConnection& connection, int segment,
                              const std::function<absl::Status(JournalRow)>& row) {
  const absl::Status read = ForEachRow(
      connection,
      UnfoldedSql(SqlCat({"(select ctid, * from ", Table(segment), ")"}), "j.ctid::text"),
      [&](const PgResult& fetched, int i) -> absl::Status {
        const auto payload = ReadPayload(connection, segment, fetched.Text(i, 8));
        if (!payload.ok() && !IsDamage(payload.status())) return payload.status();
        if (!payload.ok()) return row(ReadRow(fetched, i, payload.status()));
        return row(ReadRow(fetched, i, payload->Bytes(0, 0)));
      });
  if (!IsDamage(read)) return read;
  JournalRow lost;
  lost.damage = Annotate(read, Table(segment).c_str());
  return row(std::move(lost));
}

void AppendRow(const JournalRowPlan& row, std::int64_t received_time_us, PgCopyRows& copy) {
  std::vector<std::int32_t> writers;
  std::vector<std::int64_t> generations, firsts, lasts;
  for (const WriterAdvance* advance : row.advances) {
    writers.push_back(Value(advance->writer_no));
    generations.push_back(static_cast<std::int64_t>(advance->generation));
    firsts.push_back(static_cast<std::int64_t>(advance->first_sequence));
    lasts.push_back(static_cast<std::int64_t>(advance->last_sequence));
  }
  copy.Int64(Value(row.trial_id))
      .Int64(received_time_us)
      .Int32Array(writers)
      .Int64Array(generations)
      .Int64Array(firsts)
      .Int64Array(lasts)
      .Bytes(JoinPayloads(row));
}

}  // namespace

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

absl::StatusOr<std::array<JournalSegment, JournalRing::kSegmentCount>> ReadJournalSegments(
    PgConnection& connection) {
  const SqlText sql = AllSegments(
      "select count(*), pg_total_relation_size('%table'), coalesce(min(received_time_us), 0), "
      "coalesce(max(received_time_us), 0) from %table");
  STEPWELL_ASSIGN_OR_RETURN(const PgResult result, connection.Exec(sql));
  std::array<JournalSegment, JournalRing::kSegmentCount> segments{};
  for (int i = 0; i < result.row_count(); ++i) {
    const std::int64_t row_count = result.Int64(i, 0);
    // An empty table still has a page or two.
    segments[i] = {.row_count = row_count,
                   .bytes = row_count == 0 ? 0 : result.Int64(i, 1),
                   .first_time_us = result.Int64(i, 2),
                   .last_time_us = result.Int64(i, 3)};
  }
  return segments;
}

absl::Status ReadUnfoldedRows(PgConnection& connection,
                              const std::function<absl::Status(JournalRow)>& row) {
  // What lies beyond committed_sequence is damage: of the writers' rows alone that must be true now.
  for (int segment = 0; segment < JournalRing::kSegmentCount; ++segment) {
    STEPWELL_RETURN_IF_ERROR(CarryProgress(connection, segment));
  }
  const SqlText all = SqlCat({"(", AllSegments("select * from %table"), ")"});
  const absl::Status read =
      ForEachRow(connection, UnfoldedSql(all, "j.payload"), [&](const PgResult& fetched, int i) {
        return row(ReadRow(fetched, i, fetched.Bytes(i, 8)));
      });
  if (!IsDamage(read)) return read;
  for (int segment = 0; segment < JournalRing::kSegmentCount; ++segment) {
    STEPWELL_RETURN_IF_ERROR(ReadSegmentByRow(connection, segment, row));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> TruncateIfFolded(PgConnection& connection, int segment,
                                      std::int64_t owner_epoch) {
  const SqlText rows_sql = RowsSql(segment);
  STEPWELL_ASSIGN_OR_RETURN(const PgResult before, connection.Exec(rows_sql));
  const SqlText unfolded_sql = UnfoldedSequencesSql(segment);
  const absl::Status carried = InDdlTransaction(connection, [&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(CheckMaster(connection, owner_epoch));
    STEPWELL_RETURN_IF_ERROR(CarryProgress(connection, segment));
    return failpoint::Check("carry_progress_before_commit");
  });
  if (IsLockTimeout(carried)) return false;
  STEPWELL_RETURN_IF_ERROR(carried);
  STEPWELL_FAILPOINT("carry_progress_after_commit");
  STEPWELL_ASSIGN_OR_RETURN(const PgResult unfolded, connection.Exec(unfolded_sql));
  if (unfolded.Bool(0, 0)) return false;
  // All of that took its time without a lock on the segment; under it, nothing new may have come.
  const SqlText tables = SqlCat({Table(segment), ", ", ProgressTable(segment)});
  bool truncated = false;
  const absl::Status status = InDdlTransaction(connection, [&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(CheckMaster(connection, owner_epoch));
    STEPWELL_RETURN_IF_ERROR(
        connection.ExecScript(SqlCat({"lock table ", tables, " in access exclusive mode"})));
    STEPWELL_ASSIGN_OR_RETURN(const PgResult now, connection.Exec(rows_sql));
    truncated = now.Int64(0, 0) == before.Int64(0, 0) && now.Int64(0, 1) == before.Int64(0, 1);
    if (!truncated) return absl::OkStatus();
    STEPWELL_RETURN_IF_ERROR(connection.ExecScript(SqlCat({"truncate ", tables})));
    return failpoint::Check("recycle_journal_before_commit");
  });
  if (IsLockTimeout(status)) return false;
  STEPWELL_RETURN_IF_ERROR(status);
  if (truncated) STEPWELL_FAILPOINT("recycle_journal_after_commit");
  return truncated;
}

}  // namespace stepwell
