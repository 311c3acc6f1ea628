// The SQL of migrations 2 and 8 against the C++ codec: the same columns must give the same bits in both.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/pg_connection.h"
#include "storage/pg_error.h"
#include "storage/vector_codec.h"
#include "tests/support/codec_vectors.h"
#include "tests/support/damaged_vectors.h"
#include "tests/support/encoded_params.h"
#include "tests/support/frozen_vectors.h"
#include "tests/support/further_kinds.h"
#include "tests/support/metric_kinds.h"
#include "tests/support/postgres.h"
#include "tests/support/sql_of.h"

namespace stepwell {
namespace {

using testing::AppendValue;
using testing::Connect;
using testing::TestPostgres;

constexpr char kCreateVectors[] = R"(
  create temp table vectors (id integer, sample_count integer, form smallint, width smallint,
    width2 smallint, divisor_exponent smallint, base bigint, factor bigint, bits varbit,
    bits2 varbit, dictionary bigint[], raw float8[], expected_values float8[],
    expected_integers bigint[]);
  -- NULL where the row is refused.
  create function pg_temp.try_values(v vectors) returns float8[] language plpgsql as $$
  begin
    return stepwell.decode_values(v.sample_count, v.form, v.width, v.width2,
      v.divisor_exponent, v.base, v.factor, v.bits, v.bits2, v.dictionary, v.raw);
  exception when data_corrupted or numeric_value_out_of_range then
    return null;
  end $$;
  create function pg_temp.try_integers(v vectors) returns bigint[] language plpgsql as $$
  begin
    return stepwell.decode_integers(
      v.sample_count, v.form, v.width, v.width2, v.base, v.factor, v.bits, v.bits2, v.dictionary);
  exception when data_corrupted or numeric_value_out_of_range then
    return null;
  end $$;
)";
constexpr char kInsertVector[] =
    "insert into vectors values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
// array_send gives each element's bits, so that -0 and NaN payloads count.
constexpr char kWrongValues[] = R"(
  select id, array_to_string(decoded, ' ') from vectors, lateral (select stepwell.decode_values(
    sample_count, form, width, width2, divisor_exponent, base, factor, bits, bits2, dictionary,
    raw) as decoded offset 0) d
  where array_send(decoded) is distinct from array_send(expected_values) limit 5)";
constexpr char kWrongIntegers[] = R"(
  select id, array_to_string(decoded, ' ') from vectors, lateral (select stepwell.decode_integers(
    sample_count, form, width, width2, base, factor, bits, bits2, dictionary) as decoded offset 0) d
  where array_send(decoded) is distinct from array_send(expected_integers) limit 5)";
constexpr char kWrongMutants[] = R"(
  select id, array_to_string(decoded, ' ') from vectors v, lateral (
    select pg_temp.try_values(v) as decoded offset 0) d
  where array_send(decoded) is distinct from array_send(expected_values) limit 5)";
constexpr char kWrongIntegerMutants[] = R"(
  select id, array_to_string(decoded, ' ') from vectors v, lateral (
    select pg_temp.try_integers(v) as decoded offset 0) d
  where array_send(decoded) is distinct from array_send(expected_integers) limit 5)";

class SqlCodecTest : public ::testing::Test {
 protected:
  SqlCodecTest() {
    const absl::Status created = connection_->ExecScript(kCreateVectors);
    EXPECT_TRUE(created.ok()) << created;
  }

  void Insert(std::int32_t id, std::size_t sample_count, const EncodedVector& encoded,
              const std::vector<double>* values, const std::vector<std::int64_t>* integers) {
    std::vector<PgParam> params = {id, static_cast<std::int32_t>(sample_count)};
    AppendValue(encoded, params);
    params.push_back(values != nullptr ? PgParam(std::span<const double>(*values))
                                       : PgParam::Null(PgOid::kFloat8Array));
    params.push_back(integers != nullptr ? PgParam(std::span<const std::int64_t>(*integers))
                                         : PgParam::Null(PgOid::kInt8Array));
    const auto inserted = connection_->Exec(kInsertVector, params);
    ASSERT_TRUE(inserted.ok()) << inserted.status();
  }

