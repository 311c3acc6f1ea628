// FollowClient: one FollowSamples call of a test: a thread reads what comes and notes when. FollowOn: a
// client that goes on with its cursor whatever ends its calls, as clients should.
//
//   FollowClient follower(address, request);
//   ASSERT_TRUE(follower.WaitForSamples(3));
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/worker.h"
#include "stepwell/v1/query.grpc.pb.h"

namespace stepwell::testing {

struct FollowedSample {
  std::int32_t series_no = 0;
  std::int64_t time_us = 0;
  std::int32_t batch = -1;
  double value = 0;
};

// To a master that may come and go.
std::unique_ptr<v1::QueryService::Stub> QueryStub(const std::string& address);
v1::FollowSamplesRequest FollowRequest(const std::string& trial);

class FollowClient {
 public:
  FollowClient(const std::string& address, const v1::FollowSamplesRequest& request);
  // Cancels.
  ~FollowClient();

  bool WaitForMessages(std::size_t count, absl::Duration patience = absl::Seconds(20));
  bool WaitForSamples(std::size_t count, absl::Duration patience = absl::Seconds(20));
  // Until the call ends; what it ended with. DEADLINE_EXCEEDED after `patience`.
  grpc::Status WaitForEnd(absl::Duration patience = absl::Seconds(20));
  // From now on nothing is read until Resume.
  void Pause();
  void Resume();

  std::vector<v1::FollowSamplesResponse> messages() const;
  std::vector<FollowedSample> samples() const;

 private:
  void ReadAll();

  const std::unique_ptr<v1::QueryService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::FollowSamplesResponse>> reader_;
  mutable absl::Mutex mu_;
  bool paused_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<v1::FollowSamplesResponse> messages_ ABSL_GUARDED_BY(mu_);
  std::vector<FollowedSample> samples_ ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mu_);
  Worker thread_;
};

class FollowOn {
 public:
  // Hangs up by itself after a few messages, now and then, as `seed` has it; 0 = never.
  FollowOn(const std::string& address, const v1::FollowSamplesRequest& request, std::uint64_t seed);
  ~FollowOn();

  // Until it has a place.
  bool WaitForBegin(absl::Duration patience = absl::Seconds(20));
  bool WaitForSamples(std::size_t count, absl::Duration patience = absl::Seconds(20));
  // Until the trial has ended. False: not within `patience`.
  bool WaitForEnd(absl::Duration patience);
  std::vector<FollowedSample> samples() const;
  // How many calls it took; what ended one that a cursor does not mend.
  int call_count() const { return call_count_; }
  grpc::Status failure() const;
  // For messages.
  std::string Describe() const;

 private:
  void Run();
  // False when there is nothing to go on with.
  bool FollowOnce();

  const std::string address_;
  const std::uint64_t seed_;
  std::atomic<bool> stop_{false};
  std::atomic<int> call_count_{0};
  mutable absl::Mutex mu_;
  v1::FollowSamplesRequest request_ ABSL_GUARDED_BY(mu_);
  std::vector<FollowedSample> samples_ ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  grpc::Status failure_ ABSL_GUARDED_BY(mu_);
  grpc::Status last_ ABSL_GUARDED_BY(mu_);  // of the call before
  std::size_t message_count_ ABSL_GUARDED_BY(mu_) = 0;
  Worker thread_;
};

}  // namespace stepwell::testing
