// A client that reads a large trial slowly, cursor after cursor, costs the master little: what it has not taken yet is
// not gathered for it.
#include <fstream>

#include "absl/strings/str_cat.h"
#include "stepwell/v1/query.grpc.pb.h"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

constexpr int kChunkSamples = 50'000;
constexpr int kChunks = 240;
constexpr std::int64_t kSamples = std::int64_t{kChunkSamples} * kChunks;
// A time, a batch, a value: what the client gets is some 220 MB, twice what the master may take for it.
constexpr std::int64_t kGrowthBytesMax = 96 << 20;
// Messages of 10,000 samples that are taken of a call before it is left standing.
constexpr int kMessagesPerCall = 100;

class SlowReadTest : public SpineTest {
 protected:
  void FillTrial() {
    RawStream stream(*client_);
    const Uuid writer = Uuid::Random();
    Open(stream, writer, "large");
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      std::vector<double> values(kChunkSamples);
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<double>(chunk * kChunkSamples + static_cast<int>(i));
      }
      const auto sequence = static_cast<std::uint64_t>(chunk + 1);
      ASSERT_TRUE(stream.Send(
          ChunkMessage(writer, sequence,
                       OneColumn(1, start_us_ + chunk * std::int64_t{kChunkSamples}, 1, values))));
      // Four of them are under way.
      if (sequence > 4) {
        ASSERT_TRUE(stream.WaitAck(writer, sequence - 4).has_value()) << master_->LogTail();
      }
    }
    ASSERT_TRUE(stream.WaitAck(writer, kChunks).has_value()) << master_->LogTail();
    ASSERT_TRUE(stream.Send(CloseMessage(writer, kChunks)));
    ASSERT_TRUE(client_->Flush(absl::Seconds(60)).ok()) << master_->LogTail();
  }
  // By the kernel: VmRSS, what it takes now, or VmHWM, the most that it took.
  std::int64_t MemoryBytes(const std::string& key) const {
    std::ifstream status(absl::StrCat("/proc/", master_->pid(), "/status"));
    for (std::string word; status >> word;) {
      if (word != key + ":") continue;
      std::int64_t kib = 0;
      status >> kib;
      return kib << 10;
    }
    return 0;
  }
  // On a connection of its own, whose window stays small: what a stalled client leaves unread is the master's.
  std::unique_ptr<v1::QueryService::Stub> SmallWindow() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 65536);
    return v1::QueryService::NewStub(grpc::CreateCustomChannel(
        master_->grpc_address(), grpc::InsecureChannelCredentials(), arguments));
  }
  // Takes some messages of what is behind the cursor in `request` and moves it; then the call stands, with the rest
  // unread, before it is given up. True: that was all.
  bool TakeSome(v1::QueryService::Stub& query, v1::ReadSamplesRequest& request, int messages) {
    grpc::ClientContext context;
    const auto reader = query.ReadSamples(&context, request);
    v1::ReadSamplesResponse response;
    for (int i = 0; i < messages; ++i) {
      if (!reader->Read(&response)) {
        const grpc::Status status = reader->Finish();
        EXPECT_TRUE(status.ok()) << status.error_message() << "\n" << master_->LogTail();
        return true;
      }
      for (const double value : response.values()) EXPECT_EQ(value, next_value_++);
      if (response.has_completeness()) return true;
      request.set_cursor(response.cursor());
    }
    // As long as a master that gathers would need to gather all of it.
    Eventually([] { return false; }, absl::Seconds(1));
    context.TryCancel();
    return false;
  }

  const std::int64_t start_us_ = NowUs() - 3'600'000'000;
  double next_value_ = 0;
};

TEST_F(SlowReadTest, WhatALargeTrialsReaderHasNotTakenIsNotGathered) {
  StartMaster({"--fold-interval", "100ms"});
  FillTrial();
  // One that has not taken it all in just now.
  master_->Stop();
  ASSERT_TRUE(master_->StartAndWait()) << master_->LogTail();
  const auto query = SmallWindow();
  v1::ReadSamplesRequest request;
  request.mutable_trial()->set_external_id("large");
  ASSERT_FALSE(TakeSome(*query, request, 1));
  const std::int64_t before = MemoryBytes("VmRSS");
  ASSERT_GT(before, 0);
  while (!HasFailure() && !TakeSome(*query, request, kMessagesPerCall)) continue;
  EXPECT_EQ(next_value_, static_cast<double>(kSamples));
  const std::int64_t most = MemoryBytes("VmHWM");
  std::printf("resident %lld MiB, at most %lld MiB while %lld samples were read\n",
              static_cast<long long>(before >> 20), static_cast<long long>(most >> 20),
              static_cast<long long>(kSamples));
  EXPECT_LT(most - before, kGrowthBytesMax);
}

}  // namespace
}  // namespace stepwell::testing
