#include "tests/support/row_writer.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "storage/pg_row_copy.h"
#include "storage/series_labels.h"
#include "storage/vector_codec.h"
#include "tests/support/encoded_params.h"
#include "tests/support/postgres.h"
#include "tests/support/sql_of.h"

namespace stepwell::testing {
namespace {

constexpr char kTicksColumns[] =
    "trial_id, writer_no, tick_no, keep_class, received_day, tick_group, tick_count, "
    "first_time_us, last_time_us, first_batch, last_batch, "
    "time_form, time_width, time_width2, time_base, time_factor, time_bits, time_bits2, "
    "time_dictionary, batch_form, batch_width, batch_width2, batch_base, batch_factor, "
    "batch_bits, batch_bits2, batch_dictionary";
constexpr char kRowColumns[] =
    "trial_id, writer_no, tick_no, keep_class, received_day, series_no, first_time_us, "
    "last_time_us, first_batch, last_batch, sample_count, nan_count, min, max, sum, last, "
    "presence, form, width, width2, divisor_exponent, base, factor, bits, bits2, dictionary, raw";

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << "row_writer: " << status << std::endl;
  std::abort();
}

// Least and greatest batch, -1 = none.
std::pair<std::int32_t, std::int32_t> BatchSpan(const std::vector<std::int32_t>& batches) {
  std::pair<std::int32_t, std::int32_t> span = {-1, -1};
  for (const std::int32_t batch : batches) {
    if (batch < 0) continue;
    span.first = span.first < 0 ? batch : std::min(span.first, batch);
    span.second = std::max(span.second, batch);
  }
  return span;
}

std::string Placeholders(std::size_t count) {
  std::vector<std::string> all;
  for (std::size_t i = 1; i <= count; ++i) all.push_back(absl::StrCat("$", i));
  return absl::StrJoin(all, ", ");
}

BitString PresenceBits(const std::vector<std::uint8_t>& presence) {
  BitString bits;
  bits.bit_count = presence.size();
  bits.bytes.resize((presence.size() + 7) / 8);
  for (std::size_t i = 0; i < presence.size(); ++i) {
    if (presence[i] != 0) {
      bits.bytes[i / 8] = static_cast<char>(bits.bytes[i / 8] | (0x80 >> (i % 8)));
    }
  }
  return bits;
}

struct Statistics {
  std::int64_t first_time_us = INT64_MAX;
  std::int64_t last_time_us = INT64_MIN;
  std::vector<std::int32_t> batches;
  std::int32_t nan_count = 0;
  double min = INFINITY;
  double max = -INFINITY;
  double sum = 0;
  double last = 0;
};

Statistics StatisticsOf(const TickTable& table, const TickColumn& column) {
  Statistics all;
  std::size_t value = 0;
  for (std::size_t tick = 0; tick < table.times_us.size(); ++tick) {
    if (!column.presence.empty() && column.presence[tick] == 0) continue;
    all.first_time_us = std::min(all.first_time_us, table.times_us[tick]);
    all.last_time_us = std::max(all.last_time_us, table.times_us[tick]);
    all.batches.push_back(table.batches[tick]);
    const double sample = column.values[value++];
    if (std::isnan(sample)) {
      ++all.nan_count;
      continue;
    }
    all.min = std::min(all.min, sample);
    all.max = std::max(all.max, sample);
    all.sum += sample;
    all.last = sample;
  }
  return all;
}

}  // namespace

RowWriter::RowWriter(const std::string& url) : connection_(Connect(url)) {}

void RowWriter::Run(const std::string& script) { Check(connection_->ExecScript(SqlOf(script))); }

void RowWriter::AddTrial(std::int64_t trial_id, std::int32_t attempt_count) {
  Run(absl::StrCat(
      "insert into stepwell.trials (trial_id, project_id, external_id, owner_epoch, "
      "attempt_count, writer_count) values (",
      trial_id, ", 1, 'run-", trial_id, "', 1, ", attempt_count, ", ", attempt_count, ")"));
  for (std::int32_t attempt = 1; attempt <= attempt_count; ++attempt) {
    Run(
        absl::StrCat("insert into stepwell.writers (trial_id, generation, writer_no, attempt, "
                     "rank, state, writer) values (",
                     trial_id, ", 1, ", attempt, ", ", attempt, ", 0, 1, gen_random_uuid())"));
  }
}

void RowWriter::AddSeries(std::int64_t trial_id, const Series& series) {
  const SeriesDefinition& definition = series.definition;
  Check(connection_
            ->Exec("insert into stepwell.series (trial_id, series_no, kind, metric_group, name, "
                   "unit, labels, labels_hash) values ($1, $2, $3, $4, $5, $6, $7, $8)",
                   {trial_id, Value(series.series_no), static_cast<std::int16_t>(definition.kind),
                    definition.key.metric_group, definition.key.name, definition.unit,
                    PgJsonb{LabelsJson(definition.key.labels)},
                    PgBytes{LabelsHash(definition.key.labels)}})
            .status());
}

