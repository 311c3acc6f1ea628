// Rows as they lie in databases, written here by hand from the words of docs/codec.md and migrations 1 and 4: read by
// PgReader and by the views, whatever folds and merges of today would write. None of them is ever changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/steady_time.h"
#include "storage/pg_leaves.h"
#include "storage/pg_reader.h"
#include "storage/vector_codec.h"
#include "tests/support/postgres.h"
#include "tests/support/row_writer.h"

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using testing::RowWriter;
using testing::TestPostgres;

constexpr TrialId kTrial{7};
constexpr std::int32_t kDay = 20'000;  // 2024-10-04
constexpr std::int64_t kStartUs = INT64_C(86'400'000'000) * kDay;

// Four ticks, a second apart and a few microseconds late; the third has no batch. The series has no sample on the second.
constexpr char kTicksAndRow[] = R"(
insert into stepwell.ticks (trial_id, tick_no, first_time_us, last_time_us, time_base, time_factor, batch_base,
  batch_factor, writer_no, tick_group, tick_count, first_batch, last_batch, received_day, keep_class, time_form,
  time_width, time_width2, batch_form, batch_width, batch_width2, time_bits, time_bits2, time_dictionary, batch_bits,
  batch_bits2, batch_dictionary)
values (7, 1, 1728000000000003, 1728000003000008, 1728000000000000, 1, 0,
  1, 1, 1, 4, 41, 42, '2024-10-04', 0, 6,
  4, 0, 5, 2, 0, X'30F8', null, '{1000000}', X'62',
  null, '{-1, 41, 42}');
insert into stepwell.metrics (trial_id, tick_no, first_time_us, last_time_us, min, max, sum, last, base, factor,
  series_no, writer_no, first_batch, last_batch, sample_count, nan_count, received_day, keep_class, form, width, width2,
  divisor_exponent, bits, bits2, dictionary, raw, presence)
values (7, 1, 1728000000000003, 1728000003000008, -0.3, 7.2, 10.1, 3.2, -3, 5,
  1, 1, 41, 42, 3, 0, '2024-10-04', 0, 0, 4, 0,
  1, X'0F7', null, null, null, B'1011'))";

// Three buckets of 10 s: 0, 1 and 4 after midnight. The series has samples in the first and the third: maxs and sums are
// counted from the mins, lasts are raw.
constexpr char kRollup[] = R"(
insert into stepwell.rollup_ticks (trial_id, tick_no, first_time_us, last_time_us, writer_no, bucket_count,
  received_day, keep_class, step_seconds, bucket_form, bucket_width, bucket_base, bucket_bits, bucket_dictionary,
  tick_count_form, tick_count_width, tick_count_base, tick_count_bits,
  last_offset_form, last_offset_width, last_offset_base, first_batch_form, first_batch_width, first_batch_base,
  first_batch_dictionary, last_batch_form, last_batch_width, last_batch_base, last_batch_dictionary)
values (7, 2, 1728000001000000, 1728000049000000, 1, 3,
  '2024-10-04', 0, 10, 1, 2, 172800000, X'2', '{1}',
  0, 3, 1, B'100000111',
  0, 0, 9000000, 6, 0, 10,
  '{5}', 6, 0, 14, '{5}');
insert into stepwell.rollups (trial_id, tick_no, first_time_us, last_time_us, series_no, writer_no, bucket_count,
  received_day, keep_class, step_seconds, relative, min_form, min_width, min_base, min_divisor_exponent, min_bits,
  max_form, max_width, max_base, sum_form, sum_width, sum_base, sum_bits,
  last_form, last_width, last_base, last_raw, count_form, count_width, count_base, count_bits,
  nan_count_form, nan_count_width, nan_count_base, nan_count_bits,
  last_lag_form, last_lag_width, last_lag_base, last_lag_bits, last_lag_dictionary, presence)
values (7, 2, 1728000001000000, 1728000049000000, 1, 1, 2,
  '2024-10-04', 0, 10, 3, 0, 2, 5, 2, B'0011',
  0, 0, 2, 0, 2, 1, B'1000',
  4, 0, 0, '{0.0625, -0.0}', 0, 1, 4, B'01',
  0, 1, 0, B'10',
  5, 1, 0, B'10', '{0, 2500000}', B'101'))";

constexpr char kUsage[] = R"(
insert into stepwell.usage_lines (trial_id, received_day, keep_class, metric_group, row_count, sample_count, byte_count,
  first_time_us, last_time_us, rollup_byte_count, has_rollups)
values (7, '2024-10-04', 0, 'g', 1, 3, 1, 1728000000000003, 1728000049000000, 1, true))";

