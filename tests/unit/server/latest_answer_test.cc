#include "server/latest_answer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "base/worker.h"
#include "google/protobuf/util/message_differencer.h"
#include "server/query_wire.h"
#include "server/series_names.h"

namespace stepwell {
namespace {

using google::protobuf::util::MessageDifferencer;

SeriesNames::All MakeSeries(std::int32_t count, const std::string& group = "gpu") {
  std::vector<Series> all;
  for (std::int32_t i = 1; i <= count; ++i) {
    all.push_back({SeriesNo{i},
                   {{group, "value_" + std::to_string(i), {{"agent", "node"}, {"rank", "0"}}},
                    "seconds",
                    SeriesKind::kGauge}});
  }
  return std::make_shared<const std::vector<Series>>(std::move(all));
}

TEST(LatestAnswerTest, SerializesToTheMessageThatItStandsFor) {
  const auto all = MakeSeries(5);
  const WireSeries wire(*all);
  const std::vector<LatestValue> values = {
      {.time_us = 1'700'000'000'000'000, .batch = 12, .value = 0.5},
      {.time_us = -1, .batch = -1, .value = std::numeric_limits<double>::infinity()},
      {.time_us = 0, .batch = 0, .value = 0},
      {.time_us = INT64_MAX, .batch = INT32_MAX, .value = -0.0},
      {.time_us = 7, .batch = INT32_MIN, .value = std::numeric_limits<double>::denorm_min()},
  };
  v1::LatestValuesResponse expected;
  LatestAnswer answer;
  for (std::size_t i = 0; i < values.size(); ++i) {
    answer.Add(wire.Of(SeriesNo{static_cast<std::int32_t>(i) + 1}), values[i]);
    auto& value = *expected.add_values();
    *value.mutable_series() = ToWire((*all)[i]);
    value.set_time_us(values[i].time_us);
    value.set_batch(values[i].batch);
    value.set_value(values[i].value);
  }
  answer.completeness().set_samples_held(99);
  expected.mutable_completeness()->set_samples_held(99);
  const auto message = answer.ToMessage();
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_TRUE(MessageDifferencer::Equals(*message, expected)) << message->ShortDebugString();
  v1::LatestValuesResponse response;
  std::move(answer).MoveTo(response);
  v1::LatestValuesResponse received;
  ASSERT_TRUE(received.ParseFromString(response.SerializeAsString()));
  EXPECT_TRUE(MessageDifferencer::Equals(received, expected)) << received.ShortDebugString();
  EXPECT_EQ(received.GetReflection()->GetUnknownFields(received).field_count(), 0);
}

TEST(LatestAnswerTest, KeepsNotANumber) {
  LatestAnswer answer;
  answer.Add("", {.value = std::nan("")});
  EXPECT_TRUE(std::isnan(answer.ToMessage()->values(0).value()));
}

TEST(SeriesNamesTest, AreMadeOnceAndAnewWhereTheTrialHasMore) {
  SeriesNames names;
  const auto all = MakeSeries(3);
  const auto wire = names.Of(TrialId{1}, all);
  EXPECT_EQ(names.Of(TrialId{1}, all), wire);
  v1::Series series;
  ASSERT_TRUE(series.ParseFromString(std::string(wire->Of(SeriesNo{2}))));
  EXPECT_TRUE(MessageDifferencer::Equals(series, ToWire((*all)[1])));
  const auto more = MakeSeries(4);
  ASSERT_TRUE(series.ParseFromString(std::string(names.Of(TrialId{1}, more)->Of(SeriesNo{4}))));
  EXPECT_EQ(series.key().name(), "value_4");
  const auto others = MakeSeries(3, "disk");
  ASSERT_TRUE(series.ParseFromString(std::string(names.Of(TrialId{2}, others)->Of(SeriesNo{1}))));
  EXPECT_EQ(series.key().metric_group(), "disk");
}

TEST(SeriesNamesTest, TakeNoMoreThanTheirBytes) {
  SeriesNames names(5000);
  const auto all = MakeSeries(20);
  for (std::int64_t trial = 1; trial <= 100; ++trial) {
    EXPECT_NE(names.Of(TrialId{trial}, all), nullptr);
    EXPECT_LE(names.bytes(), 5000u);
  }
  EXPECT_GE(names.bytes(), 1000u);
  EXPECT_EQ(names.Of(TrialId{100}, all), names.Of(TrialId{100}, all));
  EXPECT_NE(names.Of(TrialId{7}, MakeSeries(1000)), nullptr)
      << "what is too large is made, not kept";
  EXPECT_LE(names.bytes(), 5000u);
}

TEST(SeriesNamesTest, AreAskedByManyAtOnce) {
  SeriesNames names(20'000);
  std::vector<SeriesNames::All> lists;
  for (int i = 1; i <= 8; ++i) lists.push_back(MakeSeries(i * 10));
  const auto ask = [&](std::size_t from) {
    for (std::size_t i = 0; i < 500; ++i) {
      const auto& all = lists[(i * (from + 1)) % lists.size()];
      const auto wire = names.Of(TrialId{static_cast<std::int64_t>((i / 3 + from) % 5)}, all);
      v1::Series series;
      const SeriesNo last = all->back().series_no;
      ASSERT_TRUE(series.ParseFromString(std::string(wire->Of(last))));
      ASSERT_EQ(series.series_no(), Value(last));
    }
  };
  Worker one("one", [&] { ask(0); });
  Worker two("two", [&] { ask(1); });
  ask(2);
}

}  // namespace
}  // namespace stepwell