void RowWriter::AddLeaf(std::int16_t keep_class, std::int32_t received_day) {
  if (!leaves_.insert({keep_class, received_day}).second) return;
  if (keep_class != 0) {
    Run(absl::StrCat("insert into stepwell.keep_classes values (", keep_class,
                     ", null, null) on conflict do nothing"));
  }
  for (const char* table : {"metrics", "ticks"}) {
    const auto bound = [&](std::int32_t day) {
      return absl::StrCat("(", keep_class, ", (date '1970-01-01' + ", day, "))");
    };
    Run(absl::StrCat("create table stepwell.", LeafName(table, keep_class, received_day),
                     " partition of stepwell.", table, " for values from ", bound(received_day),
                     " to ", bound(received_day + 1)));
  }
}

void RowWriter::AddMerged(const Place& place, const TickTable& table) {
  AddLeaf(place.keep_class, place.received_day);
  const std::int64_t tick_no = ++tick_no_;
  AddTicks(place, table, false, tick_no);
  for (const TickColumn& column : table.columns) AddColumn(place, table, column, false, tick_no);
}

void RowWriter::AddRecent(const Place& place, const TickTable& table) {
  AddLeaf(place.keep_class, place.received_day);
  const std::int64_t tick_no = ++tick_no_;
  AddTicks(place, table, true, tick_no);
  for (const TickColumn& column : table.columns) AddColumn(place, table, column, true, tick_no);
}

void RowWriter::AddTicks(const Place& place, const TickTable& table, bool recent,
                         std::int64_t tick_no) {
  const auto [first_batch, last_batch] = BatchSpan(table.batches);
  std::vector<PgParam> params = {place.trial_id,
                                 place.writer_no,
                                 tick_no,
                                 place.keep_class,
                                 PgDate{place.received_day},
                                 static_cast<std::int32_t>(table.tick_group),
                                 static_cast<std::int32_t>(table.times_us.size()),
                                 table.times_us.front(),
                                 table.times_us.back(),
                                 first_batch,
                                 last_batch};
  AppendInteger(EncodeIntegers(table.times_us), params);
  const std::vector<std::int64_t> batches(table.batches.begin(), table.batches.end());
  AppendInteger(EncodeIntegers(batches), params);
  std::string columns = kTicksColumns;
  std::string values = Placeholders(params.size());
  if (recent) {
    std::vector<std::int32_t> series_nos;
    for (const TickColumn& column : table.columns) series_nos.push_back(Value(column.series_no));
    absl::StrAppend(&columns, ", segment, fold_no, received_time_us, series_nos");
    absl::StrAppend(&values, ", 1, ", place.fold_no, ", 0, '{", absl::StrJoin(series_nos, ","),
                    "}'");
  }
  const std::string sql = absl::StrCat("insert into stepwell.", recent ? "recent_ticks" : "ticks",
                                       " (", columns, ") values (", values, ")");
  Check(connection_->Exec(SqlOf(sql), params).status());
}

void RowWriter::AddColumn(const Place& place, const TickTable& table, const TickColumn& column,
                          bool recent, std::int64_t tick_no) {
  const Statistics all = StatisticsOf(table, column);
  const auto [first_batch, last_batch] = BatchSpan(all.batches);
  const auto sample_count = static_cast<std::int32_t>(all.batches.size());
  const auto number = [&](double value) {
    return all.nan_count == sample_count ? PgParam::Null(PgOid::kFloat8) : PgParam(value);
  };
  std::vector<PgParam> params = {place.trial_id,
                                 place.writer_no,
                                 tick_no,
                                 place.keep_class,
                                 PgDate{place.received_day},
                                 Value(column.series_no),
                                 all.first_time_us,
                                 all.last_time_us,
                                 first_batch,
                                 last_batch,
                                 sample_count,
                                 all.nan_count,
                                 number(all.min),
                                 number(all.max),
                                 number(all.sum),
                                 number(all.last),
                                 BitsParam(PresenceBits(column.presence))};
  AppendValue(EncodeValues(column.values), params);
  std::string columns = kRowColumns;
  if (recent) {
    absl::StrAppend(&columns, ", segment, fold_no");
    params.insert(params.end(), {std::int16_t{1}, place.fold_no});
  }
  const std::string sql = absl::StrCat("insert into stepwell.", recent ? "recent" : "metrics", " (",
                                       columns, ") values (", Placeholders(params.size()), ")");
  Check(connection_->Exec(SqlOf(sql), params).status());
  Check(
      connection_
          ->Exec(
              "insert into stepwell.usage_lines as u select $1, $2, $3, metric_group, 1, $4, 100, "
              "$5, $6 from stepwell.series where trial_id = $1 and series_no = $7 "
              "on conflict (trial_id, received_day, keep_class, metric_group) do update set "
              "row_count = u.row_count + 1, sample_count = u.sample_count + "
              "excluded.sample_count, first_time_us = least(u.first_time_us, "
              "excluded.first_time_us), last_time_us = greatest(u.last_time_us, "
              "excluded.last_time_us)",
              {place.trial_id, PgDate{place.received_day}, place.keep_class,
               std::int64_t{sample_count}, all.first_time_us, all.last_time_us,
               Value(column.series_no)})
          .status());
}

}  // namespace stepwell::testing