class FrozenRowsTest : public ::testing::Test {
 protected:
  FrozenRowsTest() {
    writer_.AddTrial(7, 1);
    writer_.AddSeries(7, {SeriesNo{1}, {{"g", "s", {}}, "1", SeriesKind::kGauge}});
    EXPECT_TRUE(PgLeaves().Ensure(*connection_, 0, kDay).ok());
    for (const char* rows : {kTicksAndRow, kRollup, kUsage}) writer_.Run(rows);
  }

  std::unique_ptr<ReadSnapshot> Snapshot() {
    auto snapshot = reader_.OpenSnapshot(SteadyTime::Now() + absl::Seconds(20));
    EXPECT_TRUE(snapshot.ok()) << snapshot.status();
    return *std::move(snapshot);
  }

  std::string Text(SqlText sql) {
    const auto answer = connection_->Exec(std::move(sql));
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() && answer->row_count() == 1 ? std::string(answer->Text(0, 0)) : "";
  }

  const std::string url_ = TestPostgres::Get().FreshMigratedDatabase();
  const std::unique_ptr<PgConnection> connection_ = testing::Connect(url_);
  RowWriter writer_{url_};
  PgReader reader_{{.url = url_}};
};

TEST_F(FrozenRowsTest, ARowOnItsTicksIsReadInCpp) {
  const auto snapshot = Snapshot();
  auto cursor = snapshot->ReadRows({.trial_id = kTrial, .series_nos = {1}});
  ASSERT_TRUE(cursor.ok()) << cursor.status();
  const auto row = (*cursor)->Next();
  ASSERT_TRUE(row.ok() && row->has_value()) << row.status();
  EXPECT_THAT((*row)->ticks->times_us, ElementsAre(kStartUs + 3, kStartUs + 1'000'000,
                                                   kStartUs + 2'000'015, kStartUs + 3'000'008));
  EXPECT_THAT((*row)->ticks->batches, ElementsAre(41, 42, -1, 42));
  EXPECT_THAT((*row)->presence, ElementsAre(1, 0, 1, 1));
  const auto values = DecodeValues((*row)->values, 3);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT(*values, ElementsAre(-0.3, 7.2, 3.2));
}

TEST_F(FrozenRowsTest, ARowOnItsTicksIsReadInSql) {
  EXPECT_EQ(
      Text("select string_agg(concat_ws(' ', extract(epoch from s.\"timestamp\") - 1728000000, "
           "coalesce(s.batch::text, 'none'), s.value), '; ' order by s.\"timestamp\") "
           "from stepwell.samples(7) s"),
      "0.000003 41 -0.3; 2.000015 none 7.2; 3.000008 42 3.2");
}

TEST_F(FrozenRowsTest, ARollupOnItsGridIsReadInCpp) {
  const auto snapshot = Snapshot();
  auto cursor = snapshot->ReadRollups({.trial_id = kTrial, .series_nos = {1}, .step_seconds = 10});
  ASSERT_TRUE(cursor.ok()) << cursor.status();
  const auto rollup = (*cursor)->Next();
  ASSERT_TRUE(rollup.ok() && rollup->has_value()) << rollup.status();
  const RollupGrid& grid = *(*rollup)->grid;
  EXPECT_EQ(grid.step_seconds, 10);
  EXPECT_THAT(grid.buckets, ElementsAre(172'800'000, 172'800'001, 172'800'004));
  EXPECT_THAT(grid.tick_counts, ElementsAre(5, 1, 8));
  EXPECT_THAT(grid.last_times_us,
              ElementsAre(kStartUs + 9'000'000, kStartUs + 19'000'000, kStartUs + 49'000'000));
  EXPECT_THAT(grid.first_batches, ElementsAre(10, 15, 20));
  EXPECT_THAT(grid.last_batches, ElementsAre(14, 19, 24));
  const RollupColumn& column = *(*rollup)->column;
  EXPECT_THAT(column.presence, ElementsAre(1, 0, 1));
  EXPECT_THAT(column.counts, ElementsAre(4, 5));
  EXPECT_THAT(column.nan_counts, ElementsAre(1, 0));
  EXPECT_THAT(column.mins, ElementsAre(0.05, 0.08));
  EXPECT_THAT(column.maxs, ElementsAre(0.07, 0.1));
  EXPECT_THAT(column.sums, ElementsAre(0.18, 0.41));
  EXPECT_THAT(column.lasts, ElementsAre(0.0625, -0.0));
  EXPECT_THAT(column.last_lags_us, ElementsAre(2'500'000, 0));
}

TEST_F(FrozenRowsTest, ARollupOnItsGridIsReadInSql) {
  EXPECT_EQ(Text("select concat_ws(' ', array(select extract(epoch from t)::bigint - 1728000000 "
                 "from unnest(starts) t), "
                 "counts, nan_counts, mins, maxs, sums, lasts) from stepwell.decoded_rollups"),
            "{0,40} {4,5} {1,0} {0.05,0.08} {0.07,0.1} {0.18,0.41} {0.0625,-0}");
}

}  // namespace
}  // namespace stepwell
