#include "tests/faults/stored_samples.h"

#include <endian.h>
#include <libpq-fe.h>

#include <cstring>
#include <memory>

namespace stepwell::faults {
namespace {

// PostgreSQL counts microseconds from 2000.
constexpr std::int64_t kEpochShiftUs = 946'684'800'000'000;

constexpr char kReadSamples[] =
    "select coalesce((labels->>'rank')::int, -1), batch, \"timestamp\", value "
    "from stepwell.samples((select trial_id from stepwell.trials where external_id = $1), $2, $3)";
// Gaps of no writer concern all ranks: -1.
constexpr char kReadGaps[] =
    "select coalesce(w.rank, -1), g.metric_group, g.sample_count, g.first_time_us, g.last_time_us, "
    "g.cause::int, g.first_sequence, g.last_sequence, g.reason, g.writer_no from stepwell.gaps g "
    "left join stepwell.writers w using (trial_id, writer_no) "
    "where g.trial_id = (select trial_id from stepwell.trials where external_id = $1) "
    "order by g.gap_no";

struct Finish {
  void operator()(PGconn* connection) const { PQfinish(connection); }
  void operator()(PGresult* result) const { PQclear(result); }
};
using Connection = std::unique_ptr<PGconn, Finish>;
using Result = std::unique_ptr<PGresult, Finish>;

std::int64_t Int64(const Result& result, int row, int column) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, PQgetvalue(result.get(), row, column), sizeof(bytes));
  return static_cast<std::int64_t>(be64toh(bytes));
}

std::int32_t Int32(const Result& result, int row, int column) {
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, PQgetvalue(result.get(), row, column), sizeof(bytes));
  return static_cast<std::int32_t>(be32toh(bytes));
}

std::string Text(const Result& result, int row, int column) {
  return {PQgetvalue(result.get(), row, column),
          static_cast<std::size_t>(PQgetlength(result.get(), row, column))};
}

// Null with the reason in `error`.
Result Query(const Connection& connection, const char* sql, const std::vector<std::string>& values,
             std::string& error) {
  std::vector<const char*> pointers;
  for (const std::string& value : values) pointers.push_back(value.c_str());
  Result result(PQexecParams(connection.get(), sql, static_cast<int>(values.size()), nullptr,
                             pointers.data(), nullptr, nullptr, /*resultFormat=*/1));
  if (PQresultStatus(result.get()) == PGRES_TUPLES_OK) return result;
  error = PQerrorMessage(connection.get());
  return nullptr;
}

void TakeSamples(const Result& result, const std::string& series, StoredTrial& stored) {
  for (int row = 0; row < PQntuples(result.get()); ++row) {
    StoredSample& sample = stored.samples.emplace_back();
    sample.series = series;
    sample.rank = Int32(result, row, 0);
    sample.batch = PQgetisnull(result.get(), row, 1) != 0 ? -1 : Int32(result, row, 1);
    sample.time_us = Int64(result, row, 2) + kEpochShiftUs;
    sample.value_bits = static_cast<std::uint64_t>(Int64(result, row, 3));
  }
}

void TakeGaps(const Result& result, StoredTrial& stored) {
  for (int row = 0; row < PQntuples(result.get()); ++row) {
    const std::int32_t rank = Int32(result, row, 0);
    const int cause = Int32(result, row, 5);
    StoredGap gap;
    if (rank >= 0) gap.rank = rank;
    gap.metric_group = Text(result, row, 1);
    gap.sample_count = Int64(result, row, 2);
    gap.first_time_us = Int64(result, row, 3);
    gap.last_time_us = Int64(result, row, 4);
    gap.cause = static_cast<Cause>(cause);
    stored.gap_texts.push_back(
        "rank " + std::to_string(rank) + " writer " + std::to_string(Int32(result, row, 9)) +
        " cause " + std::to_string(cause) + " samples " + std::to_string(gap.sample_count) +
        " times " + std::to_string(gap.first_time_us) + ".." + std::to_string(gap.last_time_us) +
        " sequences " + std::to_string(Int64(result, row, 6)) + ".." +
        std::to_string(Int64(result, row, 7)) + " " + Text(result, row, 8));
    // Of a clock that is wrong nothing is missing.
    if (gap.cause != Cause::kClock) stored.gaps.push_back(gap);
  }
}

}  // namespace

std::string ReadStoredTrial(const std::string& database_url, const std::string& trial_name,
                            const std::vector<std::string>& series, StoredTrial& stored) {
  const Connection connection(PQconnectdb(database_url.c_str()));
  std::string error = PQerrorMessage(connection.get());
  if (PQstatus(connection.get()) != CONNECTION_OK) return error;
  for (const std::string& name : series) {
    const std::size_t slash = name.find('/');
    const Result rows = Query(connection, kReadSamples,
                              {trial_name, name.substr(0, slash), name.substr(slash + 1)}, error);
    if (rows == nullptr) return error;
    TakeSamples(rows, name, stored);
  }
  const Result gaps = Query(connection, kReadGaps, {trial_name}, error);
  if (gaps == nullptr) return error;
  TakeGaps(gaps, stored);
  return "";
}

}  // namespace stepwell::faults
