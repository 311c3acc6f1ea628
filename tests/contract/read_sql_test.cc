// The public SQL over rows put in by hand: what people see in psql.
#include <cmath>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/pg_connection.h"
#include "storage/pg_error.h"
#include "storage/vector_codec.h"
#include "tests/support/encoded_params.h"
#include "tests/support/postgres.h"
#include "tests/support/sql_of.h"

namespace stepwell {
namespace {

using testing::AppendInteger;
using testing::AppendValue;
using testing::Connect;
using testing::TestPostgres;

constexpr std::int64_t kSecondUs = 1000000;
constexpr std::int64_t kNewYearUs = 1767225600 * kSecondUs;  // 2026-01-01 00:00:00 UTC

// Trial 7 with writer 1 of attempt 1, writer 2 of attempt 2, three series and two days of leaves.
constexpr char kTrial[] = R"(
  insert into stepwell.trials (trial_id, project_id, owner_epoch) values (7, 1, 1), (8, 1, 1);
  insert into stepwell.writers (trial_id, generation, writer_no, attempt, state, writer)
    values (7, 1, 1, 1, 1, gen_random_uuid()), (7, 1, 2, 2, 1, gen_random_uuid()),
           (8, 1, 1, 1, 1, gen_random_uuid());
  insert into stepwell.series
    (trial_id, series_no, kind, metric_group, name, unit, labels, labels_hash)
    values (7, 1, 1, 'gpu', 'gpu_util', 'percent', '{"device": "a"}', '\x01'),
           (7, 2, 1, 'gpu', 'gpu_util', 'percent', '{"device": "b"}', '\x02'),
           (7, 3, 3, 'timing', 'train_batch', 'seconds', '{"rank": "0"}', '\x03'),
           (8, 1, 1, 'gpu', 'gpu_util', 'percent', '{}', '\x04');
  create table stepwell.metrics_k0_20260101 partition of stepwell.metrics
    for values from (0, '2026-01-01') to (0, '2026-01-02');
  create table stepwell.metrics_k0_20260102 partition of stepwell.metrics
    for values from (0, '2026-01-02') to (0, '2026-01-03');
  create table stepwell.ticks_k0_20260101 partition of stepwell.ticks
    for values from (0, '2026-01-01') to (0, '2026-01-02');
  create table stepwell.ticks_k0_20260102 partition of stepwell.ticks
    for values from (0, '2026-01-02') to (0, '2026-01-03');
)";

constexpr char kTicksColumns[] =
    "(trial_id, tick_no, first_time_us, last_time_us, writer_no, tick_group, tick_count, "
    "first_batch, last_batch, received_day, keep_class, time_form, time_width, time_width2, "
    "time_base, time_factor, time_bits, time_bits2, time_dictionary, batch_form, batch_width, "
    "batch_width2, batch_base, batch_factor, batch_bits, batch_bits2, batch_dictionary";
constexpr char kTicksValues[] =
    "($1, $2, $3, $4, $5, 1, $6, 0, 0, '2026-01-01'::date + $7, 0, $8, $9, $10, $11, $12, $13, "
    "$14, $15, $16, $17, $18, $19, $20, $21, $22, $23";
constexpr char kRowColumns[] =
    "(trial_id, tick_no, first_time_us, last_time_us, writer_no, series_no, first_batch, "
    "last_batch, sample_count, nan_count, received_day, keep_class, presence, form, width, width2, "
    "divisor_exponent, base, factor, bits, bits2, dictionary, raw";
constexpr char kRowValues[] =
    "($1, $2, $3, $4, $5, $6, 0, 0, $7, 0, '2026-01-01'::date + $8, 0, $9, $10, $11, $12, $13, "
    "$14, $15, $16, $17, $18, $19";

struct Stretch {
  std::int64_t trial_id = 7;
  std::int64_t tick_no = 1;
  std::int32_t writer_no = 1;
  std::int32_t series_no = 1;
  std::int32_t day = 0;  // of receipt, since 2026-01-01
  std::vector<std::int64_t> times_us = {};
  std::vector<std::int64_t> batches = {};
  std::vector<double> values = {};
  BitString presence = {};
};

class ReadSqlTest : public ::testing::Test {
 protected:
  ReadSqlTest() {
    const absl::Status filled = connection_->ExecScript(kTrial);
    EXPECT_TRUE(filled.ok()) << filled;
  }

  void Insert(const std::string& sql, const std::vector<PgParam>& params) {
    const auto inserted = connection_->Exec(SqlOf(sql), params);
    ASSERT_TRUE(inserted.ok()) << inserted.status();
  }