  void InsertAll(const std::vector<std::vector<double>>& vectors) {
    const auto body = [&] {
      std::int32_t id = 0;
      for (const std::vector<double>& values : vectors) {
        Insert(id++, values.size(), EncodeValues(values), &values, nullptr);
      }
      return absl::OkStatus();
    };
    ASSERT_TRUE(connection_->InTransaction(body).ok());
  }

  void ExpectNone(const char* query) {
    const auto wrong = connection_->Exec(SqlOf(query));
    ASSERT_TRUE(wrong.ok()) << wrong.status();
    for (int row = 0; row < wrong->row_count(); ++row) {
      ADD_FAILURE() << "vector " << wrong->Int32(row, 0) << " came back as "
                    << (wrong->IsNull(row, 1) ? "NULL" : wrong->Text(row, 1));
    }
  }

  void ExpectTimes(const std::vector<std::int64_t>& times) {
    const auto result = connection_->Exec(
        "select t from unnest(stepwell.to_timestamps($1)) with ordinality u (t, i) order by i",
        {std::span<const std::int64_t>(times)});
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->row_count(), static_cast<int>(times.size()));
    for (int row = 0; row < result->row_count(); ++row) {
      ASSERT_EQ(result->TimestampUs(row, 0), times[static_cast<std::size_t>(row)]);
    }
  }

  void ExpectRefused(const char* function, const char* arguments, const char* message) {
    SCOPED_TRACE(arguments);
    const std::string query = absl::StrCat("select stepwell.", function, "(", arguments, ")");
    const auto result = connection_->Exec(SqlOf(query));
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(SqlState(result.status()), "XX001");
    EXPECT_THAT(std::string(result.status().message()), ::testing::HasSubstr(message));
  }

  std::unique_ptr<PgConnection> connection_ = Connect(TestPostgres::Get().FreshMigratedDatabase());
};

TEST_F(SqlCodecTest, ReadsFrozenVectorsAsTheyWereWritten) {
  std::int32_t id = 0;
  for (const testing::FrozenVector& frozen : testing::FrozenVectors()) {
    std::vector<double> values(frozen.words.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = std::bit_cast<double>(frozen.words[i]);
    }
    // Where only integers are told, they are the values, too, and both are looked at.
    std::vector<std::int64_t> integers = frozen.integers;
    const bool has_integers = !integers.empty();
    if (has_integers) values.assign(integers.begin(), integers.end());
    Insert(id++, values.size(), frozen.encoded, &values, has_integers ? &integers : nullptr);
  }
  ExpectNone(kWrongValues);
  const auto deleted = connection_->Exec("delete from vectors where expected_integers is null");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  ExpectNone(kWrongIntegers);
}

TEST_F(SqlCodecTest, DecodesHostileValuesBitForBit) {
  std::vector<std::vector<double>> vectors;
  for (const testing::NamedValues& row : testing::HostileValues()) vectors.push_back(row.values);
  InsertAll(vectors);
  ExpectNone(kWrongValues);
}

TEST_F(SqlCodecTest, DecodesRandomValuesBitForBit) {
  std::mt19937_64 random(testing::TestSeed());
  std::vector<std::vector<double>> vectors(4000);
  for (std::vector<double>& values : vectors) values = testing::RandomValues(random);
  InsertAll(vectors);
  const auto forms = connection_->Exec("select count(distinct form) from vectors");
  ASSERT_TRUE(forms.ok()) << forms.status();
  EXPECT_EQ(forms->Int64(0, 0), 7) << "a form was never tried";
  ExpectNone(kWrongValues);
}

TEST_F(SqlCodecTest, DecodesAnHourOfEachMetricKind) {
  std::vector<std::vector<double>> vectors;
  const std::uint64_t seed = testing::TestSeed();
  for (const auto& kinds : {testing::MetricKinds(seed), testing::FurtherMetricKinds(seed)}) {
    for (const testing::MetricKind& kind : kinds) vectors.push_back(kind.values);
  }
  InsertAll(vectors);
  ExpectNone(kWrongValues);
}

