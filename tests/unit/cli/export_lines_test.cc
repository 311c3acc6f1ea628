#include "client/cli/export_lines.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <sstream>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/unit/server/test_seed.h"

namespace stepwell::cli {
namespace {

constexpr std::int64_t kTimeUs = 1'763'632'882'123'456;  // 2025-11-20 10:01:22.123456 UTC

v1::ReadSamplesResponse Message(const std::vector<double>& values) {
  v1::ReadSamplesResponse message;
  message.mutable_series()->set_series_no(3);
  message.mutable_series()->mutable_key()->set_metric_group("training");
  message.mutable_series()->mutable_key()->set_name("loss");
  message.mutable_series()->set_unit("nats");
  message.mutable_series()->set_kind(v1::SERIES_KIND_GAUGE);
  for (const double value : values) {
    message.add_timestamps_us(kTimeUs + message.values_size() * std::int64_t{500'000});
    message.add_batches(message.values_size() - 1);
    message.add_values(value);
  }
  message.add_attempts(2);
  return message;
}

std::string TextOf(ExportFormat format, const v1::ReadSamplesResponse& message) {
  ExportLines lines(format);
  std::string text(lines.header());
  lines.Append(message, text);
  return text;
}

// As RFC 4180 reads it.
std::vector<std::vector<std::string>> ParseCsv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1);
  rows[0].emplace_back();
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string& field = rows.back().back();
    if (quoted) {
      if (text[i] != '"') {
        field += text[i];
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        field += text[i++];
      } else {
        quoted = false;
      }
    } else if (text[i] == '"') {
      quoted = true;
    } else if (text[i] == ',') {
      rows.back().emplace_back();
    } else if (text[i] == '\n') {
      rows.emplace_back(1);
    } else {
      field += text[i];
    }
  }
  rows.pop_back();  // behind the last line's end
  return rows;
}

TEST(ExportLinesTest, CsvHasAHeadAndLabelsAsJson) {
  v1::ReadSamplesResponse message = Message({2.5, 1e300});
  (*message.mutable_series()->mutable_key()->mutable_labels())["rank"] = "0";
  (*message.mutable_series()->mutable_key()->mutable_labels())["agent"] = "node-17";
  EXPECT_EQ(TextOf(ExportFormat::kCsv, message),
            "timestamp,batch,value,attempt,metric_group,name,labels,unit\n"
            "2025-11-20T10:01:22.123456Z,,2.5,2,training,loss,"
            "\"{\"\"agent\"\":\"\"node-17\"\",\"\"rank\"\":\"\"0\"\"}\",nats\n"
            "2025-11-20T10:01:22.623456Z,0,1e+300,2,training,loss,"
            "\"{\"\"agent\"\":\"\"node-17\"\",\"\"rank\"\":\"\"0\"\"}\",nats\n");
}

TEST(ExportLinesTest, JsonHasAnObjectPerLine) {
  v1::ReadSamplesResponse message = Message({2.5, std::nan("")});
  message.add_attempts(3);
  EXPECT_EQ(TextOf(ExportFormat::kJsonLines, message),
            "{\"series_no\":3,\"metric_group\":\"training\",\"name\":\"loss\",\"labels\":{},"
            "\"unit\":\"nats\",\"kind\":\"gauge\",\"time_us\":1763632882123456,\"batch\":-1,"
            "\"value\":2.5,\"attempt\":2}\n"
            "{\"series_no\":3,\"metric_group\":\"training\",\"name\":\"loss\",\"labels\":{},"
            "\"unit\":\"nats\",\"kind\":\"gauge\",\"time_us\":1763632882623456,\"batch\":0,"
            "\"value\":\"NaN\",\"attempt\":3}\n");
}

TEST(ExportLinesTest, HostileNamesReadBackTheSame) {
  for (const std::string& name :
       {std::string("a,b"), std::string("a\"b"), std::string("\""), std::string("a\nb"),
        std::string("a\r\nb"), std::string("päth/ü"), std::string(" blank "), std::string("\\\"\\"),
        std::string("\x01"), std::string("=1+1")}) {
    SCOPED_TRACE(name);
    v1::ReadSamplesResponse message = Message({1});
    v1::SeriesKey& key = *message.mutable_series()->mutable_key();
    key.set_name(name);
    (*key.mutable_labels())[name] = name;
    message.mutable_series()->set_unit(name);
    const auto rows = ParseCsv(TextOf(ExportFormat::kCsv, message));
    ASSERT_EQ(rows.size(), 2u);
    ASSERT_EQ(rows[1].size(), rows[0].size());
    EXPECT_EQ(rows[1][5], name);
    EXPECT_EQ(nlohmann::json::parse(rows[1][6])[name], name);
    EXPECT_EQ(rows[1][7], name);
    const auto line = nlohmann::json::parse(TextOf(ExportFormat::kJsonLines, message));
    EXPECT_EQ(line["name"], name);
    EXPECT_EQ(line["labels"][name], name);
    EXPECT_EQ(line["unit"], name);
  }
}

TEST(ExportLinesTest, TimesAreExactBeforeAndAfter1970) {
  struct Row {
    std::int64_t time_us;
    std::string text;
  };
  const Row rows[] = {
      {0, "1970-01-01T00:00:00.000000Z"},
      {-1, "1969-12-31T23:59:59.999999Z"},
      {-1'000'000, "1969-12-31T23:59:59.000000Z"},
      {999'999, "1970-01-01T00:00:00.999999Z"},
      {253'402'300'800'000'000, "10000-01-01T00:00:00.000000Z"},
  };
  v1::ReadSamplesResponse message = Message({});
  for (const Row& row : rows) {
    message.add_timestamps_us(row.time_us);
    message.add_batches(-1);
    message.add_values(0);
  }
  const auto lines = ParseCsv(TextOf(ExportFormat::kCsv, message));
  for (std::size_t i = 0; i < std::size(rows); ++i) EXPECT_EQ(lines[i + 1][0], rows[i].text);
}

TEST(ExportLinesTest, EveryDoubleReadsBackExactly) {
  using Limits = std::numeric_limits<double>;
  std::vector<double> values = {0.0,
                                -0.0,
                                0.1,
                                1.0 / 3,
                                -1e-5,
                                1e15,
                                1e16,
                                9007199254740993.0,
                                Limits::min(),
                                Limits::max(),
                                Limits::lowest(),
                                Limits::denorm_min(),
                                Limits::infinity(),
                                -Limits::infinity(),
                                Limits::quiet_NaN()};
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 20'000; ++i) values.push_back(std::bit_cast<double>(random()));
  const v1::ReadSamplesResponse message = Message(values);
  const auto rows = ParseCsv(TextOf(ExportFormat::kCsv, message));
  std::istringstream json(TextOf(ExportFormat::kJsonLines, message));
  ASSERT_EQ(rows.size(), values.size() + 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string& text = rows[i + 1][2];
    char* end = nullptr;
    const double csv_value = std::strtod(text.c_str(), &end);
    ASSERT_EQ(*end, '\0') << text;
    std::string line;
    ASSERT_TRUE(std::getline(json, line));
    const auto value = nlohmann::json::parse(line)["value"];
    const double json_value = value.is_string()
                                  ? std::strtod(value.get<std::string>().c_str(), nullptr)
                                  : value.get<double>();
    for (const double got : {csv_value, json_value}) {
      if (std::isnan(values[i])) {
        ASSERT_TRUE(std::isnan(got)) << text;
      } else {
        ASSERT_EQ(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(values[i]))
            << text << " " << line;
      }
    }
  }
}

}  // namespace
}  // namespace stepwell::cli