  void InsertMetrics(const Stretch& stretch) {
    InsertTicks(stretch, absl::StrCat("insert into stepwell.ticks ", kTicksColumns, ") values ",
                                      kTicksValues, ")"));
    InsertMetricsRow(stretch);
  }

  // One more series on ticks that are there already.
  void InsertMetricsRow(const Stretch& stretch) {
    InsertRow(stretch, absl::StrCat("insert into stepwell.metrics ", kRowColumns, ") values ",
                                    kRowValues, ")"));
    Insert(
        "insert into stepwell.usage_lines select $1, '2026-01-01'::date + $2, 0, metric_group, 1, "
        "$3, "
        "100, $4, $5 from stepwell.series where trial_id = $1 and series_no = $6 "
        "on conflict do nothing",
        {stretch.trial_id, stretch.day, static_cast<std::int64_t>(stretch.values.size()),
         stretch.times_us.front(), stretch.times_us.back(), stretch.series_no});
  }

  void InsertRecent(const Stretch& stretch) {
    InsertTicks(stretch, absl::StrCat("insert into stepwell.recent_ticks ", kTicksColumns,
                                      ", segment, fold_no, received_time_us, series_nos) values ",
                                      kTicksValues, ", 2, 1, 0, '{", stretch.series_no, "}')"));
    InsertRow(stretch, absl::StrCat("insert into stepwell.recent ", kRowColumns,
                                    ", segment, fold_no) values ", kRowValues, ", 2, 1)"));
  }

  std::vector<std::string> Rows(const char* query) {
    const auto result = connection_->Exec(SqlOf(query));
    EXPECT_TRUE(result.ok()) << result.status();
    std::vector<std::string> rows;
    for (int row = 0; result.ok() && row < result->row_count(); ++row) {
      rows.emplace_back(result->Text(row, 0));
    }
    return rows;
  }

  const std::string url_ = TestPostgres::Get().FreshMigratedDatabase();
  std::unique_ptr<PgConnection> connection_ = Connect(url_);

 private:
  void InsertTicks(const Stretch& stretch, const std::string& sql) {
    std::vector<PgParam> params = {stretch.trial_id,
                                   stretch.tick_no,
                                   stretch.times_us.front(),
                                   stretch.times_us.back(),
                                   stretch.writer_no,
                                   static_cast<std::int32_t>(stretch.times_us.size()),
                                   stretch.day};
    AppendInteger(EncodeIntegers(stretch.times_us), params);
    AppendInteger(EncodeIntegers(stretch.batches), params);
    Insert(sql, params);
  }

  void InsertRow(const Stretch& stretch, const std::string& sql) {
    std::vector<PgParam> params = {stretch.trial_id,
                                   stretch.tick_no,
                                   stretch.times_us.front(),
                                   stretch.times_us.back(),
                                   stretch.writer_no,
                                   stretch.series_no,
                                   static_cast<std::int32_t>(stretch.values.size()),
                                   stretch.day,
                                   testing::BitsParam(stretch.presence)};
    AppendValue(EncodeValues(stretch.values), params);
    Insert(sql, params);
  }
};

std::vector<std::int64_t> Seconds(std::vector<std::int64_t> seconds) {
  for (std::int64_t& second : seconds) second = kNewYearUs + second * kSecondUs;
  return seconds;
}

constexpr char kGenericMetrics[] =
    "select concat_ws(' ', trial_id, attempt, metric_group, name, labels, batches, "
    "(select array_agg(extract(epoch from t)::bigint - 1767225600 order by i) "
    "from unnest(timestamps) with ordinality u (t, i)), values) "
    "from stepwell.generic_metrics order by 1";

TEST_F(ReadSqlTest, ShowsRowsAsArraysOfOneLength) {
  InsertMetrics({.times_us = Seconds({0, 1, 2}), .batches = {-1, 0, 1}, .values = {0.5, 1, -0.0}});
  InsertRecent({.tick_no = 2,
                .writer_no = 2,
                .times_us = Seconds({10, 11}),
                .batches = {4, 5},
                .values = {NAN, 7}});
  EXPECT_THAT(
      Rows(kGenericMetrics),
      ::testing::ElementsAre(R"(7 1 gpu gpu_util {"device": "a"} {NULL,0,1} {0,1,2} {0.5,1,-0})",
                             R"(7 2 gpu gpu_util {"device": "a"} {4,5} {10,11} {NaN,7})"));
}

TEST_F(ReadSqlTest, LeavesOutTicksWithoutSample) {
  InsertMetrics({.times_us = Seconds({0, 1, 2, 3}),
                 .batches = {0, 1, 2, 3},
                 .values = {5, 6},
                 .presence = {.bytes = "\x50", .bit_count = 4}});
  EXPECT_THAT(Rows(kGenericMetrics),
              ::testing::ElementsAre(R"(7 1 gpu gpu_util {"device": "a"} {1,3} {1,3} {5,6})"));
}

constexpr char kSamples[] =
    "select concat_ws(' ', labels, extract(epoch from \"timestamp\")::bigint - 1767225600, "
    "coalesce(batch::text, 'none'), value, attempt) from stepwell.samples";

class SamplesTest : public ReadSqlTest {
 protected:
  SamplesTest() {
    InsertMetrics({.times_us = Seconds({0, 1, 2}), .batches = {-1, 0, 1}, .values = {10, 11, 12}});
    InsertMetrics({.tick_no = 2,
                   .series_no = 2,
                   .day = 1,
                   .times_us = Seconds({86400, 86401}),
                   .batches = {8, 9},
                   .values = {20, 21}});
    InsertMetrics({.tick_no = 3,
                   .series_no = 3,
                   .times_us = Seconds({1, 2}),
                   .batches = {0, 1},
                   .values = {0.25, 0.5}});
    InsertRecent({.tick_no = 4,
                  .writer_no = 2,
                  .day = 1,
                  .times_us = Seconds({86402}),
                  .batches = {9},
                  .values = {13}});
    InsertMetrics({.trial_id = 8, .times_us = Seconds({0}), .batches = {0}, .values = {99}});
  }

