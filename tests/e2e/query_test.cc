// Reads of a real master, by its RPCs and by the subcommands of `stepwell`.
#include <gmock/gmock.h>

#include "nlohmann/json.hpp"
#include "stepwell/v1/query.grpc.pb.h"
#include "tests/e2e/commands.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;

class QueryTest : public CommandsTest {
 protected:
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

TEST_F(QueryTest, NewestValuesOfTrialsThatLeftMemoryComeFromRows) {
  StartMaster({"--latest-bytes=65536"});
  // About 60 bytes of names and 800 of values each: a few hundred trials are several times the bound.
  constexpr int kTrialCount = 300;
  RawStream stream(*client_);
  const Uuid late = Uuid::Random();
  Open(stream, late, "late");
  ASSERT_TRUE(stream.Send(ChunkMessage(late, 1, OneColumn(1, start_us_, 1000, {1, 2, 3}))));
  ASSERT_TRUE(stream.WaitAck(late, 1).has_value());
  ASSERT_TRUE(client_->Flush().ok());
  for (int trial = 0; trial < kTrialCount; ++trial) {
    const Uuid writer = Uuid::Random();
    Open(stream, writer, absl::StrCat("trial", trial));
    std::vector<DefinitionFields> more;
    for (std::uint32_t ref = 2; ref <= 5; ++ref) {
      more.push_back({.ref = ref, .name = absl::StrCat("value", ref)});
    }
    ASSERT_TRUE(stream.Send(DefinitionMessage(writer, more)));
    v1::ChunkBody body = OneColumn(1, start_us_, 1000, {1, 1.0 * trial});
    for (std::uint32_t ref = 2; ref <= 5; ++ref) {
      *body.mutable_tables(0)->add_columns() = body.tables(0).columns(0);
      body.mutable_tables(0)->mutable_columns()->rbegin()->set_ref(ref);
    }
    ASSERT_TRUE(stream.Send(ChunkMessage(writer, 1, body)));
    ASSERT_TRUE(stream.Send(CloseMessage(writer, 1)));
    ASSERT_TRUE(stream.WaitAck(writer, 1).has_value()) << master_->LogTail();
  }
  ASSERT_TRUE(client_->Flush().ok());
  const auto query = v1::QueryService::NewStub(client_->channel());
  const auto latest = [&](const std::string& trial) {
    grpc::ClientContext context;
    v1::LatestValuesRequest request;
    request.mutable_trial()->set_external_id(trial);
    v1::LatestValuesResponse response;
    const grpc::Status status = query->LatestValues(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  };
  // Twice: the second pass finds some of what the first brought back, and pushes it out again.
  for (int trial = 0; trial < 2 * kTrialCount; trial += 7) {
    const auto values = latest(absl::StrCat("trial", trial % kTrialCount));
    ASSERT_EQ(values.values_size(), 5) << trial;
    for (const auto& value : values.values()) {
      EXPECT_EQ(value.value(), trial % kTrialCount);
      EXPECT_EQ(value.time_us(), start_us_ + 1000);
    }
  }
  // Its writer never closed and its trial left memory: an older sample is not its newest.
  ASSERT_TRUE(stream.Send(ChunkMessage(late, 2, OneColumn(1, start_us_ - 5000, 1000, {-1}))));
  ASSERT_TRUE(stream.WaitAck(late, 2).has_value()) << master_->LogTail();
  const auto values = latest("late");
  ASSERT_EQ(values.values_size(), 1);
  EXPECT_EQ(values.values(0).value(), 3);
  ASSERT_TRUE(client_->Flush().ok()) << "and it is folded where it stood";
  EXPECT_EQ(latest("late").values(0).value(), 3);
  EXPECT_EQ(master_->CountInLog("ownership_lost"), 0) << master_->LogTail();
  EXPECT_EQ(ReadAll("late").size(), 4u);
}

}  // namespace
}  // namespace stepwell::testing
