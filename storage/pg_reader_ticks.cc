#include "storage/pg_reader_ticks.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "storage/pg_array.h"
#include "storage/pg_reader_sql.h"
#include "storage/vector_codec.h"

namespace stepwell {
namespace {

// In the order of sql::kTickColumns, after the leading column that tells recent from merged.
constexpr int kWriterNo = 1, kTickNo = 2, kKeepClass = 3, kReceivedDay = 4, kTickCount = 5;
constexpr VectorColumns kTimes = {6, 7, 8, 9, 10, -1, 11, 12, 13, -1};
constexpr VectorColumns kBatches = {14, 15, 16, 17, 18, -1, 19, 20, 21, -1};

BitString BitsAt(const PgResult& result, int row, int column) {
  if (result.IsNull(row, column)) return {};
  const PgBits bits = result.Bits(row, column);
  return {std::string(bits.bits), static_cast<std::size_t>(bits.bit_count)};
}

TickKey KeyAt(const PgResult& result, int row, TrialId trial_id) {
  return {.trial_id = trial_id,
          .recent = result.Bool(row, 0),
          .keep_class = static_cast<std::int16_t>(result.Int32(row, kKeepClass)),
          .received_day = result.DateDays(row, kReceivedDay),
          .writer_no = result.Int32(row, kWriterNo),
          .tick_no = result.Int64(row, kTickNo)};
}

// Ticks by their numbers, each by the index, however few rows PostgreSQL believes there to be.
SqlText ArmSql(SqlPiece recent, const SqlText& place, SqlPiece writer_nos, SqlPiece tick_nos) {
  return SqlCat({"select ", recent, ", t.* from unnest(", writer_nos, "::integer[], ", tick_nos,
                 "::bigint[]) as wanted (w, n) cross join lateral (select ", sql::kTickColumns,
                 " from ", place,
                 " and trial_id = $1 and writer_no = wanted.w and tick_no = wanted.n "
                 "offset 0) t"});
}

absl::StatusOr<TickVectors> TicksAt(const PgResult& result, int row) {
  const std::int32_t count = result.Int32(row, kTickCount);
  if (count < 0) return absl::DataLossError("ticks row with a negative count");
  const auto tick_count = static_cast<std::size_t>(count);
  TickVectors ticks;
  STEPWELL_ASSIGN_OR_RETURN(ticks.times_us,
                            DecodeIntegers(VectorAt(result, row, kTimes), tick_count));
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<std::int64_t> batches,
                            DecodeIntegers(VectorAt(result, row, kBatches), tick_count));
  ticks.batches.reserve(batches.size());
  for (const std::int64_t batch : batches) {
    if (batch < -1 || batch > INT32_MAX) return absl::DataLossError("ticks row with a bad batch");
    ticks.batches.push_back(static_cast<std::int32_t>(batch));
  }
  return ticks;
}

}  // namespace

EncodedVector VectorAt(const PgResult& result, int row, const VectorColumns& columns) {
  EncodedVector encoded;
  encoded.form = static_cast<Form>(result.Int32(row, columns.form));
  encoded.width = static_cast<std::int16_t>(result.Int32(row, columns.width));
  if (!result.IsNull(row, columns.width2)) {
    encoded.width2 = static_cast<std::int16_t>(result.Int32(row, columns.width2));
  }
  encoded.base = result.Int64(row, columns.base);
  if (!result.IsNull(row, columns.factor)) encoded.factor = result.Int64(row, columns.factor);
  if (columns.divisor_exponent >= 0 && !result.IsNull(row, columns.divisor_exponent)) {
    encoded.divisor_exponent =
        static_cast<std::int16_t>(result.Int32(row, columns.divisor_exponent));
  }
  encoded.bits = BitsAt(result, row, columns.bits);
  encoded.bits2 = BitsAt(result, row, columns.bits2);
  if (!result.IsNull(row, columns.dictionary)) {
    encoded.dictionary = result.Int64Array(row, columns.dictionary);
  }
  if (columns.raw >= 0 && !result.IsNull(row, columns.raw)) {
    encoded.raw = result.Float64Array(row, columns.raw);
  }
  return encoded;
}