TEST_F(SqlCodecTest, DividesByEveryPowerAsCppDoes) {
  std::vector<std::vector<double>> vectors;
  for (std::int16_t exponent = -kBinaryExponentMax; exponent <= kDecimalExponentMax; ++exponent) {
    const EncodedVector encoded{
        .form = Form::kFrame, .width = 0, .base = 7, .divisor_exponent = exponent};
    const std::vector<double> values = *DecodeValues(encoded, 1);
    Insert(exponent, 1, encoded, &values, nullptr);
  }
  ExpectNone(kWrongValues);
}

TEST_F(SqlCodecTest, DecodesIntegers) {
  std::mt19937_64 random(testing::TestSeed());
  std::vector<std::vector<std::int64_t>> vectors(2000);
  for (std::vector<std::int64_t>& integers : vectors) integers = testing::RandomIntegers(random);
  for (const testing::NamedIntegers& row : testing::HostileIntegers()) {
    vectors.push_back(row.integers);
  }
  std::int32_t id = 0;
  for (const std::vector<std::int64_t>& integers : vectors) {
    Insert(id++, integers.size(), EncodeIntegers(integers), nullptr, &integers);
  }
  ExpectNone(kWrongIntegers);
}

// Rows that no encoder wrote: both decoders refuse one, or both read the same from it.
TEST_F(SqlCodecTest, ReadsOrRefusesDamagedRowsAsCppDoes) {
  std::mt19937_64 random(testing::TestSeed());
  constexpr std::int32_t kRows = 20000;
  std::int32_t taken = 0;
  const auto body = [&] {
    for (std::int32_t id = 0; id < kRows; ++id) {
      const std::vector<double> given = testing::RandomValues(random);
      EncodedVector encoded =
          random() % 4 == 0 ? EncodeIntegers(testing::RandomIntegers(random)) : EncodeValues(given);
      for (std::uint64_t times = 1 + random() % 3; times > 0; --times) {
        testing::DamageSlightly(random, encoded);
      }
      const auto decoded = DecodeValues(encoded, given.size());
      if (decoded.ok()) ++taken;
      Insert(id, given.size(), encoded, decoded.ok() ? &*decoded : nullptr, nullptr);
    }
    return absl::OkStatus();
  };
  ASSERT_TRUE(connection_->InTransaction(body).ok());
  EXPECT_GT(taken, kRows / 10);
  EXPECT_LT(taken, kRows * 9 / 10);
  ExpectNone(kWrongMutants);
}

// The same of times, batches and counts.
TEST_F(SqlCodecTest, ReadsOrRefusesDamagedIntegersAsCppDoes) {
  std::mt19937_64 random(testing::TestSeed());
  constexpr std::int32_t kRows = 5000;
  std::int32_t taken = 0;
  const auto body = [&] {
    for (std::int32_t id = 0; id < kRows; ++id) {
      const std::vector<std::int64_t> given = testing::RandomIntegers(random);
      EncodedVector encoded = EncodeIntegers(given);
      for (std::uint64_t times = 1 + random() % 3; times > 0; --times) {
        testing::DamageSlightly(random, encoded);
      }
      encoded.divisor_exponent = 0;
      const auto decoded = DecodeIntegers(encoded, given.size());
      if (decoded.ok()) ++taken;
      Insert(id, given.size(), encoded, nullptr, decoded.ok() ? &*decoded : nullptr);
    }
    return absl::OkStatus();
  };
  ASSERT_TRUE(connection_->InTransaction(body).ok());
  EXPECT_GT(taken, kRows / 10);
  EXPECT_LT(taken, kRows * 9 / 10);
  ExpectNone(kWrongIntegerMutants);
}

