// The alerts of deploy/prometheus and the queries of docs/http.md, as promtool evaluates them over made-up series
// (skipped where there is none).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/e2e/bash.h"
#include "tests/support/scratch_directory.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Lines are broken elsewhere in YAML.
std::string WithoutSpace(std::string text) {
  text.erase(std::remove_if(text.begin(), text.end(),
                            [](unsigned char c) { return std::isspace(c) != 0; }),
             text.end());
  return text;
}

// What stands between `begin` and `end`, each time.
std::vector<std::string> Between(const std::string& text, const std::string& begin,
                                 const std::string& end) {
  std::vector<std::string> found;
  for (auto at = text.find(begin); at != text.npos; at = text.find(begin, at)) {
    at += begin.size();
    found.push_back(text.substr(at, text.find(end, at) - at));
  }
  return found;
}

TEST(PrometheusRulesTest, EveryAlertAndEveryQueryOfTheDocsIsTried) {
  const std::string tried = TextOf(RULES_TEST);
  const auto alerts = Between(TextOf(RULES), "- alert: ", "\n");
  EXPECT_EQ(alerts.size(), 9U);
  for (const std::string& alert : alerts) {
    EXPECT_THAT(tried, HasSubstr("alertname: " + alert + ", exp_alerts: []"));
    EXPECT_THAT(tried, HasSubstr("alertname: " + alert + "\n        exp_alerts:"));
  }
  const auto queries = Between(TextOf(HTTP_PAGE), "```promql\n", "```");
  EXPECT_EQ(queries.size(), 4U);
  for (const std::string& query : queries) {
    EXPECT_THAT(WithoutSpace(tried), HasSubstr("expr:>-" + WithoutSpace(query) + "exp_samples:"));
  }
}

TEST(PrometheusRulesTest, AlertsFireWhenTheyShouldAndQueriesFindOneSeriesEach) {
  const ScratchDirectory scratch;
  if (RunBash(scratch.path(), "command -v promtool").exit_code != 0) {
    GTEST_SKIP() << "promtool is not installed";
  }
  const Answered tested = RunBash(scratch.path(), "promtool test rules " RULES_TEST);
  EXPECT_EQ(tested.exit_code, 0) << tested.output;
}

}  // namespace
}  // namespace stepwell::testing
