// Three clients name thousands of new series each, beside trainers of the same trial, which then has no room for
// all of them. The trainers' samples arrive exactly and go on arriving; which series found no room is told to
// each client, series by series, and what it sends of them is a gap that counts it. So it is of a million.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/uuid.h"
#include "stepwell/v1/ingest.grpc.pb.h"
#include "tests/faults/database_text.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

constexpr int kFlooders = 3;
constexpr int kFirstFlooder = 10;
constexpr int kSeriesEach = 5000;
constexpr int kChunksEach = 8;
constexpr int kRoom = 8000;
constexpr int kBeyond = kFlooders * kSeriesEach - kRoom;
// server/limits.h
constexpr int kSeriesOfTrial = 200'000;
constexpr int kMillion = 1'000'000;
constexpr int kFloodingStreams = 8;
constexpr int kSeriesOfWriter = 10'000;
// Beside what makes two processors busy; a chunk comes ten times a second of each.
constexpr absl::Duration kPauseMax = absl::Seconds(5);

// How many series `words` of a refusal name: one, and how many others there were.
std::int64_t CountNamed(absl::string_view words) {
  const std::size_t others = words.find("; and ");
  if (others == absl::string_view::npos) return 1;
  const absl::string_view rest = words.substr(others + 6);
  std::int64_t count = 0;
  EXPECT_TRUE(absl::SimpleAtoi(rest.substr(0, rest.find(' ')), &count)) << words;
  return 1 + count;
}

// Eight streams on each of which one writer after the other names as many new series as a writer may, until there was a
// million of all.
class Million {
 public:
  explicit Million(const std::string& address) {
    for (int i = 0; i < kFloodingStreams; ++i) {
      threads_.emplace_back([this, address] { Flood(address); });
    }
  }
  ~Million() {
    for (std::thread& thread : threads_) thread.join();
  }
  bool done() const { return done_count_ == kFloodingStreams; }
  // Series that were refused, and streams that did not come to their end.
  std::int64_t told_count() const { return told_count_; }
  int broken_count() const { return broken_count_; }

 private:
  using Stream = grpc::ClientReaderWriter<v1::StreamChunksRequest, v1::StreamChunksResponse>;

  void Flood(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = v1::IngestService::NewStub(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
    grpc::ClientContext context;
    const auto stream = stub->StreamChunks(&context);
    int writer = 0;
    while ((writer = writer_next_++) < kMillion / kSeriesOfWriter) {
      if (!Name(*stream, writer)) ++broken_count_;
    }
    context.TryCancel();
    (void)stream->Finish();
    ++done_count_;
  }

  // One writer's life; false where it does not come to its end.
  bool Name(Stream& stream, int rank) {
    const std::string writer = Uuid::Random().ToBytes();
    v1::StreamChunksRequest open, defining, close;
    open.mutable_open()->set_writer(writer);
    open.mutable_open()->set_external_id("faults");
    open.mutable_open()->set_attempt_key("one");
    open.mutable_open()->set_agent_id("flood");
    open.mutable_open()->set_rank(kFirstFlooder + rank);
    defining.mutable_definitions()->set_writer(writer);
    for (int i = 0; i < kSeriesOfWriter; ++i) {
      v1::Definition& definition = *defining.mutable_definitions()->add_definitions();
      definition.set_ref(static_cast<std::uint32_t>(i + 1));
      definition.set_tick_group(1);
      definition.set_metric_group("flood");
      definition.set_name(absl::StrCat("series_", i));
    }
    close.mutable_close()->set_writer(writer);
    if (!stream.Write(open) || !stream.Write(defining) || !stream.Write(close)) return false;
    v1::StreamChunksResponse answer;
    while (stream.Read(&answer)) {
      if (answer.has_refused()) {
        if (answer.refused().reason() != "SERIES_LIMIT") return false;
        told_count_ += CountNamed(answer.refused().message());
      }
      if (answer.has_ack() && answer.ack().closed()) return true;
    }
    return false;
  }

  std::atomic<int> writer_next_{0};
  std::atomic<int> done_count_{0};
  std::atomic<int> broken_count_{0};
  std::atomic<std::int64_t> told_count_{0};
  std::vector<std::thread> threads_;
};

class SeriesFloodTest : public ::testing::Test {
 protected:
  std::uint64_t committed() {
    const auto status = client_.Status();
    return status ? status->chunks_committed() : 0;
  }
  std::int64_t Ask(const std::string& sql) const {
    const std::string text = DatabaseText(master_.database_url(), sql);
    std::int64_t number = -1;
    EXPECT_TRUE(absl::SimpleAtoi(text, &number)) << text;
    return number;
  }
  // By all refusals that producers were sent: each names one, and says how many more there were.
  std::int64_t CountTold() const {
    std::stringstream log;
    log << std::ifstream(scene_.path("producers.log")).rdbuf();
    std::int64_t told = 0;
    for (absl::string_view line : absl::StrSplit(log.str(), '\n')) {
      if (absl::ConsumePrefix(&line, "refused SERIES_LIMIT: ")) told += CountNamed(line);
    }
    return told;
  }

