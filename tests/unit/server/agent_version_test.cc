#include "server/agent_version.h"

#include <gtest/gtest.h>

#include <vector>

#include "server/settings.h"

namespace stepwell {
namespace {

TEST(AgentVersionTest, ReadsThreeNumbers) {
  struct Row {
    const char* text;
    std::optional<AgentVersion> expected;
  };
  const std::vector<Row> rows = {
      {"0.1.0", AgentVersion{0, 1, 0}},
      {"12.345.999999", AgentVersion{12, 345, 999999}},
      {"", std::nullopt},
      {"1.2", std::nullopt},
      {"1.2.3.4", std::nullopt},
      {"1..3", std::nullopt},
      {"-1.2.3", std::nullopt},
      {"1.2.+3", std::nullopt},
      {" 1.2.3", std::nullopt},
      {"1.2.1000000", std::nullopt},
      {"1.2.3-rc1", std::nullopt},
      {"a.b.c", std::nullopt},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    EXPECT_EQ(ParseVersion(row.text), row.expected);
    if (row.expected) {
      EXPECT_EQ(VersionText(*row.expected), row.text);
    }
  }
}

TEST(AgentVersionTest, AgentRule05_AnAgentBelowTheMinimumIsRefused) {
  struct Row {
    const char* given;
    bool is_taken;
  };
  const std::vector<Row> rows = {
      {"stepwell-agent/0.2.0", true},
      {"stepwell-agent/0.2.1", true},
      {"stepwell-agent/0.10.0", true},
      {"stepwell-agent/1.0.0", true},
      {"stepwell-agent/0.2.0-rc1", true},
      {"stepwell-agent/0.2.0+abc.1", true},
      {"stepwell-agent/0.1.9", false},
      {"stepwell-agent/0.1.99-rc1", false},
      {"stepwell-agent/0.0.999999", false},
      // Others' clients, and what cannot be read.
      {"", true},
      {"their-client/0.0.1", true},
      {"stepwell-agent", true},
      {"stepwell-agent/", true},
      {"stepwell-agent/old", true},
      {"stepwell-agent/0.1", true},
      {"my stepwell-agent/0.1.0", true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.given);
    const MaybeComplaint complaint = CheckAgentVersion(row.given, {0, 2, 0});
    ASSERT_EQ(!complaint, row.is_taken);
    if (!complaint) continue;
    EXPECT_EQ(complaint->code, absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(complaint->reason, "CLIENT_TOO_OLD");
  }
  EXPECT_EQ(
      CheckAgentVersion("stepwell-agent/0.1.0", {0, 2, 0})->message,
      "open.agent_version is stepwell-agent/0.1.0, allowed are stepwell-agent/0.2.0 and newer; "
      "install stepwell 0.2.0 or newer on that machine: what is recorded stays in its spool, "
      "and the newer agent delivers it");
}

TEST(AgentVersionTest, TheSettingBeginsWithTheOldestThatWorks) {
  EXPECT_EQ(ParseVersion(FindSetting("minimum-agent-version")->initial), kAgentVersionMin);
}

}  // namespace
}  // namespace stepwell
