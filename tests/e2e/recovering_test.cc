// A master that was killed reads its journal again. Ingest does not wait for that; reads of the
// trials concerned do for a while, and then say `recovering`; other trials do not notice.
#include <unistd.h>

#include <atomic>
#include <fstream>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "base/worker.h"
#include "stepwell/v1/query.grpc.pb.h"
#include "tests/e2e/spine.h"

namespace stepwell::testing {
namespace {

struct Answer {
  grpc::Status status;
  v1::Completeness completeness;
  int value_count = 0;
};

class RecoveringTest : public SpineTest {
 protected:
  // The journal is not read while this file is there.
  void HoldReplay() { std::ofstream(hold_) << "held"; }
  void ReleaseReplay() { unlink(hold_.c_str()); }

  void RestartHeld() {
    master_->Kill();
    HoldReplay();
    ASSERT_TRUE(master_->StartAndWait({.failpoints = "before_replay=while:" + hold_}))
        << master_->LogTail();
    client_ = std::make_unique<IngestClient>(master_->grpc_address());
    query_ = v1::QueryService::NewStub(client_->channel());
  }

  Answer Latest(const std::string& trial, absl::Duration patience) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + patience));
    v1::LatestValuesRequest request;
    request.mutable_trial()->set_external_id(trial);
    v1::LatestValuesResponse response;
    Answer answer;
    answer.status = query_->LatestValues(&context, request, &response);
    answer.completeness = response.completeness();
    answer.value_count = response.values_size();
    return answer;
  }

  Answer Read(const std::string& trial, absl::Duration patience) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + patience));
    v1::ReadSamplesRequest request;
    request.mutable_trial()->set_external_id(trial);
    const auto reader = query_->ReadSamples(&context, request);
    v1::ReadSamplesResponse response;
    Answer answer;
    while (reader->Read(&response)) {
      answer.value_count += response.values_size();
      answer.completeness = response.completeness();
    }
    answer.status = reader->Finish();
    return answer;
  }

  template <typename Request, typename Response>
  void ExpectRecovering(grpc::Status (v1::QueryService::Stub::*method)(grpc::ClientContext*,
                                                                       const Request&, Response*),
                        Request request = {}) {
    SCOPED_TRACE(Request::descriptor()->name());
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Milliseconds(1500)));
    request.mutable_trial()->set_external_id("unfolded");
    Response response;
    const grpc::Status status = (query_.get()->*method)(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(response.completeness().recovering());
  }

  const std::string hold_ = scratch_ / "hold";
  std::unique_ptr<v1::QueryService::Stub> query_;
};