absl::Status PgTickCache::Prepare(const std::vector<TickKey>& keys) {
  ++prepare_count_;
  std::set<TickKey> missing;
  for (const TickKey& key : keys) {
    const auto found = held_.find(key);
    if (found != held_.end()) {
      found->second.used = prepare_count_;
    } else if (auto known = link_.memory().TicksOf(key)) {
      Hold(key, std::move(known));
    } else {
      missing.insert(key);
    }
  }
  if (!missing.empty()) STEPWELL_RETURN_IF_ERROR(Read({missing.begin(), missing.end()}));
  for (const TickKey& key : missing) {
    if (held_.contains(key)) continue;
    return absl::DataLossError(absl::StrCat("trial ", Value(trial_id_), ": ticks ", key.tick_no,
                                            " of writer ", key.writer_no, " are missing"));
  }
  MakeRoom();
  return absl::OkStatus();
}

absl::Status PgTickCache::Read(const std::vector<TickKey>& keys) {
  std::vector<std::int32_t> writer_nos[2];
  std::vector<std::int64_t> tick_nos[2];
  for (const TickKey& key : keys) {
    writer_nos[key.recent ? 1 : 0].push_back(key.writer_no);
    tick_nos[key.recent ? 1 : 0].push_back(key.tick_no);
  }
  std::vector<PgParam> params = {Value(trial_id_), PgArray(writer_nos[0]), PgArray(tick_nos[0]),
                                 PgArray(writer_nos[1]), PgArray(tick_nos[1])};
  const std::vector<SqlText> places = PlacesOf("ticks", leaves_, by_, params);
  std::vector<SqlText> arms;
  if (!writer_nos[0].empty()) {
    for (const SqlText& place : places) arms.push_back(ArmSql("false", place, "$2", "$3"));
  }
  if (!writer_nos[1].empty() || arms.empty()) {
    arms.push_back(ArmSql("true", "stepwell.recent_ticks where true", "$4", "$5"));
  }
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult result,
      link_.RunOne(ReadQuery::kTicks, SqlJoin(arms, " union all "), std::move(params),
                   by_ == LeafPlaces::kNamed ? ReadPlan::kOnce : ReadPlan::kForValues));
  for (int row = 0; row < result.row_count(); ++row) {
    STEPWELL_ASSIGN_OR_RETURN(TickVectors ticks, TicksAt(result, row));
    const TickKey key = KeyAt(result, row, trial_id_);
    auto read = std::make_shared<const TickVectors>(std::move(ticks));
    link_.memory().NoteTicks(key, read, link_.memory_age());
    Hold(key, std::move(read));
  }
  return absl::OkStatus();
}

void PgTickCache::Hold(const TickKey& key, std::shared_ptr<const TickVectors> ticks) {
  Held& held = held_[key];
  if (held.ticks == nullptr) tick_count_ += ticks->times_us.size();
  held = {std::move(ticks), prepare_count_};
}

void PgTickCache::MakeRoom() {
  if (tick_count_ <= kTicksMax) return;
  // Keeps what the present page needs and the younger half of the rest.
  std::vector<std::uint64_t> ages;
  for (const auto& [key, held] : held_) ages.push_back(held.used);
  std::nth_element(ages.begin(), ages.begin() + static_cast<std::ptrdiff_t>(ages.size() / 2),
                   ages.end());
  const std::uint64_t oldest_kept = ages[ages.size() / 2];
  for (auto it = held_.begin(); it != held_.end();) {
    if (it->second.used >= oldest_kept || it->second.used == prepare_count_) {
      ++it;
      continue;
    }
    tick_count_ -= it->second.ticks->times_us.size();
    it = held_.erase(it);
  }
}

std::shared_ptr<const TickVectors> PgTickCache::Find(const TickKey& key) const {
  const auto found = held_.find(key);
  STEPWELL_CHECK(found != held_.end());
  return found->second.ticks;
}

}  // namespace stepwell
