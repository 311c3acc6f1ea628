// The end of a writer and of a master: what is acked is folded at Close and at SIGTERM; at SIGTERM the
// last acks are given, and nobody misses anything afterwards.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

// Nothing but an orderly end folds within a test.
const std::vector<std::string> kNoFolds = {"--fold-interval", "10m"};

// Keeps commits of a trial's writers waiting while it lives.
class WriterLock {
 public:
  WriterLock(const std::string& url, std::int64_t trial_id) {
    auto opened = PgConnection::Open({.url = url});
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (!opened.ok()) return;
    connection_ = *std::move(opened);
    EXPECT_TRUE(connection_->Begin().ok());
    EXPECT_TRUE(
        connection_
            ->Exec("select 1 from stepwell.writers where trial_id = $1 for update", {trial_id})
            .ok());
  }
  // Until a commit stands at the lock.
  bool WaitForCommit(const std::string& url) const {
    return Eventually(
        [&] {
          const auto watcher = PgConnection::Open({.url = url});
          if (!watcher.ok()) return false;
          const auto waiting = (*watcher)->Exec(
              "select count(*) from pg_stat_activity where wait_event_type = 'Lock'");
          return waiting.ok() && waiting->Int64(0, 0) > 0;
        },
        absl::Seconds(20));
  }

 private:
  std::unique_ptr<PgConnection> connection_;
};

class DrainTest : public SpineTest {
 protected:
  // What the master says of itself once it has read all that the one before it left.
  v1::GetStatusResponse StatusOfOwner() {
    v1::GetStatusResponse status;
    EXPECT_TRUE(Eventually(
        [&] {
          status = client_->GetStatus();
          return status.role() == "owner";
        },
        absl::Seconds(20)))
        << status.ShortDebugString();
    return status;
  }

  void Restart() {
    ASSERT_TRUE(master_->StartAndWait()) << master_->LogTail();
    client_ = std::make_unique<IngestClient>(master_->grpc_address());
  }

  // All that was handed to the stream before has been read by the master.
  void AwaitRead(RawStream& stream) {
    ASSERT_TRUE(stream.Send(v1::StreamChunksRequest()));
    ASSERT_TRUE(stream
                    .WaitFor([](const auto& answer) {
                      return answer.refused().reason() == "MESSAGE_UNKNOWN";
                    })
                    .has_value());
  }

  const Uuid writer_ = Uuid::Random();
};

TEST_F(DrainTest, WhatIsAckedIsFoldedAndNothingIsReplayed) {
  StartMaster(kNoFolds);
  RawStream stream(*client_);
  const std::int64_t trial_id = Open(stream, writer_, "drained").trial_id();
  ASSERT_TRUE(stream.Send(ChunkMessage(writer_, 1, OneColumn(1, NowUs(), 1000, {1, 2, 3}))));
  ASSERT_TRUE(stream.WaitAck(writer_, 1).has_value());
  ASSERT_TRUE(Samples(trial_id, "value").empty()) << "nothing folds by itself here";
  EXPECT_EQ(master_->Stop(), "exit 0") << master_->LogTail();
  while (stream.Next()) {
  }
  const grpc::Status end = stream.Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(end.error_message(), "this master is stopping");

  Restart();
  EXPECT_EQ(StatusOfOwner().samples_replayed(), 0U);
  EXPECT_EQ(Samples(trial_id, "value").size(), 3U) << "in SQL without a flush";
}

TEST_F(DrainTest, WhatAWriterSentIsSoonInSqlOnceItHasClosed) {
  StartMaster(kNoFolds);
  RawStream stream(*client_);
  const std::int64_t trial_id = Open(stream, writer_, "closed").trial_id();
  ASSERT_TRUE(stream.Send(ChunkMessage(writer_, 1, OneColumn(1, NowUs(), 1000, {1, 2, 3}))));
  ASSERT_TRUE(stream.WaitAck(writer_, 1).has_value());
  ASSERT_TRUE(Samples(trial_id, "value").empty()) << "nothing folds by itself here";
  ASSERT_TRUE(stream.Send(CloseMessage(writer_, 1)));
  ASSERT_TRUE(stream.WaitFor([](const auto& answer) { return answer.ack().closed(); }).has_value());
  EXPECT_TRUE(Eventually([&] { return Samples(trial_id, "value").size() == 3; }, absl::Seconds(20)))
      << master_->LogTail();
}

TEST_F(DrainTest, WhatWasTakenIsCommittedAndAckedBeforeTheStreamEnds) {
  StartMaster(kNoFolds);
  RawStream stream(*client_);
  const std::int64_t trial_id = Open(stream, writer_, "last acks").trial_id();
  ASSERT_TRUE(stream.Send(ChunkMessage(writer_, 1, OneColumn(1, NowUs(), 1000, {1}))));
  ASSERT_TRUE(stream.WaitAck(writer_, 1).has_value());
  {
    const WriterLock lock(master_->database_url(), trial_id);
    for (std::uint64_t i = 2; i <= 5; ++i) {
      const auto value = static_cast<double>(i);
      ASSERT_TRUE(stream.Send(ChunkMessage(writer_, i, OneColumn(1, NowUs(), 1000, {value}))));
    }
    AwaitRead(stream);
    ASSERT_TRUE(lock.WaitForCommit(master_->database_url()));
    EXPECT_EQ(master_->Stop(absl::ZeroDuration()), "still running");
    ASSERT_TRUE(Eventually([&] { return master_->CountInLog("stopping") > 0; }, absl::Seconds(20)));
  }
  EXPECT_TRUE(stream.WaitAck(writer_, 5).has_value()) << master_->LogTail();
  while (stream.Next()) {
  }
  EXPECT_EQ(stream.Finish().error_message(), "this master is stopping");
  EXPECT_EQ(master_->Stop(), "exit 0") << master_->LogTail();

  Restart();
  EXPECT_EQ(StatusOfOwner().samples_replayed(), 0U);
  EXPECT_EQ(Samples(trial_id, "value").size(), 5U);
}

