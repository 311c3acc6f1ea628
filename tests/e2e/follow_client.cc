#include "tests/e2e/follow_client.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace stepwell::testing {
namespace {

void Append(const v1::FollowSamplesResponse& message, std::vector<FollowedSample>& samples) {
  for (const auto& series : message.samples()) {
    for (int i = 0; i < series.values_size(); ++i) {
      samples.push_back(
          {series.series_no(), series.timestamps_us(i), series.batches(i), series.values(i)});
    }
  }
}

}  // namespace

std::unique_ptr<v1::QueryService::Stub> QueryStub(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return v1::QueryService::NewStub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
}

v1::FollowSamplesRequest FollowRequest(const std::string& trial) {
  v1::FollowSamplesRequest request;
  request.mutable_trial()->set_external_id(trial);
  return request;
}

FollowClient::FollowClient(const std::string& address, const v1::FollowSamplesRequest& request)
    : stub_(QueryStub(address)), reader_(stub_->FollowSamples(&context_, request)) {
  thread_ = Worker("follow", [this] { ReadAll(); });
}

FollowClient::~FollowClient() {
  Resume();
  context_.TryCancel();
  thread_.Join();
}

void FollowClient::ReadAll() {
  const auto may_read = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !paused_; };
  v1::FollowSamplesResponse message;
  while (reader_->Read(&message)) {
    absl::MutexLock lock(&mu_);
    Append(message, samples_);
    messages_.push_back(std::move(message));
    mu_.Await(absl::Condition(&may_read));
  }
  const grpc::Status status = reader_->Finish();
  absl::MutexLock lock(&mu_);
  status_ = status;
  ended_ = true;
}

bool FollowClient::WaitForMessages(std::size_t count, absl::Duration patience) {
  const auto enough = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return messages_.size() >= count; };
  absl::MutexLock lock(&mu_);
  return mu_.AwaitWithTimeout(absl::Condition(&enough), patience);
}

bool FollowClient::WaitForSamples(std::size_t count, absl::Duration patience) {
  const auto enough = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return samples_.size() >= count; };
  absl::MutexLock lock(&mu_);
  return mu_.AwaitWithTimeout(absl::Condition(&enough), patience);
}

grpc::Status FollowClient::WaitForEnd(absl::Duration patience) {
  absl::MutexLock lock(&mu_);
  if (mu_.AwaitWithTimeout(absl::Condition(&ended_), patience)) return status_;
  return {grpc::StatusCode::DEADLINE_EXCEEDED, "the call goes on"};
}

void FollowClient::Pause() {
  absl::MutexLock lock(&mu_);
  paused_ = true;
}

void FollowClient::Resume() {
  absl::MutexLock lock(&mu_);
  paused_ = false;
}

std::vector<v1::FollowSamplesResponse> FollowClient::messages() const {
  absl::MutexLock lock(&mu_);
  return messages_;
}

std::vector<FollowedSample> FollowClient::samples() const {
  absl::MutexLock lock(&mu_);
  return samples_;
}

FollowOn::FollowOn(const std::string& address, const v1::FollowSamplesRequest& request,
                   std::uint64_t seed)
    : address_(address), seed_(seed), request_(request) {
  thread_ = Worker("follow-on", [this] { Run(); });
}

FollowOn::~FollowOn() {
  stop_ = true;
  thread_.Join();
}

void FollowOn::Run() {
  while (!stop_ && FollowOnce()) {
    // Between two tries at a master that is not there.
    absl::SleepFor(absl::Milliseconds(20));
  }
}

bool FollowOn::FollowOnce() {
  ++call_count_;
  std::mt19937_64 random(seed_ + static_cast<std::uint64_t>(call_count_));
  const auto stub = QueryStub(address_);
  grpc::ClientContext context;
  const auto reader = stub->FollowSamples(&context, [this] {
    absl::MutexLock lock(&mu_);
    return request_;
  }());
  v1::FollowSamplesResponse message;
  bool hung_up = false;
  while (reader->Read(&message)) {
    // What comes after the message that it hung up at is not taken: the cursor brings it again.
    if (hung_up) continue;
    absl::MutexLock lock(&mu_);
    Append(message, samples_);
    ++message_count_;
    request_.set_cursor(message.cursor());
    hung_up = stop_ || (seed_ != 0 && random() % 20 == 0);
    if (hung_up) context.TryCancel();
  }
  const grpc::Status status = reader->Finish();
  absl::MutexLock lock(&mu_);
  last_ = status;
  ended_ = status.ok() && !hung_up;
  const bool again = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                     status.error_code() == grpc::StatusCode::CANCELLED;
  if (status.ok() || again) return !ended_;
  failure_ = status;
  return false;
}

bool FollowOn::WaitForBegin(absl::Duration patience) {
  const auto begun = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !request_.cursor().empty(); };
  absl::MutexLock lock(&mu_);
  return mu_.AwaitWithTimeout(absl::Condition(&begun), patience);
}

bool FollowOn::WaitForSamples(std::size_t count, absl::Duration patience) {
  const auto enough = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return samples_.size() >= count || !failure_.ok();
  };
  absl::MutexLock lock(&mu_);
  return mu_.AwaitWithTimeout(absl::Condition(&enough), patience) && failure_.ok();
}

bool FollowOn::WaitForEnd(absl::Duration patience) {
  const auto over = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return ended_ || !failure_.ok(); };
  absl::MutexLock lock(&mu_);
  return mu_.AwaitWithTimeout(absl::Condition(&over), patience) && failure_.ok();
}

std::vector<FollowedSample> FollowOn::samples() const {
  absl::MutexLock lock(&mu_);
  return samples_;
}

std::string FollowOn::Describe() const {
  absl::MutexLock lock(&mu_);
  return absl::StrCat(call_count_.load(), " calls, ", message_count_, " messages, ",
                      samples_.size(), " samples; the call before ended ", last_.error_code(), " ",
                      last_.error_message(), "; failure: ", failure_.error_message());
}

grpc::Status FollowOn::failure() const {
  absl::MutexLock lock(&mu_);
  return failure_;
}

}  // namespace stepwell::testing
