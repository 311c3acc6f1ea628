// docs/metrics.md and the table of metrics say the same, and the page says all of each metric.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/agent/sensors/system_metrics.h"
#include "client/recorder/src/sampled_names.h"
#include "tests/support/places/places.h"

namespace stepwell::agent {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;

TEST(SampledNamesTest, TheRecorderKnowsTheNamesOfTheSensors) {
  std::set<std::string> groups;
  std::vector<std::string> names;
  for (const SystemMetric* metric : AllSystemMetrics()) {
    groups.insert(metric->metric_group);
    names.emplace_back(metric->name);
  }
  EXPECT_THAT(recorder::kSampledGroups, ::testing::ElementsAreArray(groups));
  EXPECT_THAT(recorder::kSampledMetrics, ::testing::UnorderedElementsAreArray(names));
}

// Cells of a line by the heading of their column.
using Row = std::map<std::string, std::string>;

std::vector<std::string> Cells(absl::string_view line) {
  std::vector<std::string> cells = absl::StrSplit(line, '|');
  if (cells.size() < 3) return {};
  for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
  return {cells.begin() + 1, cells.end() - 1};
}

class MetricsPageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(SourcePlace("docs/metrics.md"));
    ASSERT_TRUE(file.is_open());
    std::vector<std::string> heads;
    for (std::string line; std::getline(file, line);) {
      const std::vector<std::string> cells = Cells(line);
      if (cells.empty()) heads.clear();
      if (cells.empty() || absl::StartsWith(cells[0], "---")) continue;
      if (heads.empty()) {
        heads = cells;
        continue;
      }
      ASSERT_EQ(cells.size(), heads.size()) << line;
      Row row;
      for (std::size_t i = 0; i < heads.size(); ++i) row[heads[i]] = cells[i];
      if (row.count("group") > 0) {
        const bool is_new =
            metrics_.emplace(absl::StripPrefix(absl::StripSuffix(row["name"], "`"), "`"), row)
                .second;
        EXPECT_TRUE(is_new) << "two rows of " << row["name"];
      } else if (row.count("sensor") > 0) {
        costs_.insert(row["sensor"]);
      }
    }
  }
  std::map<std::string, Row> metrics_;
  std::set<std::string> costs_;  // sensors whose overhead is told
};

// What the agent adds itself, without a sensor.
const std::set<std::string> kOwn = {"shared_with", "clock_offset", "clock_offset_error",
                                    "placement"};

TEST_F(MetricsPageTest, AgentRule16_EachMetricIsThereWithAllThatIsToBeSaidOfIt) {
  for (const SystemMetric* metric : AllSystemMetrics()) {
    SCOPED_TRACE(metric->name);
    ASSERT_THAT(metrics_, Contains(Key(metric->name)));
    Row row = metrics_[metric->name];
    EXPECT_EQ(row["group"], metric->metric_group);
    EXPECT_EQ(row["unit"], metric->unit);
    EXPECT_EQ(row["resolution"], absl::StrCat(1 / static_cast<double>(metric->divisor)));
    for (const char* column : {"source", "formula and meaning", "sensor"}) {
      EXPECT_GT(row[column].size(), 2u) << column;
    }
    const bool is_gpu = row["group"] == "gpu";
    const bool is_process = row.count("Prometheus") > 0;
    const char* exporter = is_gpu       ? "DCGM"
                           : is_process ? "Prometheus"
                                        : "Prometheus (node, cAdvisor)";
    for (const char* column : {"OpenTelemetry", exporter, "Determined"}) {
      // A dash, or a name as code.
      EXPECT_TRUE(row[column] == "-" || absl::StartsWith(row[column], "`")) << column;
    }
    EXPECT_TRUE(row["OpenTelemetry"] != "-" || row[exporter] != "-")
        << "known nowhere: who else measures it?";
    EXPECT_THAT(costs_, Contains(row["sensor"])) << "what does a reading of it cost?";
  }
}

TEST_F(MetricsPageTest, NoRowIsOfAMetricThatIsNot) {
  for (const auto& [name, row] : metrics_) {
    EXPECT_TRUE(FindSystemMetric(name) != nullptr || kOwn.count(name) > 0) << name;
    EXPECT_GT(row.at("sensor").size(), 1u) << name;
  }
}

// Reports that were made for Determined's names find them here.
TEST_F(MetricsPageTest, AgentRule16_DeterminedsNamesAreOurs) {
  for (const char* name :
       {"gpu_util", "gpu_free_memory", "net_throughput_sent", "net_throughput_recv", "disk_iops",
        "disk_throughput_read", "disk_throughput_write", "disk_util", "memory_free",
        "cpu_util_simple"}) {
    EXPECT_NE(FindSystemMetric(name), nullptr) << name;
    EXPECT_THAT(metrics_[name]["Determined"], HasSubstr(absl::StrCat("`", name, "`")));
  }
}

TEST_F(MetricsPageTest, NamesAreUnique) {
  for (const SystemMetric* metric : AllSystemMetrics()) {
    EXPECT_EQ(FindSystemMetric(metric->name), metric) << metric->name;
  }
}

}  // namespace
}  // namespace stepwell::agent