// Acks that one commit has for all writers of a stream go together. At an orderly end, too, none of them stays behind: not the one
// that was taken to be written next while the stream was told to end.
TEST_F(DrainTest, EachWriterOfAStreamHasItsLastAckBeforeTheStreamEnds) {
  const std::string gate = scratch_ / "gate";
  StartMaster(kNoFolds, absl::StrCat("ack_written=while:", gate));
  RawStream stream(*client_);
  std::vector<Uuid> writers;
  std::int64_t trial_id = 0;
  for (int i = 0; i < 2; ++i) {
    writers.push_back(Uuid::Random());
    trial_id = Open(stream, writers.back(), "many writers").trial_id();
    ASSERT_TRUE(stream.Send(ChunkMessage(writers.back(), 1, OneColumn(1, NowUs(), 1000, {1}))));
    ASSERT_TRUE(stream.WaitAck(writers.back(), 1).has_value());
  }
  {
    const WriterLock lock(master_->database_url(), trial_id);
    for (const Uuid& writer : writers) {
      ASSERT_TRUE(stream.Send(ChunkMessage(writer, 2, OneColumn(1, NowUs(), 1000, {2}))));
    }
    AwaitRead(stream);
    ASSERT_TRUE(lock.WaitForCommit(master_->database_url()));
    // From here on no write of an ack is over.
    std::ofstream(gate) << "closed";
    EXPECT_EQ(master_->Stop(absl::ZeroDuration()), "still running");
    ASSERT_TRUE(Eventually([&] { return master_->CountInLog("stopping") > 0; }, absl::Seconds(20)));
  }
  // Folded is what is left once streams were told to end.
  ASSERT_TRUE(Eventually([&] { return Samples(trial_id, "value").size() == 4; }, absl::Seconds(20)))
      << master_->LogTail();
  std::filesystem::remove(gate);
  std::map<std::string, std::uint64_t> acked;
  while (const auto answer = stream.Next()) {
    if (answer->has_ack()) acked[answer->ack().writer()] = answer->ack().committed_sequence();
  }
  EXPECT_EQ(stream.Finish().error_message(), "this master is stopping");
  for (const Uuid& writer : writers) EXPECT_EQ(acked[writer.ToBytes()], 2U) << master_->LogTail();
  EXPECT_EQ(master_->Stop(), "exit 0") << master_->LogTail();
}

TEST_F(DrainTest, WhatWasSentIsAckedOrStoredOnceByTheNext) {
  StartMaster(kNoFolds);
  constexpr std::uint64_t kChunkCount = 2000;
  std::int64_t trial_id = 0;
  std::uint64_t acked = 0;
  const auto chunk = [&](std::uint64_t sequence) {
    return ChunkMessage(writer_, sequence,
                        OneColumn(1, NowUs(), 1000, {static_cast<double>(sequence)}));
  };
  {
    RawStream stream(*client_);
    trial_id = Open(stream, writer_, "in flight").trial_id();
    std::uint64_t sent = 0;
    while (sent < kChunkCount && stream.Send(chunk(sent + 1))) {
      if (++sent != kChunkCount / 4) continue;
      const auto first = stream.WaitAck(writer_, 1);
      ASSERT_TRUE(first.has_value());
      acked = first->committed_sequence();
      master_->Stop(absl::ZeroDuration());
    }
    while (const auto answer = stream.Next()) {
      if (answer->has_ack()) acked = answer->ack().committed_sequence();
    }
    EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  }
  EXPECT_EQ(master_->Stop(), "exit 0") << master_->LogTail();

  Restart();
  EXPECT_EQ(StatusOfOwner().samples_replayed(), 0U);
  RawStream stream(*client_);
  const v1::Opened opened = Open(stream, writer_, "in flight");
  EXPECT_EQ(opened.committed_sequence(), acked) << "what was committed was acked";
  for (std::uint64_t i = acked + 1; i <= kChunkCount; ++i) ASSERT_TRUE(stream.Send(chunk(i)));
  ASSERT_TRUE(stream.WaitAck(writer_, kChunkCount).has_value()) << master_->LogTail();
  ASSERT_TRUE(client_->Flush().ok());
  std::multiset<double> stored;
  for (const StoredSample& sample : Samples(trial_id, "value")) stored.insert(sample.value);
  EXPECT_EQ(stored.size(), kChunkCount);
  EXPECT_EQ(std::set<double>(stored.begin(), stored.end()).size(), kChunkCount);
}

TEST_F(DrainTest, TheEndOfATrialIsNotForgotten) {
  StartMaster(kNoFolds);
  RawStream stream(*client_);
  const std::int64_t trial_id = Open(stream, writer_, "ended").trial_id();
  ASSERT_TRUE(stream.Send(ChunkMessage(writer_, 1, OneColumn(1, NowUs(), 1000, {1}))));
  ASSERT_TRUE(stream.Send(CloseMessage(writer_, 1)));
  ASSERT_TRUE(stream.WaitFor([](const auto& answer) { return answer.ack().closed(); }).has_value());
  // Within the two seconds after which the master would have looked at its trials.
  EXPECT_EQ(master_->Stop(), "exit 0") << master_->LogTail();
  Restart();
  EXPECT_TRUE(Eventually(
      [&] {
        return QueryNumber("select state from stepwell.trials where trial_id = $1", trial_id) == 2;
      },
      absl::Seconds(20)))
      << "the trial is not completed";
}

}  // namespace
}  // namespace stepwell::testing