  Scene scene_{"series flood"};
  MasterProcess master_{{.scratch = scene_.path("")}};
  MasterClient client_{master_.grpc_address()};
};

TEST_F(SeriesFloodTest, HarmsNoOthersAndWhatFindsNoRoomIsTold) {
  ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
  scene_.StartAgent(master_.grpc_address());
  for (const int rank : {0, 1}) scene_.StartTrainer(rank, {{"--world-size", "2"}});
  ASSERT_TRUE(scene_.Await("20 chunks", absl::Seconds(60), [&] { return committed() >= 20; }))
      << scene_.Logs() << master_.LogTail();
  // As if it had named so many before.
  ASSERT_EQ(Ask(absl::StrCat("update stepwell.trials set series_count = ", kSeriesOfTrial - kRoom,
                             " returning series_count")),
            kSeriesOfTrial - kRoom);
  for (int i = 0; i < kFlooders; ++i) {
    // Patient: one that comes again is told again.
    scene_.StartRawWriter(kFirstFlooder + i, master_.grpc_address(),
                          {{"--series", absl::StrCat(kSeriesEach)},
                           {"--samples", "1"},
                           {"--chunks", absl::StrCat(kChunksEach)},
                           {"--ack-patience-ms", "120000"}});
  }
  EXPECT_TRUE(scene_.Await("all that found no room is told", absl::Seconds(120),
                           [&] { return CountTold() >= kBeyond; }))
      << scene_.Logs() << master_.LogTail();
  const std::uint64_t before = committed();
  EXPECT_TRUE(
      scene_.Await("60 chunks more", absl::Seconds(60), [&] { return committed() >= before + 60; }))
      << scene_.Logs() << master_.LogTail();
  scene_.StopProducers(absl::Seconds(120));
  EXPECT_EQ(CountTold(), kBeyond);
  EXPECT_EQ(Ask("select series_count from stepwell.trials"), kSeriesOfTrial);
  EXPECT_EQ(Ask("select count(*) from stepwell.series where name like 'raw%'"), kRoom);
  const auto refused = static_cast<std::uint64_t>(kBeyond) * kChunksEach;
  const Verdict verdict = scene_.ExpectExact(master_, Demand::kRecorded,
                                             {.causes = {Cause::kRejected}, .count_max = refused});
  EXPECT_EQ(verdict.declared_count, refused);
  for (const StoredGap& gap : scene_.stored().gaps) {
    EXPECT_TRUE(gap.rank && *gap.rank >= kFirstFlooder) << "a trainer lost something";
  }
  EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
}

TEST_F(SeriesFloodTest, LongAMillionIsCappedCountedAndHarmsNoOthers) {
  ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
  scene_.StartAgent(master_.grpc_address());
  for (const int rank : {0, 1}) scene_.StartTrainer(rank, {{"--world-size", "2"}});
  ASSERT_TRUE(scene_.Await("20 chunks", absl::Seconds(60), [&] { return committed() >= 20; }))
      << scene_.Logs() << master_.LogTail();
  const std::int64_t before = Ask("select series_count from stepwell.trials");
  Million million(master_.grpc_address());
  // Of trainers alone, ten a second of each.
  std::uint64_t seen = committed();
  absl::Time moved = absl::Now();
  absl::Duration longest;
  EXPECT_TRUE(scene_.Await("a million is named", absl::Minutes(15), [&] {
    const std::uint64_t now = committed();
    if (std::exchange(seen, std::max(seen, now)) < now) moved = absl::Now();
    longest = std::max(longest, absl::Now() - moved);
    return million.done();
  })) << master_.LogTail();
  scene_.Say(absl::StrCat("longest without a commit: ", absl::FormatDuration(longest)));
  EXPECT_LT(longest, kPauseMax);
  EXPECT_EQ(million.broken_count(), 0);
  EXPECT_EQ(million.told_count(), kMillion - (kSeriesOfTrial - before));
  EXPECT_EQ(Ask("select series_count from stepwell.trials"), kSeriesOfTrial);
  EXPECT_EQ(Ask("select count(*) from stepwell.series where metric_group = 'flood'"),
            kSeriesOfTrial - before);
  scene_.StopProducers(absl::Seconds(120));
  const Verdict verdict = scene_.ExpectExact(master_, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
  EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
