#include "proto/retry_delay.h"

#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/error_details.h"

namespace stepwell {
namespace {

std::string DetailsOf(std::int64_t seconds, std::int32_t nanos) {
  google::rpc::Status status;
  status.add_details()->PackFrom(google::rpc::ErrorInfo());
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(seconds);
  retry.mutable_retry_delay()->set_nanos(nanos);
  status.add_details()->PackFrom(retry);
  return status.SerializeAsString();
}

TEST(RetryDelayTest, IsWhatAMasterSaid) {
  for (const absl::Duration wait :
       {absl::ZeroDuration(), absl::Milliseconds(250), absl::Seconds(90) + absl::Nanoseconds(1)}) {
    const absl::Status status = absl::ResourceExhaustedError("slow down");
    EXPECT_EQ(
        RetryDelayIn(WireDetails(status, {.reason = "R", .retry_delay = wait, .violations = {}})),
        wait);
  }
  EXPECT_EQ(RetryDelayIn(DetailsOf(-2, 0)), -absl::Seconds(2)) << "as it was said";
}

TEST(RetryDelayTest, IsNoneWhereNoneIsSaid) {
  EXPECT_EQ(RetryDelayIn(WireDetails(absl::NotFoundError("no"),
                                     {.reason = "R", .retry_delay = {}, .violations = {}})),
            std::nullopt);
  EXPECT_EQ(RetryDelayIn(""), std::nullopt);
  EXPECT_EQ(RetryDelayIn("\xff\xff no message"), std::nullopt);
  const std::string whole = DetailsOf(1, 0);
  EXPECT_EQ(RetryDelayIn(whole.substr(0, whole.size() - 1)), std::nullopt);
}

}  // namespace
}  // namespace stepwell
