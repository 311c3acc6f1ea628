// docs/metrics.md and the table of metrics say the same.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "client/agent/sensors/system_metrics.h"

namespace stepwell::agent {
namespace {

TEST(MetricsPageTest, AgentRule16_EachMetricHasARowWithItsGroupAndUnit) {
  std::ifstream file(METRICS_PAGE);
  ASSERT_TRUE(file.is_open()) << METRICS_PAGE;
  std::ostringstream page;
  page << file.rdbuf();
  for (const SystemMetric* metric : AllSystemMetrics()) {
    // | gpu | `gpu_util` | labels | unit |
    const std::string row_start =
        std::string("| ") + metric->metric_group + " | `" + metric->name + "` |";
    const std::size_t found = page.str().find(row_start);
    ASSERT_NE(found, std::string::npos) << "no row begins with " << row_start;
    std::istringstream row(page.str().substr(found + row_start.size()));
    std::string labels;
    std::string unit;
    std::getline(row, labels, '|');
    std::getline(row, unit, '|');
    EXPECT_EQ(unit, std::string(" ") + metric->unit + " ") << metric->name;
  }
}

TEST(MetricsPageTest, NamesAreUnique) {
  for (const SystemMetric* metric : AllSystemMetrics()) {
    EXPECT_EQ(FindSystemMetric(metric->name), metric) << metric->name;
  }
}

}  // namespace
}  // namespace stepwell::agent
