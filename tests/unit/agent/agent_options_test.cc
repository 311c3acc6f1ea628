#include "client/agent/agent_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepwell::agent {
namespace {

using ::testing::HasSubstr;

TEST(AgentOptionsTest, SyncBeforeSendIsOffUntilItIsAskedFor) {
  const auto plain = ParseAgentOptions({"--spool-dir", "/tmp/x"});
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_FALSE(plain->options.sync_before_send);
  const auto synced = ParseAgentOptions({"--spool-dir", "/tmp/x", "--sync-before-send"});
  ASSERT_TRUE(synced.ok()) << synced.status();
  EXPECT_TRUE(synced->options.sync_before_send);
}

TEST(AgentOptionsTest, HelpTellsOfIt) {
  const auto parsed = ParseAgentOptions({"--help"});
  ASSERT_TRUE(parsed.ok());
  EXPECT_THAT(parsed->help, HasSubstr("--sync-before-send"));
}

}  // namespace
}  // namespace stepwell::agent
