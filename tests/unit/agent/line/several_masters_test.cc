// Writers choose their master: each has a stream of its own, and what goes to none stays.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/agent/master_links.h"
#include "tests/unit/agent/line/agent_fixture.h"

namespace stepwell::agent {
namespace {

class SeveralMastersTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    second_.Start();
  }
  void TearDown() override {
    AgentTest::TearDown();
    second_.Stop();
  }
  // To its end, though nobody waits for its acks.
  int RecordAndClose(const std::string& trial, const std::string& server) {
    return Wait(Record(
        trial, 0,
        [] {
          RecordSteps(40);
          stepwell_close(0);
        },
        "", server));
  }
  static std::vector<std::string> TrialsOf(const FakeMaster& master) {
    std::vector<std::string> trials;
    for (const auto& [id, writer] : master.writers()) trials.push_back(writer.open.external_id());
    return trials;
  }
  std::size_t DirectoryCount() {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(root_ + "/f1")) {
      count += entry.is_directory() ? 1 : 0;
    }
    return count;
  }
  Agent::Summary RunUpload(std::function<void(AgentOptions&)> change = {}) {
    StartAgent([&](AgentOptions& options) {
      options.upload = true;
      if (change) change(options);
    });
    runner_.Join();  // ends by itself
    const Agent::Summary summary = agent_->summary();
    agent_ = nullptr;
    return summary;
  }

  FakeMaster second_;
};

TEST_F(SeveralMastersTest, EachWriterGoesToTheOneItNamed) {
  StartAgent();
  const pid_t first = RecordOn("first", "to the default");
  const pid_t second = RecordOn("second", "to the second", 0, "", second_.address());
  const auto moves = [](const Writers& writers) {
    return BatchesOf(writers, "step").size() > 0 || BatchesOf(writers, "loss").size() > 5;
  };
  EXPECT_TRUE(master_.WaitUntil(moves));
  EXPECT_TRUE(second_.WaitUntil(moves));
  // One that is away keeps nobody waiting.
  second_.Stop();
  Stop("first", first);
  ASSERT_TRUE(master_.WaitUntil(AllClosed));
  second_.Start();
  Stop("second", second);
  ASSERT_TRUE(second_.WaitUntil(AllClosed));
  EXPECT_THAT(TrialsOf(master_), ::testing::ElementsAre("to the default"));
  EXPECT_THAT(TrialsOf(second_), ::testing::ElementsAre("to the second"));
}

TEST_F(SeveralMastersTest, WhatIsRecordedOfflineStaysUntilItIsUploaded) {
  StartAgent([](AgentOptions& options) { options.idle_exit = absl::Milliseconds(100); });
  EXPECT_EQ(RecordAndClose("kept", "offline"), 0);
  runner_.Join();  // nothing is left to do here
  EXPECT_EQ(agent_->summary().acked_count, 0);
  EXPECT_GT(agent_->summary().unacked_bytes, 0);
  agent_ = nullptr;
  EXPECT_TRUE(master_.writers().empty());
  // An agent with a master still does not send what asked not to be sent.
  StartAgent([](AgentOptions& options) { options.idle_exit = absl::Milliseconds(100); });
  runner_.Join();
  agent_ = nullptr;
  EXPECT_TRUE(master_.writers().empty());
  const Agent::Summary uploaded = RunUpload();
  EXPECT_EQ(uploaded.writer_count, 1);
  EXPECT_EQ(uploaded.acked_count, 1);
  EXPECT_EQ(uploaded.unacked_bytes, 0);
  ASSERT_EQ(master_.writers().size(), 1u);
  EXPECT_TRUE(AllClosed(master_.writers()));
  EXPECT_FALSE(master_.writers().begin()->second.died);
  ExpectEachStepOnce(master_.writers(), 40);
  EXPECT_EQ(RunUpload().writer_count, 0) << "it is told once";
}

TEST_F(SeveralMastersTest, AnOfflineAgentKeepsForTheNextWhatNamedNoMaster) {
  StartAgent([](AgentOptions& options) {
    options.server = "offline";
    options.idle_exit = absl::Milliseconds(100);
  });
  EXPECT_EQ(RecordAndClose("kept", ""), 0);
  runner_.Join();
  EXPECT_EQ(master_.stream_count(), 0);
  StartAgent();
  ASSERT_TRUE(WaitForClosed());
  ExpectEachStepOnce(master_.writers(), 40);
}

