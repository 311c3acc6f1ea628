// Two masters on one database, one of which is stopped and goes on later.
#include "tests/e2e/follow_client.h"
#include "tests/e2e/spine.h"

namespace stepwell::testing {
namespace {

class StandbyTest : public SpineTest {};

// Folded and not merged is what a standby's heads know nothing of.
void ExpectAllThatIsFoldedAndThatItIsNotAll(const MasterProcess& standby, const std::string& trial,
                                            const std::vector<double>& values) {
  const auto query = QueryStub(standby.grpc_address());
  grpc::ClientContext context;
  v1::ReadSamplesRequest request;
  request.mutable_trial()->set_external_id(trial);
  const auto reader = query->ReadSamples(&context, request);
  std::vector<double> read;
  bool recovering = false;
  for (v1::ReadSamplesResponse response; reader->Read(&response);) {
    read.insert(read.end(), response.values().begin(), response.values().end());
    recovering = response.completeness().recovering();
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(read, values);
  EXPECT_TRUE(recovering) << "an export would pass for whole";
}

TEST_F(StandbyTest, ASecondMasterStandsByAndTakesOver) {
  StartMaster();
  EXPECT_EQ(master_->Get("/readyz").substr(0, 12), "HTTP/1.1 200");
  MasterProcess::Options options;
  options.scratch = scratch_.path();
  options.name = "second";
  options.database_url = master_->database_url();
  options.flags = {"--master-id=second"};
  MasterProcess second(options);
  second.Start({});
  ASSERT_TRUE(
      Eventually([&] { return second.Get("/readyz").find("standby: ") != std::string::npos; },
                 absl::Seconds(30)))
      << second.LogTail();
  EXPECT_EQ(second.Get("/readyz").substr(0, 12), "HTTP/1.1 503");
  EXPECT_EQ(second.Get("/livez").substr(0, 12), "HTTP/1.1 200");
  const Uuid writer = Uuid::Random();
  std::int64_t trial_id = 0;
  {
    RawStream stream(*client_);
    trial_id = Open(stream, writer, "takeover").trial_id();
    ASSERT_TRUE(stream.Send(ChunkMessage(writer, 1, OneColumn(1, NowUs(), 1000, {1, 2}))));
    ASSERT_TRUE(stream.WaitAck(writer, 1).has_value());
    ASSERT_TRUE(client_->Flush().ok());
    ExpectAllThatIsFoldedAndThatItIsNotAll(second, "takeover", {1, 2});
    master_->Pause();
    ASSERT_TRUE(second.WaitReady(absl::Seconds(40))) << second.LogTail();
    IngestClient other(second.grpc_address());
    RawStream moved(other);
    EXPECT_EQ(Open(moved, writer, "takeover").committed_sequence(), 1U);
    ASSERT_TRUE(moved.Send(ChunkMessage(writer, 2, OneColumn(1, NowUs(), 1000, {3}))));
    ASSERT_TRUE(moved.WaitAck(writer, 2).has_value());
    // The former owner wakes up with this in its socket: it must not be stored there.
    stream.Send(ChunkMessage(writer, 2, OneColumn(1, NowUs(), 1000, {99})));
    master_->Continue();
    EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::UNAVAILABLE) << master_->LogTail();
    ASSERT_TRUE(other.Flush().ok()) << second.LogTail();
  }
  EXPECT_TRUE(Eventually(
      [&] { return master_->Get("/readyz").find("standby: second") != std::string::npos; },
      absl::Seconds(20)))
      << master_->LogTail();
  const auto samples = Samples(trial_id, "value");
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_EQ(samples.back().value, 3);
  EXPECT_EQ(second.Stop(), "exit 0") << second.LogTail();
}

}  // namespace
}  // namespace stepwell::testing
