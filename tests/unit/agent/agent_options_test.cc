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

TEST(AgentOptionsTest, AgentRule02_FramesAreSealedEach100MsOrAsIsAllowed) {
  const struct {
    std::vector<std::string> words;
    absl::Duration interval;  // zero = refused
  } rows[] = {
      {{}, absl::Milliseconds(100)},
      {{"--frame-interval", "10ms"}, absl::Milliseconds(10)},
      {{"--frame-interval", "1s"}, absl::Seconds(1)},
      {{"--frame-interval", "9ms"}, absl::ZeroDuration()},
      {{"--frame-interval", "1001ms"}, absl::ZeroDuration()},
      {{"--frame-interval", "often"}, absl::ZeroDuration()},
  };
  for (const auto& row : rows) {
    std::vector<std::string> words = {"--spool-dir", "/tmp/x"};
    words.insert(words.end(), row.words.begin(), row.words.end());
    SCOPED_TRACE(words.back());
    const auto parsed = ParseAgentOptions(words);
    ASSERT_EQ(parsed.ok(), row.interval != absl::ZeroDuration()) << parsed.status();
    if (parsed.ok()) {
      EXPECT_EQ(parsed->options.frame_interval, row.interval);
    } else {
      EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("frame-interval"));
      EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("10ms"));
    }
  }
}

TEST(AgentOptionsTest, AgentRule09_OneThatATrialStartedStaysAMinuteIdleAndTenWithoutAMaster) {
  EXPECT_TRUE(ParseAgentOptions({"--spool-dir", "/x", "--on-demand", "--remove-root"})
                  ->options.removes_root);
  const auto started = ParseAgentOptions({"--spool-dir", "/tmp/x", "--on-demand"});
  ASSERT_TRUE(started.ok()) << started.status();
  EXPECT_EQ(started->options.idle_exit, absl::Minutes(1));
  EXPECT_EQ(started->options.leave_after, absl::Minutes(10));
  const auto by_hand = ParseAgentOptions({"--spool-dir", "/tmp/x"});
  ASSERT_TRUE(by_hand.ok()) << by_hand.status();
  EXPECT_EQ(by_hand->options.idle_exit, absl::InfiniteDuration());
  EXPECT_EQ(by_hand->options.leave_after, absl::InfiniteDuration());
}

TEST(AgentOptionsTest, HelpTellsOfIt) {
  const auto parsed = ParseAgentOptions({"--help"});
  ASSERT_TRUE(parsed.ok());
  EXPECT_THAT(parsed->help, HasSubstr("--sync-before-send"));
}

}  // namespace
}  // namespace stepwell::agent