// Dictionaries of integers and of doubles that lost elements, or whose indexes changed.
TEST_F(SqlCodecTest, RefusesIndexesBeyondADictionaryAsCppDoes) {
  std::mt19937_64 random(testing::TestSeed());
  std::int32_t taken = 0, beyond_doubles = 0;
  constexpr std::int32_t kRows = 3000;
  const auto body = [&] {
    for (std::int32_t id = 0; id < kRows; ++id) {
      std::vector<double> words(2 + random() % 20);
      for (double& word : words) word = std::bit_cast<double>(random());
      if (random() % 2 == 0) {
        for (double& word : words) word = static_cast<double>(random() >> 12);
      }
      std::vector<double> values(200 + random() % 200);
      for (double& value : values) value = words[random() % words.size()];
      EncodedVector encoded = EncodeValues(values);
      if (random() % 2 == 0 && encoded.dictionary.size() > 1) encoded.dictionary.pop_back();
      if (random() % 2 == 0 && encoded.raw.size() > 1) encoded.raw.pop_back();
      if (random() % 2 == 0 && encoded.bits.bytes.size() > 1) {
        encoded.bits.bytes[random() % (encoded.bits.bytes.size() - 1)] ^= '\x10';
      }
      const auto decoded = DecodeValues(encoded, values.size());
      if (decoded.ok()) ++taken;
      if (!decoded.ok() && encoded.form == Form::kDictionary && !encoded.raw.empty()) {
        ++beyond_doubles;
      }
      Insert(id, values.size(), encoded, decoded.ok() ? &*decoded : nullptr, nullptr);
    }
    return absl::OkStatus();
  };
  ASSERT_TRUE(connection_->InTransaction(body).ok());
  EXPECT_GT(taken, kRows / 10);
  EXPECT_GT(beyond_doubles, kRows / 10);
  ExpectNone(kWrongMutants);
}

TEST_F(SqlCodecTest, SaysWhatIsWrongWithADamagedRow) {
  const struct {
    const char* arguments;
    const char* message;
  } rows[] = {
      {"1, 7::int2, 0::int2, 0::int2, 0, 1, null, null, null", "vector of form 7: 0 bits"},
      {"2, 0::int2, 7::int2, 0::int2, 0, 1, B'0000000', null, null",
       "7 bits and 0 bits2 are not 2"},
      {"1, 0::int2, 64::int2, 0::int2, 0, 1, null, null, null", "width 64"},
      {"2000000, 0::int2, 0::int2, 0::int2, 0, 1, null, null, null", "2000000 samples"},
      {"-1, 0::int2, 0::int2, 0::int2, 0, 1, null, null, null", "-1 samples"},
      {"null, 0::int2, 0::int2, 0::int2, 0, 1, null, null, null", "<NULL> samples"},
      {"0, 1::int2, 0::int2, 0::int2, 0, 1, null, null, '{1}'", "are not 0 samples"},
      {"3, 2::int2, 0::int2, 2::int2, 0, 1, null, B'0000', null", "runs do not end at sample 3"},
      {"3, 2::int2, 0::int2, 2::int2, 0, 1, null, B'1111', null", "runs do not end at sample 3"},
      {"2, 5::int2, 1::int2, 0::int2, 0, 1, B'01', null, '{4}'", "index of sample 2 is beyond"},
      {"2, 6::int2, 0::int2, 0::int2, 0, 1, null, null, null", "vector of form 6"},
      {"0, 5::int2, 33::int2, 0::int2, 0, 1, null, null, '{4}'", "vector of form 5: 0 bits"},
      {"1, 5::int2, 0::int2, 0::int2, 0, 1, null, null, '{4,null}'", "not one list without NULL"},
      {"1, 5::int2, 0::int2, 0::int2, 0, 1, null, null, '[0:0]={4}'", "not one list without NULL"},
      {"1, 5::int2, 0::int2, 0::int2, 0, 1, null, null, '{{4}}'", "not one list without NULL"},
  };
  for (const auto& row : rows) ExpectRefused("decode_integers", row.arguments, row.message);
}