TEST_F(SeveralMastersTest, AnOfflineCloseDoesNotWaitForAnAck) {
  StartAgent();
  const absl::Time started = absl::Now();
  EXPECT_EQ(Wait(Record(
                "kept", 0,
                [] {
                  RecordSteps(10);
                  stepwell_close(60000);
                },
                "", "offline")),
            0);
  EXPECT_LT(absl::Now() - started, absl::Seconds(30));
}

TEST_F(SeveralMastersTest, WhatNamedNoAddressIsKeptForAnUpload) {
  StartAgent([](AgentOptions& options) { options.idle_exit = absl::Milliseconds(100); });
  EXPECT_EQ(RecordAndClose("misspelt", "unix:///run/other"), 0);
  runner_.Join();
  agent_ = nullptr;
  EXPECT_TRUE(master_.writers().empty());
  RunUpload();
  ExpectEachStepOnce(master_.writers(), 40);
}

TEST_F(SeveralMastersTest, AnUploadSendsAllToOneAndTellsWhatWasRefused) {
  StartAgent([](AgentOptions& options) { options.server = "offline"; });
  EXPECT_EQ(RecordAndClose("good", "offline"), 0);
  EXPECT_EQ(RecordAndClose("good", ""), 0);
  EXPECT_EQ(RecordAndClose("unknown", "offline"), 0);
  StopAgent();
  ASSERT_EQ(DirectoryCount(), 3u);
  master_.RefuseTrial("unknown");
  const Agent::Summary summary = RunUpload();
  EXPECT_EQ(summary.writer_count, 3);
  EXPECT_EQ(summary.acked_count, 2);
  EXPECT_EQ(summary.refused_count, 1);
  EXPECT_GT(summary.unacked_bytes, 0);
  EXPECT_THAT(summary.refusal, ::testing::HasSubstr("TRIAL_NOT_FOUND"));
  // With the master away it gives up, and all stays.
  master_.RefuseTrial("");
  master_.Stop();
  EXPECT_EQ(RunUpload([](AgentOptions& options) {
              options.leave_after = absl::Milliseconds(200);
            }).acked_count,
            0);
  master_.Start();
  EXPECT_EQ(RunUpload().acked_count, 1);
  ExpectEachStepOnce(
      [this] {
        Writers writers = master_.writers();
        std::erase_if(writers, [](const auto& entry) {
          return entry.second.open.external_id() != "unknown";
        });
        return writers;
      }(),
      40);
}

class MasterLinksTest : public ::testing::Test {
 protected:
  MasterLinks links_{{.server = "default:1", .stream_count_max = 2}, RealClock::Get(), [] {}};
  static std::shared_ptr<OutboundWriter> MakeWriter() {
    char pattern[] = "/tmp/stepwell-links-test-XXXXXX";
    Spool::Options options;
    options.writer = Uuid::Random();
    auto spool = Spool::Open(FileDescriptor(open(mkdtemp(pattern), O_RDONLY | O_DIRECTORY)),
                             options, RealClock::Get());
    std::filesystem::remove_all(pattern);
    return std::make_shared<OutboundWriter>(WriterIdentity(), AgentFace(), *std::move(spool));
  }
};

TEST_F(MasterLinksTest, TellsWhereAWriterGoes) {
  EXPECT_EQ(links_.Resolve(""), "default:1");
  EXPECT_EQ(links_.Resolve("other:2"), "other:2");
  EXPECT_EQ(links_.Resolve("offline"), "offline");
  EXPECT_EQ(links_.Resolve("nonsense"), "offline");
  const MasterLinks upload({.server = "default:1", .server_for_all = true}, RealClock::Get(),
                           [] {});
  for (const char* asked : {"", "other:2", "offline", "nonsense"}) {
    EXPECT_EQ(upload.Resolve(asked), "default:1");
  }
}

TEST_F(MasterLinksTest, StreamsAreBoundedAndEndWithTheirLastWriter) {
  const auto writer = MakeWriter();
  links_.SenderTo("offline").Add(writer);
  links_.Tend();
  EXPECT_EQ(links_.stream_count(), 0);
  const std::vector<std::string> servers = {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"};
  for (const std::string& server : servers) links_.SenderTo(server).Add(writer);
  links_.Tend();
  EXPECT_EQ(links_.stream_count(), 2);
  links_.SenderTo(servers[0]).Remove(*writer);
  links_.Tend();
  EXPECT_EQ(links_.stream_count(), 2) << "the third has its turn";
  links_.SenderTo(servers[1]).Remove(*writer);
  links_.SenderTo(servers[2]).Remove(*writer);
  links_.Tend();
  EXPECT_EQ(links_.stream_count(), 0);
}

}  // namespace
}  // namespace stepwell::agent