TEST_F(RecoveringTest, IngestGoesOnReadsWaitAndThenSaySo) {
  const absl::Cleanup release = [this] { ReleaseReplay(); };
  StartMaster({"--fold-interval=10m"});
  const Uuid folded_writer = Uuid::Random();
  const Uuid writer = Uuid::Random();
  std::int64_t trial_id = 0;
  {
    RawStream stream(*client_);
    Open(stream, folded_writer, "folded");
    ASSERT_TRUE(stream.Send(ChunkMessage(folded_writer, 1, OneColumn(1, NowUs(), 1000, {7, 8}))));
    ASSERT_TRUE(stream.WaitAck(folded_writer, 1).has_value());
    ASSERT_TRUE(client_->Flush().ok());
    trial_id = Open(stream, writer, "unfolded").trial_id();
    for (std::uint64_t sequence = 1; sequence <= 20; ++sequence) {
      ASSERT_TRUE(
          stream.Send(ChunkMessage(writer, sequence, OneColumn(1, NowUs(), 1, {1, 2, 3, 4, 5}))));
    }
    ASSERT_TRUE(stream.WaitAck(writer, 20).has_value());
  }
  ASSERT_NO_FATAL_FAILURE(RestartHeld());
  EXPECT_NE(
      master_->Get("/readyz").find("\"reason\":\"recovering: the journal is being replayed\""),
      std::string::npos)
      << master_->Get("/readyz");
  EXPECT_EQ(master_->Get("/readyz").substr(0, 12), "HTTP/1.1 200") << "ingest is open";
  EXPECT_EQ(client_->GetStatus().role(), "recovering");

  // A read with patience waits for all that follows.
  std::atomic<bool> answered = false;
  Answer patient;
  Worker reader("reader", [&] {
    patient = Read("unfolded", absl::Seconds(19));
    answered = true;
  });

  RawStream stream(*client_);
  EXPECT_EQ(Open(stream, writer, "unfolded", 0).committed_sequence(), 20U);
  ASSERT_TRUE(stream.Send(ChunkMessage(writer, 21, OneColumn(1, NowUs(), 1000, {6}))));
  ASSERT_TRUE(stream.WaitAck(writer, 21).has_value()) << "ingest does not wait for the journal";

  ExpectRecovering(&v1::QueryService::Stub::GetTrial);
  ExpectRecovering(&v1::QueryService::Stub::ListSeries);
  ExpectRecovering(&v1::QueryService::Stub::LatestValues);
  ExpectRecovering(&v1::QueryService::Stub::SummarizeTimings);
  v1::QueryBucketsRequest buckets;
  buckets.mutable_time_range()->set_start_time_us(0);
  buckets.mutable_time_range()->set_end_time_us(NowUs() + 1'000'000);
  ExpectRecovering(&v1::QueryService::Stub::QueryBuckets, buckets);
  const Answer hasty = Read("unfolded", absl::Milliseconds(1500));
  EXPECT_TRUE(hasty.status.ok()) << hasty.status.error_message();
  EXPECT_TRUE(hasty.completeness.recovering());
  EXPECT_EQ(hasty.value_count, 1) << "what came since the restart, and nothing by halves";
  const Answer other = Latest("folded", absl::Seconds(10));
  EXPECT_TRUE(other.status.ok()) << other.status.error_message();
  EXPECT_FALSE(other.completeness.recovering());
  EXPECT_EQ(other.value_count, 1);
  grpc::ClientContext flush_context;
  v1::FlushResponse flushed;
  const grpc::Status flush = client_->admin().Flush(&flush_context, {}, &flushed);
  EXPECT_EQ(flush.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(flush.error_message(), "recovering: the journal is being replayed");
  EXPECT_FALSE(answered) << patient.status.error_message();

  ReleaseReplay();
  reader.Join();
  EXPECT_TRUE(patient.status.ok()) << patient.status.error_message();
  EXPECT_FALSE(patient.completeness.recovering());
  EXPECT_EQ(patient.value_count, 101) << "each once";
  const Answer after = Latest("unfolded", absl::Seconds(10));
  EXPECT_FALSE(after.completeness.recovering());
  ASSERT_TRUE(client_->Flush().ok());
  EXPECT_EQ(Samples(trial_id, "value").size(), 101U);
  EXPECT_EQ(master_->CountInLog("journal_replayed"), 1);
}

TEST_F(RecoveringTest, ReadsThatWaitForTheJournalLeaveTheirTurnToOthers) {
  const absl::Cleanup release = [this] { ReleaseReplay(); };
  StartMaster({"--fold-interval=10m"});
  const Uuid writer = Uuid::Random();
  {
    RawStream stream(*client_);
    Open(stream, Uuid::Random(), "folded");
    Open(stream, writer, "unfolded");
    ASSERT_TRUE(stream.Send(ChunkMessage(writer, 1, OneColumn(1, NowUs(), 1, {1, 2, 3}))));
    ASSERT_TRUE(stream.WaitAck(writer, 1).has_value());
  }
  ASSERT_NO_FATAL_FAILURE(RestartHeld());
  // More than may run at once, 16.
  constexpr int kCount = 40;
  std::vector<Answer> answers(kCount);
  std::atomic<int> answered = 0;
  std::vector<Worker> readers;
  for (Answer& answer : answers) {
    readers.emplace_back("reader", [this, &answer, &answered] {
      // All at once is more than may wait for a turn: some have to come again, as they are told.
      do {
        answer = Read("unfolded", absl::Seconds(19));
      } while (answer.status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
      ++answered;
    });
  }
  EXPECT_TRUE(Eventually([&] { return Latest("folded", absl::Seconds(10)).status.ok(); },
                         absl::Seconds(10)))
      << "those who wait for the journal hold all turns";
  EXPECT_EQ(answered, 0);
  ReleaseReplay();
  for (Worker& reader : readers) reader.Join();
  for (const Answer& answer : answers) {
    EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
    EXPECT_FALSE(answer.completeness.recovering());
    EXPECT_EQ(answer.value_count, 3);
  }
}

}  // namespace
}  // namespace stepwell::testing