  std::vector<std::string> Samples(const std::string& arguments) {
    return Rows(absl::StrCat(kSamples, "(", arguments, ") order by \"timestamp\", 1").c_str());
  }
};

TEST_F(SamplesTest, FindsByGroupNameAndTime) {
  const struct {
    std::string arguments;
    std::vector<std::string> samples;
  } rows[] = {
      {"7, 'gpu', 'gpu_util'",
       {R"({"device": "a"} 0 none 10 1)", R"({"device": "a"} 1 0 11 1)",
        R"({"device": "a"} 2 1 12 1)", R"({"device": "b"} 86400 8 20 1)",
        R"({"device": "b"} 86401 9 21 1)", R"({"device": "a"} 86402 9 13 2)"}},
      {"7, 'timing'", {R"({"rank": "0"} 1 0 0.25 1)", R"({"rank": "0"} 2 1 0.5 1)"}},
      {"7, null, 'gpu_util', '2026-01-01 00:00:01+00', '2026-01-01 00:00:02+00'",
       {R"({"device": "a"} 1 0 11 1)"}},
      {"7, null, null, '2026-01-02 00:00:01+00'",
       {R"({"device": "b"} 86401 9 21 1)", R"({"device": "a"} 86402 9 13 2)"}},
      {"7, null, null, '-infinity', '2026-01-01 00:00:01+00'", {R"({"device": "a"} 0 none 10 1)"}},
      {"7, null, null, '4713-01-01 BC', '2026-01-01 00:00:01+00'",
       {R"({"device": "a"} 0 none 10 1)"}},
      {"7, null, null, '2026-01-02 00:00:02+00', '294276-01-01'",
       {R"({"device": "a"} 86402 9 13 2)"}},
      {"7, null, null, '2026-01-02 00:00:02+00', 'infinity'", {R"({"device": "a"} 86402 9 13 2)"}},
      {"7, null, null, 'infinity'", {}},
      {"7, 'cpu'", {}},
      {"8", {"{} 0 0 99 1"}},
      {"9", {}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.arguments);
    EXPECT_EQ(Samples(row.arguments), row.samples);
  }
}

// Series of several writers and days whose ticks have the same numbers, some of them without all ticks.
TEST_F(ReadSqlTest, SamplesOfSharedTicksAreTheirOwn) {
  const auto stretch = [](std::int32_t writer_no, std::int32_t series_no, std::int32_t day,
                          std::int64_t second, std::vector<double> values) {
    return Stretch{.writer_no = writer_no,
                   .series_no = series_no,
                   .day = day,
                   .times_us = Seconds({second, second + 1, second + 2}),
                   .batches = {second, second + 1, second + 2},
                   .values = std::move(values)};
  };
  const BitString last_two{.bytes = "\x60", .bit_count = 3};
  InsertMetrics(stretch(1, 1, 0, 10, {1, 2, 3}));
  Stretch sparse = stretch(1, 2, 0, 10, {4, 5});
  sparse.presence = last_two;
  InsertMetricsRow(sparse);
  InsertMetricsRow(stretch(1, 3, 0, 10, {6, 7, 8}));
  InsertMetrics(stretch(2, 1, 0, 20, {9, 10, 11}));
  InsertMetrics(stretch(2, 1, 1, 30, {12, 13, 14}));
  Stretch recent = stretch(2, 2, 1, 40, {15, 16});
  recent.presence = last_two;
  InsertRecent(recent);
  EXPECT_THAT(Rows("select string_agg(concat_ws(' ', value, attempt, batch, "
                   "extract(epoch from \"timestamp\")::bigint - 1767225600), ',' order by value) "
                   "from stepwell.samples(7)"),
              ::testing::ElementsAre(
                  "1 1 10 10,2 1 11 11,3 1 12 12,4 1 11 11,5 1 12 12,6 1 10 10,7 1 11 11,"
                  "8 1 12 12,9 2 20 20,10 2 21 21,11 2 22 22,12 2 30 30,13 2 31 31,"
                  "14 2 32 32,15 2 41 41,16 2 42 42"));
}

// What a reader of the master refuses: nothing is answered as if it were whole.
TEST_F(ReadSqlTest, RefusesRowsThatContradictTheirTicks) {
  InsertMetrics({.times_us = Seconds({0, 1, 2}), .batches = {0, 1, 2}, .values = {5, 6, 7}});
  const struct {
    const char* damage;
    const char* message;
  } rows[] = {
      {"update stepwell.metrics set presence = B'11'", "presence has 2 ones in 2 bits for 3 ticks"},
      {"update stepwell.metrics set presence = B'101'", "row of 3 samples: presence has 2 ones"},
      {"update stepwell.ticks set tick_count = 2, time_form = 0, time_width = 0, time_bits = null, "
       "batch_form = 0, batch_width = 0, batch_bits = null",
       "row of 3 samples: presence has 2 ones in 2 bits for 2 ticks"},
      {"update stepwell.ticks set batch_form = 0, batch_width = 0, batch_bits = null, "
       "batch_base = -2",
       "a batch is below -1"},
      {"update stepwell.metrics set form = 5, width = 1, bits = B'010', dictionary = null, "
       "divisor_exponent = 0, raw = '{0.5}'",
       "vector of form 5: index of sample 2 is beyond a dictionary of 1"},
  };
  for (const auto& row : rows) {
    for (const char* query : {"select * from stepwell.samples(7)",
                              "select batches, timestamps, values from stepwell.generic_metrics"}) {
      SCOPED_TRACE(absl::StrCat(row.damage, "; ", query));
      ASSERT_TRUE(connection_->Begin().ok());
      ASSERT_TRUE(connection_->Exec(SqlOf(row.damage)).ok());
      const auto read = connection_->Exec(SqlOf(query));
      EXPECT_EQ(SqlState(read.status()), "XX001");
      EXPECT_THAT(std::string(read.status().message()), ::testing::HasSubstr(row.message));
      EXPECT_TRUE(connection_->Rollback().ok());
    }
  }
}

// Of young tables the planner knows nothing: it must not decode a row with the ticks of another
// before the join has parted them.
class YoungTablesTest : public ReadSqlTest {
 protected:
  YoungTablesTest() {
    for (std::int32_t number = 1; number <= 8; ++number) {
      Stretch stretch{.tick_no = number, .series_no = number == 8 ? 1 : 3};
      const int tick_count = number == 8 ? 4 : 50 * number;
      for (int i = 0; i < tick_count; ++i) {
        stretch.times_us.push_back(kNewYearUs + i * kSecondUs);
        stretch.batches.push_back(i);
        if (number < 8 || i % 2 == 1) stretch.values.push_back(i);
      }
      if (number == 8) stretch.presence = {.bytes = "\x50", .bit_count = 4};
      InsertMetrics(stretch);
      InsertRecent(stretch);
    }
  }
};

TEST_F(YoungTablesTest, SamplesDecodesARowWithItsOwnTicksOnly) {
  EXPECT_THAT(Rows("select count(*)::text from stepwell.samples(7, 'timing', 'train_batch')"),
              ::testing::ElementsAre("2800"));
  EXPECT_THAT(Rows("select count(*)::text from stepwell.samples(7, 'gpu')"),
              ::testing::ElementsAre("4"));
}

TEST_F(YoungTablesTest, RowsUnnestedByHandAreDecodedWithTheirOwnTicksOnly) {
  for (const char* plan : {"", "set enable_hashjoin = off; set enable_mergejoin = off",
                           "set enable_indexscan = off; set enable_bitmapscan = off"}) {
    ASSERT_TRUE(connection_->ExecScript(SqlOf(plan)).ok());
    for (const char* view : {"decoded_metrics", "decoded_recent", "generic_metrics"}) {
      SCOPED_TRACE(absl::StrCat(plan, " ", view));
      const int times = view == std::string("generic_metrics") ? 2 : 1;
      for (const auto& [group, count] : {std::pair("timing", 1400), std::pair("gpu", 2)}) {
        const std::string unnested =
            absl::StrCat("select count(*)::text from stepwell.", view,
                         " d, unnest(d.timestamps, d.batches, d.values) u (t, b, v) where "
                         "d.trial_id = 7 and d.metric_group = '",
                         group, "' and u.t is not null and u.b is not null and u.v is not null");
        EXPECT_THAT(Rows(unnested.c_str()), ::testing::ElementsAre(absl::StrCat(times * count)));
      }
    }
  }
}

// substring() of a column would read a value that lies out of line again for every sample.
TEST_F(ReadSqlTest, AValueOutOfLineIsReadOnceForAllItsSamples) {
  constexpr int kSampleCount = 3600;
  Stretch stretch;
  std::uint64_t state = 1;
  for (int i = 0; i < kSampleCount; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    stretch.times_us.push_back(kNewYearUs + i * kSecondUs + static_cast<std::int64_t>(state >> 45));
    stretch.batches.push_back(i);
    stretch.values.push_back(static_cast<double>(state >> 19));  // 45 bits each
  }
  InsertMetrics(stretch);
  for (const char* table : {"metrics", "ticks"}) {
    EXPECT_THAT(Rows(absl::StrCat("select (pg_relation_size(reltoastrelid) > 8192)::text "
                                  "from pg_class where relname = '",
                                  table, "_k0_20260101'")
                         .c_str()),
                ::testing::ElementsAre("true"));
  }
  for (const char* query :
       {"select values, timestamps, batches from stepwell.generic_metrics where trial_id = 7",
        "select * from stepwell.samples(7)"}) {
    SCOPED_TRACE(query);
    ASSERT_TRUE(connection_->Exec(SqlOf(query)).ok());
    const auto explained = connection_->Exec(
        SqlOf(absl::StrCat("explain (analyze, buffers, timing off, format json) ", query)));
    ASSERT_TRUE(explained.ok()) << explained.status();
    const auto plan = nlohmann::json::parse(explained->Text(0, 0)).at(0).at("Plan");
    EXPECT_LT(plan.at("Shared Hit Blocks").get<int>() + plan.at("Shared Read Blocks").get<int>(),
              kSampleCount / 4);
  }
}

// What the ledger does not name is neither read nor locked.
TEST_F(SamplesTest, TouchesOnlyPartitionsOfTheAskedTime) {
  const auto other = Connect(url_);
  ASSERT_TRUE(other->Begin().ok());
  const auto locked = other->Exec(
      "lock table only stepwell.metrics_k0_20260102, only stepwell.ticks_k0_20260102 "
      "in access exclusive mode");
  ASSERT_TRUE(locked.ok()) << locked.status();
  ASSERT_TRUE(connection_->ExecScript("set lock_timeout = '20ms'").ok());
  EXPECT_EQ(Samples("7, 'gpu', null, null, '2026-01-01 01:00+00'").size(), 3U);
  EXPECT_FALSE(connection_->Exec("select * from stepwell.samples(7)").ok());
  EXPECT_TRUE(other->Rollback().ok());
  EXPECT_EQ(Samples("7").size(), 8U);
}

TEST_F(SamplesTest, IsForReadersWhoMayOnlyRead) {
  ASSERT_TRUE(connection_->ExecScript("set role stepwell_read").ok());
  EXPECT_EQ(Samples("7").size(), 8U);
  EXPECT_EQ(Rows("select values::text from stepwell.generic_metrics").size(), 5U);
  EXPECT_EQ(Rows("select name from stepwell.series where trial_id = 7").size(), 3U);
  for (const char* forbidden :
       {"select * from stepwell.writers", "select * from stepwell.writer_progress",
        "select * from stepwell.journal_0", "delete from stepwell.series",
        "insert into stepwell.keep_classes values (1)", "create table stepwell.mine (n integer)"}) {
    EXPECT_FALSE(connection_->Exec(SqlOf(forbidden)).ok()) << forbidden;
  }
}

}  // namespace
}  // namespace stepwell
