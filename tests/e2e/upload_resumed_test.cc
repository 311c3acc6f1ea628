// An upload that goes on with a large trace has the master read back what it holds: that is paid for as other reads are, and ends
// with its token or its client.
#include <gtest/gtest.h>

#include <list>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "stepwell/v1/trace.grpc.pb.h"
#include "tests/e2e/doors_stand.h"
#include "tests/e2e/error_details.h"
#include "tests/e2e/trace_messages.h"

namespace stepwell::testing {
namespace {

using grpc::StatusCode;

constexpr std::size_t kPartBytes = 1 << 20;
constexpr std::size_t kStoredBytes = 20 * kPartBytes;
// Ten times as much comes at once.
constexpr int kBytesPerSecond = 1 << 20;
constexpr int kPlacesOfOneToken = 8;

class UploadResumedTest : public ::testing::Test {
 protected:
  UploadResumedTest() {
    trial_.set_trial_id(stand_.Record("vision", "run"));
    TraceUploadCall& first = Begin(stand_.admin(), 0, kPartBytes);
    for (std::size_t at = kPartBytes; at < kStoredBytes; at += kPartBytes) {
      EXPECT_TRUE(first.writer->Write(TracePart(at, bytes_.substr(at, kPartBytes))));
    }
    const grpc::Status stored = first.End();
    EXPECT_TRUE(stored.ok()) << stored.error_message();
    EXPECT_EQ(first.response.received_bytes(), kStoredBytes);
  }
  ~UploadResumedTest() override {
    for (TraceUploadCall& each : uploads_) each.context.TryCancel();
  }
  // Says its header and one part.
  TraceUploadCall& Begin(const std::string& token, std::size_t at, std::size_t count) {
    TraceUploadCall& upload = uploads_.emplace_back();
    upload.context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    stubs_.push_back(v1::TraceService::NewStub(stand_.ChannelWith(token)));
    upload.writer = stubs_.back()->UploadTrace(&upload.context, &upload.response);
    EXPECT_TRUE(upload.writer->Write(TraceHeader(trial_, "large.json", bytes_)));
    EXPECT_TRUE(upload.writer->Write(TracePart(at, bytes_.substr(at, count))));
    return upload;
  }
  TraceUploadCall& GoOn(const std::string& token) { return Begin(token, kStoredBytes, kPartBytes); }
  // Whether so much of reading was waited for.
  bool HasWaited(double seconds) {
    constexpr char kName[] = R"(stepwell_limit_slowed_seconds_total{limit="read_bytes"} )";
    for (const absl::string_view line :
         absl::StrSplit(stand_.Curl("/metrics?trial=none", stand_.admin()).body, '\n')) {
      double value = 0;
      if (absl::StartsWith(line, kName) &&
          absl::SimpleAtod(line.substr(sizeof kName - 1), &value)) {
        return value >= seconds;
      }
    }
    ADD_FAILURE() << kName;
    return false;
  }

  DoorsStand stand_{AsksCertificates::kNo,
                    {"--read-bytes-per-second", absl::StrCat(kBytesPerSecond), "--shared-addresses",
                     "127.0.0.1"}};
  const std::string bytes_ = std::string(kStoredBytes + kPartBytes, 't');
  v1::TrialRef trial_;
  std::list<std::unique_ptr<v1::TraceService::Stub>> stubs_;
  std::list<TraceUploadCall> uploads_;
};

TEST_F(UploadResumedTest, ReadsBackNoFasterThanItsTokenMayAndIsWhole) {
  const SteadyTime begin = SteadyTime::Now();
  TraceUploadCall& upload = GoOn(stand_.MakeToken({"write:vision"}));
  const grpc::Status ended = upload.End();
  EXPECT_TRUE(ended.ok()) << ended.error_message();
  EXPECT_TRUE(upload.response.complete());
  // 20 MiB, of which nine seconds' worth come at once.
  EXPECT_GE(SteadyTime::Now() - begin, absl::Seconds(9));
  EXPECT_TRUE(HasWaited(5));
}

TEST_F(UploadResumedTest, EndsWithItsToken) {
  const std::string doomed = stand_.MakeToken({"write:vision"});
  TraceUploadCall& upload = GoOn(doomed);
  ASSERT_TRUE(Eventually([&] { return HasWaited(0.1); }, absl::Seconds(30)));
  stand_.Revoke(doomed);
  const SteadyTime revoked = SteadyTime::Now();
  const grpc::Status ended = upload.End();
  EXPECT_EQ(ended.error_code(), StatusCode::UNAUTHENTICATED) << ended.error_message();
  EXPECT_LT(SteadyTime::Now() - revoked, absl::Seconds(5));
}

TEST_F(UploadResumedTest, GivesItsPlaceBackWhereItsClientWent) {
  const std::string token = stand_.MakeToken({"write:vision"});
  std::vector<TraceUploadCall*> all;
  for (int i = 0; i < kPlacesOfOneToken; ++i) all.push_back(&GoOn(token));
  ASSERT_TRUE(Eventually([&] { return HasWaited(1); }, absl::Seconds(30)));
  const auto begins = [&] {
    TraceUploadCall& one = uploads_.emplace_back();
    one.context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    stubs_.push_back(v1::TraceService::NewStub(stand_.ChannelWith(token)));
    one.writer = stubs_.back()->UploadTrace(&one.context, &one.response);
    one.writer->Write(TraceHeader(trial_, "small.json", "x"));
    return one.End().ok();
  };
  EXPECT_FALSE(begins()) << "its places are taken";
  for (TraceUploadCall* each : all) each->context.TryCancel();
  EXPECT_TRUE(Eventually(begins, absl::Seconds(3)));
}

}  // namespace
}  // namespace stepwell::testing
