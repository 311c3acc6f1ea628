#include "bench/rivals/copy_limit.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/load/bench_run.h"
#include "storage/pg_row_copy.h"
#include "tests/support/sql_of.h"

namespace stepwell::bench {
namespace {

constexpr std::size_t kSamplesPerRow = 1000;
constexpr std::int64_t kSamplesPerCommit = 50'000;
// No leaf of the master's has this class.
constexpr std::int16_t kKeepClass = 99;

TickTable Cut(const TickTable& table, std::size_t first, std::size_t end) {
  const auto cut = [&](const auto& all) {
    return std::decay_t<decltype(all)>(all.begin() + static_cast<std::ptrdiff_t>(first),
                                       all.begin() + static_cast<std::ptrdiff_t>(end));
  };
  TickTable piece;
  piece.tick_group = table.tick_group;
  piece.times_us = cut(table.times_us);
  piece.batches = cut(table.batches);
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    piece.columns.push_back({.series_no = SeriesNo{static_cast<std::int32_t>(i + 1)},
                             .values = cut(table.columns[i].values),
                             .presence = {}});
  }
  return piece;
}

void Commit(PgConnection& connection, RowCopy& rows) {
  DieUnless(connection.ExecScript("begin"));
  DieUnless(rows.Send(connection));
  DieUnless(connection.ExecScript("commit"));
}

}  // namespace

SeeTicks CopyLimit::Adder() {
  return [this](const TickRange& ticks, const std::vector<LoadSeries>&, std::size_t) {
    for (std::size_t at = ticks.first; at < ticks.end; at += kSamplesPerRow) {
      tables_.push_back(Cut(ticks.table, at, std::min(at + kSamplesPerRow, ticks.end)));
      sample_count_ +=
          static_cast<std::int64_t>(tables_.back().times_us.size() * tables_.back().columns.size());
    }
  };
}

double CopyLimit::Measure(PgConnection& connection) {
  for (const char* table : {"metrics", "ticks"}) {
    const std::string own = absl::StrCat("stepwell.", LeafName(table, kKeepClass, 0));
    DieUnless(connection.ExecScript(
        SqlOf(absl::StrCat("drop table if exists ", own, "; create table ", own, " (like stepwell.",
                           table, " including storage)"))));
  }
  DieUnless(connection.ExecScript("checkpoint"));
  RowCopy rows = RowCopy::ForLeaf(kKeepClass, 0);
  RowPlace place{.trial_id = TrialId{1}, .writer_no = WriterNo{1}, .keep_class = kKeepClass};
  std::int64_t waiting = 0;
  const absl::Time begin = absl::Now();
  for (const TickTable& table : tables_) {
    for (const EncodedTicks& ticks : EncodeTicks(table)) {
      ++place.tick_no;
      std::vector<std::int32_t> series;
      for (const EncodedColumn& column : ticks.columns) {
        series.push_back(Value(column.series_no));
        rows.AddColumn(place, nullptr, column);
        waiting += column.sample_count;
      }
      rows.AddTicks(place, nullptr, ticks, series);
    }
    if (waiting < kSamplesPerCommit) continue;
    Commit(connection, rows);
    waiting = 0;
  }
  if (waiting > 0) Commit(connection, rows);
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  for (const char* table : {"metrics", "ticks"}) {
    DieUnless(connection.ExecScript(
        SqlOf(absl::StrCat("drop table stepwell.", LeafName(table, kKeepClass, 0)))));
  }
  return static_cast<double>(sample_count_) / seconds;
}

}  // namespace stepwell::bench
