#include "server/agent_census.h"

#include <gtest/gtest.h>

#include "tests/unit/server/ingest_stream_fixture.h"

namespace stepwell {
namespace {

ConnectedAgent Agent(std::string agent_id, std::int64_t since_us, std::int64_t seen_us) {
  ConnectedAgent agent;
  agent.agent_id = std::move(agent_id);
  agent.since_time_us = since_us;
  agent.seen_time_us = seen_us;
  return agent;
}

std::vector<std::string> NamesOf(const AgentCensus& census) {
  std::vector<std::string> names;
  for (const ConnectedAgent& agent : census.agents) {
    names.push_back(agent.agent_id + "@" + std::to_string(agent.since_time_us));
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(AgentCensusTest, AgentsStandByHostAndThenByAge) {
  const AgentCensus census = TakeCensus({Agent("b", 1, 9), Agent("a", 3, 9), Agent("a", 2, 9)}, 3);
  EXPECT_EQ(NamesOf(census), (Names{"a@2", "a@3", "b@1"}));
  EXPECT_EQ(census.left_out, 0);
}

TEST(AgentCensusTest, OfTooManyThoseAreToldThatWereSilentTheLongest) {
  const AgentCensus census =
      TakeCensus({Agent("a", 1, 9), Agent("b", 2, 1), Agent("c", 3, 8), Agent("d", 4, 2)}, 2);
  EXPECT_EQ(NamesOf(census), (Names{"b@2", "d@4"}));
  EXPECT_EQ(census.left_out, 2);
  EXPECT_TRUE(TakeCensus({}, 2).agents.empty());
}

class ConnectedAgentTest : public IngestStreamTest {
 protected:
  std::shared_ptr<IngestStream> NewStream() {
    auto stream = IngestStream::Create(in_time_, [] {});
    EXPECT_TRUE(stream.ok()) << stream.status();
    return *stream;
  }

  FakeClock clock_;
  const IngestContext in_time_{store_, queue_,    heads_,    state_,
                               stats_, registry_, director_, clock_};
};

TEST_F(ConnectedAgentTest, AStreamTellsWhoItsNewestOpenSaidItIs) {
  auto stream = NewStream();
  EXPECT_FALSE(stream->agent().has_value()) << "nobody has said anything yet";
  pb::StreamChunksRequest open = Open(writer_);
  open.mutable_open()->set_agent_id("node-7");
  open.mutable_open()->set_agent_version("stepwell-agent/0.1.0");
  const std::int64_t began_us = absl::ToUnixMicros(clock_.Now());
  clock_.Advance(absl::Seconds(5));
  stream->Handle(open);
  auto agent = stream->agent();
  ASSERT_TRUE(agent.has_value());
  EXPECT_EQ(agent->agent_id, "node-7");
  EXPECT_EQ(agent->agent_version, "stepwell-agent/0.1.0");
  EXPECT_EQ(agent->writers_open, 1);
  EXPECT_EQ(agent->since_time_us, began_us);
  EXPECT_EQ(agent->seen_time_us, began_us + 5'000'000);

  stream->Handle(Close(writer_, 0));
  ASSERT_TRUE(stream->WaitSettled(SteadyTime::Now() + absl::Seconds(30)));
  agent = stream->agent();
  ASSERT_TRUE(agent.has_value());
  EXPECT_EQ(agent->writers_open, 0);
  stream->Finish();
}

TEST_F(ConnectedAgentTest, EachMessageCountsAsHeardAlsoOneThatIsNotTaken) {
  auto stream = NewStream();
  stream->Handle(Open(writer_));
  const std::int64_t seen_us = stream->agent()->seen_time_us;
  clock_.Advance(absl::Seconds(3));
  EXPECT_EQ(stream->agent()->seen_time_us, seen_us);
  stream->Handle({});
  EXPECT_EQ(stream->agent()->seen_time_us, seen_us + 3'000'000);
  clock_.Advance(absl::Seconds(2));
  stream->HandleMalformed("", Invalid("MALFORMED", "not a message"));
  EXPECT_EQ(stream->agent()->seen_time_us, seen_us + 5'000'000);
  stream->Finish();
}

TEST_F(ConnectedAgentTest, AWriterThatIsFencedCountsWhereItLives) {
  auto first = NewStream();
  auto second = NewStream();
  first->Handle(Open(writer_));
  second->Handle(Open(writer_));
  EXPECT_EQ(first->agent()->writers_open, 0);
  EXPECT_EQ(second->agent()->writers_open, 1);
  first->Finish();
  second->Finish();
}

}  // namespace
}  // namespace stepwell
