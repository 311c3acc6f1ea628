// Reads of a real master, by its RPCs and by the subcommands of `stepwell`.
#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "nlohmann/json.hpp"
#include "stepwell/v1/query.grpc.pb.h"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;

struct Ran {
  std::string ending;
  std::string output;
};

class QueryTest : public SpineTest {
 protected:
  // `stepwell WORDS --server the master`; stdout and stderr together.
  Ran Command(std::vector<std::string> words, const std::string& server) {
    const std::string log = scratch_ / absl::StrCat("command", ++command_count_);
    words.insert(words.begin(), BuiltProgram("stepwell"));
    words.insert(words.end(), {"--server", server});
    ChildProcess child;
    child.Start(words, {}, log);
    Ran ran{.ending = child.Wait(absl::Seconds(30)), .output = {}};
    std::stringstream text;
    text << std::ifstream(log).rdbuf();
    ran.output = text.str();
    return ran;
  }
  Ran Command(std::vector<std::string> words) {
    return Command(std::move(words), master_->grpc_address());
  }

  // `count` samples 0, 1, 2, ... of one writer in chunks of 100, all acked.
  void Record(const std::string& trial, int count) {
    RawStream stream(*client_);
    const Uuid writer = Uuid::Random();
    Open(stream, writer, trial);
    std::uint64_t sequence = 0;
    for (int at = 0; at < count; at += 100) {
      std::vector<double> values;
      for (int i = at; i < at + 100; ++i) values.push_back(i);
      stream.Send(
          ChunkMessage(writer, ++sequence, OneColumn(1, start_us_ + at * 1000, 1000, values)));
    }
    ASSERT_TRUE(stream.WaitAck(writer, sequence).has_value()) << master_->LogTail();
  }

  std::vector<double> ReadAll(const std::string& trial) {
    const auto query = v1::QueryService::NewStub(client_->channel());
    grpc::ClientContext context;
    v1::ReadSamplesRequest request;
    request.mutable_trial()->set_external_id(trial);
    request.set_page_samples(64);
    const auto reader = query->ReadSamples(&context, request);
    std::vector<double> values;
    v1::ReadSamplesResponse response;
    while (reader->Read(&response)) {
      values.insert(values.end(), response.values().begin(), response.values().end());
    }
    const grpc::Status status = reader->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(response.has_completeness()) << "the last message says what the answer holds";
    EXPECT_EQ(response.completeness().samples_held(), static_cast<std::int64_t>(values.size()));
    return values;
  }

  const std::int64_t start_us_ = NowUs() - 60'000'000;
  int command_count_ = 0;
};

TEST_F(QueryTest, CommandsAnswerAndExitAsTheySay) {
  StartMaster();
  Record("run", 500);

  const Ran trials = Command({"trials", "--json"});
  EXPECT_EQ(trials.ending, "exit 0") << trials.output;
  const auto listed = nlohmann::json::parse(trials.output);
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0]["external_id"], "run");
  EXPECT_EQ(listed[0]["state"], "running");
  EXPECT_EQ(listed[0]["sample_count"], 500);

  const Ran series = Command({"series", "run"});
  EXPECT_EQ(series.ending, "exit 0");
  EXPECT_THAT(series.output, HasSubstr("test   value"));

  const Ran read = Command({"read", "run", "--limit", "2"});
  EXPECT_EQ(read.ending, "exit 0");
  EXPECT_THAT(read.output, HasSubstr("stopped after 2 samples"));

  const Ran report = Command({"report", "run", "--json"});
  EXPECT_EQ(report.ending, "exit 0") << report.output;
  const auto summary = nlohmann::json::parse(report.output);
  EXPECT_EQ(summary["metrics"][0]["max"], 499);
  EXPECT_EQ(summary["metrics"][0]["last"], 499);
  EXPECT_EQ(summary["metrics"][0]["mean"], 249.5);

  const Ran flush = Command({"admin", "flush", "--trial", "run"});
  EXPECT_EQ(flush.ending, "exit 0");
  EXPECT_THAT(flush.output, HasSubstr("SQL sees every acked sample"));
  EXPECT_EQ(Samples(listed[0]["trial_id"].get<std::int64_t>(), "value").size(), 500u);
  EXPECT_EQ(Command({"admin", "status"}).ending, "exit 0");

  const Ran unknown = Command({"report", "walk"});
  EXPECT_EQ(unknown.ending, "exit 1");
  EXPECT_THAT(unknown.output, HasSubstr("there is no trial 'walk' in project 'default'"));
  EXPECT_EQ(Command({"report", "run", "--rank", "x"}).ending, "exit 64");
  EXPECT_EQ(Command({"trials"}, "127.0.0.1:1").ending, "exit 69");
}

TEST_F(QueryTest, ReadsAfterAKillSeeWhatWasAcked) {
  StartMaster();
  Record("run", 300);
  const std::vector<double> before = ReadAll("run");
  ASSERT_EQ(before.size(), 300u);
  master_->Kill();
  ASSERT_TRUE(master_->StartAndWait()) << master_->LogTail();
  client_ = std::make_unique<IngestClient>(master_->grpc_address());
  EXPECT_EQ(ReadAll("run"), before);

  const auto query = v1::QueryService::NewStub(client_->channel());
  grpc::ClientContext context;
  v1::LatestValuesRequest request;
  request.mutable_trial()->set_external_id("run");
  v1::LatestValuesResponse response;
  const grpc::Status status = query->LatestValues(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.values_size(), 1);
  EXPECT_EQ(response.values(0).value(), 299);
  EXPECT_EQ(response.values(0).time_us(), start_us_ + 299'000);
}

}  // namespace
}  // namespace stepwell::testing
