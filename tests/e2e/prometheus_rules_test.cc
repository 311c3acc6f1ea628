// The alerts of deploy/prometheus and the queries of docs/http.md, as promtool evaluates them over made-up series
// (skipped where there is none).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "tests/e2e/bash.h"
#include "tests/e2e/told_queries.h"
#include "tests/support/places/places.h"
#include "tests/support/scratch_directory.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;

// Lines are broken elsewhere in YAML.
std::string WithoutSpace(std::string text) {
  text.erase(std::remove_if(text.begin(), text.end(),
                            [](unsigned char c) { return std::isspace(c) != 0; }),
             text.end());
  return text;
}

TEST(PrometheusRulesTest, EveryAlertAndEveryQueryOfTheDocsIsTried) {
  const std::string tried = TextOf(SourcePlace("tests/e2e/prometheus_rules.yml"));
  const auto alerts =
      Between(TextOf(SourcePlace("deploy/prometheus/stepwell.rules.yml")), "- alert: ", "\n");
  EXPECT_EQ(alerts.size(), 12U);
  for (const std::string& alert : alerts) {
    EXPECT_THAT(tried, HasSubstr("alertname: " + alert + ", exp_alerts: []"));
    EXPECT_THAT(tried, HasSubstr("alertname: " + alert + "\n        exp_alerts:"));
  }
  const auto queries = QueriesOf(SourcePlace("docs/http.md"));
  EXPECT_EQ(queries.size(), 5U);
  for (const std::string& query : queries) {
    EXPECT_THAT(WithoutSpace(tried), HasSubstr("expr:>-" + WithoutSpace(query) + "exp_samples:"));
  }
}

TEST(PrometheusRulesTest, AlertsFireWhenTheyShouldAndQueriesFindOneSeriesEach) {
  const ScratchDirectory scratch;
  if (RunBash(scratch.path(), "command -v promtool").exit_code != 0) {
    GTEST_SKIP() << "promtool is not installed";
  }
  const Answered tested = RunBash(
      scratch.path(), "promtool test rules " + SourcePlace("tests/e2e/prometheus_rules.yml"));
  EXPECT_EQ(tested.exit_code, 0) << tested.output;
}

}  // namespace
}  // namespace stepwell::testing