TEST_F(SqlCodecTest, SaysWhatIsWrongWithDamagedValues) {
  const struct {
    const char* arguments;
    const char* message;
  } rows[] = {
      {"3, 5::int2, 2::int2, 0::int2, 0::int2, 0, 1, B'000110', null, null, '{0.5,NaN}'",
       "vector of form 5: index of sample 3 is beyond a dictionary of 2"},
      {"1, 5::int2, 63::int2, 0::int2, 0::int2, 0, 1, ~B'0'::bit(63), null, '{}', '{0.5}'",
       "vector of form 5: index of sample 1 is beyond a dictionary of 1"},
      {"2, 4::int2, 0::int2, 0::int2, 0::int2, 0, 1, null, null, null, '{0.5}'",
       "raw has 1 elements for 2 samples"},
      {"1048577, 4::int2, 0::int2, 0::int2, 0::int2, 0, 1, null, null, null, "
       "array_fill(0::float8, '{1048577}')",
       "at most 1048576 are allowed"},
      {"2, 4::int2, 0::int2, 0::int2, 0::int2, 0, 1, null, null, null, '{0.5,null}'",
       "vector of form 4: raw is not one list without NULL"},
      {"1, 4::int2, 0::int2, 0::int2, 0::int2, 0, 1, null, null, null, '{{0.5}}'",
       "vector of form 4: raw is not one list without NULL"},
      {"1, 0::int2, 0::int2, 0::int2, 23::int2, 0, 1, null, null, null, null",
       "divisor_exponent 23 is out of range"},
  };
  for (const auto& row : rows) ExpectRefused("decode_values", row.arguments, row.message);
}

TEST_F(SqlCodecTest, MakesTimesExactOverAllOfTimestamptz) {
  std::mt19937_64 random(testing::TestSeed());
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  std::vector<std::int64_t> times = {testing::kTimestampMinUs,
                                     testing::kTimestampMinUs + 1,
                                     testing::kTimestampMaxUs,
                                     testing::kTimestampMaxUs - 1,
                                     -1,
                                     0,
                                     1,
                                     kExact,
                                     kExact + 1,
                                     -kExact,
                                     -kExact - 1,
                                     1700000000123457};
  while (times.size() < 5000) {
    const auto any = static_cast<std::int64_t>(random()) >> (random() % 40);
    if (any >= testing::kTimestampMinUs) times.push_back(any);
  }
  ExpectTimes(times);
}

// Vectors that are read from their first time on, up to the last one that is exact so.
TEST_F(SqlCodecTest, MakesTimesExactBesideTheFirstOfAVector) {
  std::mt19937_64 random(testing::TestSeed());
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  for (int vector = 0; vector < 100; ++vector) {
    const std::int64_t first = static_cast<std::int64_t>(random()) >> (random() % 40);
    if (first < testing::kTimestampMinUs || first > testing::kTimestampMaxUs - kExact) continue;
    std::vector<std::int64_t> times = {first, first + kExact, first + kExact - 1};
    while (times.size() < 50) {
      const std::int64_t offset = static_cast<std::int64_t>(random()) >> (10 + random() % 50);
      times.push_back(std::max(first + offset, testing::kTimestampMinUs));
    }
    ExpectTimes(times);
  }
  EXPECT_FALSE(connection_->Exec("select stepwell.to_timestamps('{-210866803200000001}')").ok());
}

TEST_F(SqlCodecTest, PicksWhatIsPresent) {
  const auto result = connection_->Exec(
      "select stepwell.pick_present('{5,6,7,8}'::bigint[], B'0101', 2)::text, "
      "stepwell.pick_present('{5,6}'::bigint[], null, 2)::text, "
      "stepwell.to_batches('{-1,0,7}')::text");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->Text(0, 0), "{6,8}");
  EXPECT_EQ(result->Text(0, 1), "{5,6}");
  EXPECT_EQ(result->Text(0, 2), "{NULL,0,7}");
  ExpectRefused("pick_present", "'{5,6}'::bigint[], B'1', 1",
                "row of 1 samples: presence has 1 ones in 1 bits for 2 ticks");
  ExpectRefused("pick_present", "'{5,6}'::bigint[], B'01', 2",
                "row of 2 samples: presence has 1 ones in 2 bits for 2 ticks");
  ExpectRefused("pick_present", "'{5,6}'::bigint[], null, 1",
                "row of 1 samples: presence has 2 ones in 2 bits for 2 ticks");
  ExpectRefused("to_batches", "'{0,-2}'", "a batch is below -1");
}

}  // namespace
}  // namespace stepwell
