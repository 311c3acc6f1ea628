// FollowSamples of a real master: how soon a push comes, where it goes on, what a slow reader costs, and
// that nobody gets a sample twice or misses one.
#include "absl/time/clock.h"
#include "tests/e2e/error_details.h"
#include "tests/e2e/follow_client.h"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>
#include <set>
#include <tuple>

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;

using Key = std::tuple<std::int32_t, std::int64_t, std::int32_t, double>;

std::uint64_t TestSeed() {
  const char* given = std::getenv("STEPWELL_TEST_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "STEPWELL_TEST_SEED=" << seed << std::endl;
  return seed;
}

class FollowTest : public SpineTest {
 protected:
  // A writer whose streams come and go with masters.
  struct Feed {
    Uuid writer = Uuid::Random();
    std::uint64_t sequence = 0;
    double next_value = 0;
    std::unique_ptr<RawStream> stream;
  };

  void Connect(Feed& feed, const std::string& trial, int rank = 0) {
    feed.stream = std::make_unique<RawStream>(*client_);
    Open(*feed.stream, feed.writer, trial, rank);
  }
  // `count` samples in one chunk; returns when it is acked.
  void Send(Feed& feed, int count) {
    std::vector<double> values;
    for (int i = 0; i < count; ++i) values.push_back(feed.next_value++);
    const std::int64_t first_us = start_us_ + static_cast<std::int64_t>(values[0]) * 1000;
    ASSERT_TRUE(feed.stream->Send(
        ChunkMessage(feed.writer, ++feed.sequence, OneColumn(1, first_us, 1000, values))));
    ASSERT_TRUE(feed.stream->WaitAck(feed.writer, feed.sequence).has_value()) << master_->LogTail();
  }
  void Close(Feed& feed) {
    ASSERT_TRUE(feed.stream->Send(CloseMessage(feed.writer, feed.sequence)));
  }
  void Restart() {
    ASSERT_TRUE(master_->StartAndWait()) << master_->LogTail();
    client_ = std::make_unique<IngestClient>(master_->grpc_address());
  }

  static std::vector<Key> Sorted(const std::vector<FollowedSample>& samples) {
    std::vector<Key> keys;
    for (const FollowedSample& one : samples) {
      keys.emplace_back(one.series_no, one.time_us, one.batch, one.value);
    }
    std::sort(keys.begin(), keys.end());
    return keys;
  }
  std::vector<Key> Stored(const std::string& trial, std::int64_t from_us = 0) {
    const auto query = QueryStub(master_->grpc_address());
    grpc::ClientContext context;
    v1::ReadSamplesRequest request;
    request.mutable_trial()->set_external_id(trial);
    request.mutable_time_range()->set_start_time_us(from_us);
    const auto reader = query->ReadSamples(&context, request);
    std::vector<Key> keys;
    v1::ReadSamplesResponse response;
    while (reader->Read(&response)) {
      for (int i = 0; i < response.values_size(); ++i) {
        keys.emplace_back(response.series().series_no(), response.timestamps_us(i),
                          response.batches(i), response.values(i));
      }
    }
    EXPECT_TRUE(reader->Finish().ok());
    std::sort(keys.begin(), keys.end());
    return keys;
  }
  std::int64_t ResidentKib() const {
    std::ifstream status(absl::StrCat("/proc/", master_->pid(), "/status"));
    for (std::string word; status >> word;) {
      if (word == "VmRSS:") {
        std::int64_t kib = 0;
        status >> kib;
        return kib;
      }
    }
    return 0;
  }

  const std::int64_t start_us_ = NowUs() - 3'600'000'000;
};

// bench/follow says how soon. Here nothing else comes that could bring it: no fold, no further chunk.
TEST_F(FollowTest, EachAckBringsItsPushBeforeAnythingElseIsSent) {
  StartMaster({"--fold-interval", "60s"});
  Feed feed;
  Connect(feed, "run");
  FollowClient follower(master_->grpc_address(), FollowRequest("run"));
  ASSERT_TRUE(follower.WaitForMessages(1)) << master_->LogTail();
  constexpr std::size_t kCount = 100;
  for (std::size_t i = 0; i < kCount; ++i) {
    Send(feed, 1);
    ASSERT_TRUE(follower.WaitForSamples(i + 1)) << "of chunk " << feed.sequence;
  }
  const std::vector<FollowedSample> samples = follower.samples();
  ASSERT_EQ(samples.size(), kCount);
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_EQ(samples[i].value, static_cast<double>(i));
  EXPECT_EQ(follower.messages()[0].completeness().samples_held(), 0);
}

TEST_F(FollowTest, EndsWithTheTrialAndAllOfIt) {
  StartMaster();
  Feed feed;
  Connect(feed, "run");
  FollowClient follower(master_->grpc_address(), FollowRequest("run"));
  ASSERT_TRUE(follower.WaitForMessages(1));
  Send(feed, 100);
  Close(feed);
  const grpc::Status status = follower.WaitForEnd();
  EXPECT_TRUE(status.ok()) << status.error_message();
  const auto messages = follower.messages();
  EXPECT_EQ(messages.back().state(), v1::TRIAL_STATE_COMPLETED);
  EXPECT_EQ(messages.back().completeness().samples_held(), 100);
  EXPECT_TRUE(messages.back().completeness().contiguous());
  EXPECT_EQ(Sorted(follower.samples()), Stored("run"));
}

TEST_F(FollowTest, NobodyGetsASampleTwiceOrMissesOne) {
  const std::uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  StartMaster({"--fold-interval", "1s"});
  constexpr int kWriters = 4;
  std::vector<Feed> feeds(kWriters);
  for (int rank = 0; rank < kWriters; ++rank) {
    Connect(feeds[static_cast<std::size_t>(rank)], "run", rank);
  }
  std::vector<std::unique_ptr<FollowOn>> followers;
  for (std::uint64_t i = 0; i < 3; ++i) {
    followers.push_back(std::make_unique<FollowOn>(master_->grpc_address(), FollowRequest("run"),
                                                   seed * 1000 + i * 100'000));
  }
  // Never hangs up, so that it is there when a master stops.
  followers.push_back(
      std::make_unique<FollowOn>(master_->grpc_address(), FollowRequest("run"), /*seed=*/0));
  FollowOn& constant = *followers.back();
  const auto sent = [&] {
    double all = 0;
    for (const Feed& feed : feeds) all += feed.next_value;
    return static_cast<std::size_t>(all);
  };
  // Their places begin before the first sample.
  for (const auto& follower : followers) ASSERT_TRUE(follower->WaitForBegin());
  for (int phase = 0; phase < 4; ++phase) {
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", phase ", phase));
    const std::size_t sent_before = sent();
    std::vector<Worker> writers;
    for (int rank = 0; rank < kWriters; ++rank) {
      writers.emplace_back("writer", [&, rank, chunks = 20 + random() % 60, salt = random()] {
        std::mt19937_64 own(salt);
        Feed& feed = feeds[static_cast<std::size_t>(rank)];
        if (feed.stream == nullptr) Connect(feed, "run", rank);
        for (std::uint64_t i = 0; i < chunks; ++i) Send(feed, 1 + static_cast<int>(own() % 200));
      });
    }
    for (std::uint64_t i = random() % 3; i > 0; --i) EXPECT_TRUE(client_->Flush().ok());
    for (Worker& writer : writers) writer.Join();
    if (phase == 3) break;
    // A stop sends what is left to who is there. Who hangs up just then has the place of its last message,
    // which is older than what the next master holds of samples that were folded.
    const bool kill = random() % 2 == 0;
    for (const auto& follower : followers) {
      const bool is_there = !kill && follower.get() == &constant;
      const std::size_t wanted = is_there ? sent_before + 1 : sent();
      ASSERT_TRUE(follower->WaitForSamples(wanted, absl::Seconds(60)))
          << wanted << " expected: " << follower->Describe() << "\n"
          << master_->LogTail();
    }
    for (Feed& feed : feeds) feed.stream.reset();
    if (kill) {
      master_->Kill();
    } else {
      EXPECT_EQ(master_->Stop(), "exit 0");
    }
    Restart();
  }
  for (Feed& feed : feeds) Close(feed);
  const std::vector<Key> stored = Stored("run");
  for (const auto& follower : followers) {
    EXPECT_TRUE(follower->WaitForEnd(absl::Seconds(30))) << follower->Describe() << "\n"
                                                         << master_->LogTail();
    const std::vector<Key> followed = Sorted(follower->samples());
    EXPECT_EQ(followed.size(), stored.size()) << "seed " << seed;
    EXPECT_TRUE(followed == stored) << "seed " << seed;
    EXPECT_GE(follower->call_count(), 4) << "one for each master";
  }
}

TEST_F(FollowTest, ASlowReaderCostsLittleAndIsToldWhatToRead) {
  StartMaster({"--follow-bytes=1048576", "--fold-bytes=1048576"});
  Feed feed;
  Connect(feed, "run");
  // About 1 MB of memory each.
  constexpr int kChunkSamples = 60'000;
  constexpr int kChunks = 30;
  const auto pump = [&] {
    for (int i = 0; i < kChunks; ++i) {
      Send(feed, kChunkSamples);
      if (i % 10 == 9) {
        ASSERT_TRUE(client_->Flush().ok());
      }
    }
  };
  pump();
  const std::int64_t before_kib = ResidentKib();
  FollowClient follower(master_->grpc_address(), FollowRequest("run"));
  ASSERT_TRUE(follower.WaitForMessages(1));
  follower.Pause();
  pump();
  const std::int64_t after_kib = ResidentKib();
  std::cout << "resident before " << before_kib / 1024 << " MiB, with a slow reader "
            << after_kib / 1024 << " MiB, for " << kChunks << " MB" << std::endl;
  EXPECT_LT(after_kib - before_kib, 15 << 10);
  follower.Resume();
  const grpc::Status status = follower.WaitForEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::OUT_OF_RANGE) << status.error_message();
  const auto info = DetailOf<google::rpc::ErrorInfo>(status);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason(), "PLACE_NOT_HELD");
  std::int64_t from_us = 0;
  ASSERT_TRUE(absl::SimpleAtoi(info->metadata().at("read_from_time_us"), &from_us));
  // What came, and what is read from there on, is everything since the call.
  std::set<Key> all;
  for (const Key& key : Sorted(follower.samples())) all.insert(key);
  EXPECT_EQ(all.size(), follower.samples().size());
  for (const Key& key : Stored("run", from_us)) all.insert(key);
  EXPECT_EQ(std::get<3>(*all.rbegin()), feed.next_value - 1);
  std::int64_t since_call = 0;
  for (const Key& key : all) since_call += std::get<3>(key) >= kChunks * kChunkSamples ? 1 : 0;
  EXPECT_EQ(since_call, kChunks * kChunkSamples);
  EXPECT_GE(from_us, start_us_);
  // A cursor of then says the same.
  auto request = FollowRequest("run");
  request.set_cursor(follower.messages().back().cursor());
  FollowClient again(master_->grpc_address(), request);
  EXPECT_EQ(again.WaitForEnd().error_code(), grpc::StatusCode::OUT_OF_RANGE);
}

TEST_F(FollowTest, FollowersHaveALimitOfTheirOwn) {
  StartMaster({"--follows-max=20"});
  Feed feed;
  Connect(feed, "run");
  Send(feed, 10);
  std::vector<std::unique_ptr<FollowClient>> followers;
  for (int i = 0; i < 20; ++i) {
    followers.push_back(
        std::make_unique<FollowClient>(master_->grpc_address(), FollowRequest("run")));
    ASSERT_TRUE(followers.back()->WaitForMessages(1)) << i;
  }
  FollowClient refused(master_->grpc_address(), FollowRequest("run"));
  const grpc::Status status = refused.WaitForEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("limit 20"));
  EXPECT_EQ(Stored("run").size(), 10U) << "reads have places of their own";
  Send(feed, 5);
  for (const auto& follower : followers) EXPECT_TRUE(follower->WaitForSamples(5));
  followers.pop_back();
  EXPECT_TRUE(Eventually(
      [&] {
        FollowClient next(master_->grpc_address(), FollowRequest("run"));
        return next.WaitForMessages(1, absl::Seconds(1));
      },
      absl::Seconds(10)));
}

}  // namespace
}  // namespace stepwell::testing
