#include "tests/faults/programs/raw_connection.h"

#include <algorithm>
#include <cstdio>

namespace stepwell::faults {

RawConnection::RawConnection(const std::string& server, Refusals refusals) : refusals_(refusals) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  stub_ = v1::IngestService::NewStub(
      grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), arguments));
  stream_ = stub_->StreamChunks(&context_);
  reader_ = std::thread([this] { Read(); });
}

RawConnection::~RawConnection() {
  context_.TryCancel();
  reader_.join();
  (void)stream_->Finish();
}

RawConnection::State RawConnection::state() {
  const std::lock_guard<std::mutex> lock(mu_);
  return state_;
}

void RawConnection::WaitForNews(std::chrono::milliseconds patience) {
  std::unique_lock<std::mutex> lock(mu_);
  changed_.wait_for(lock, patience, [this] { return news_; });
  news_ = false;
}

void RawConnection::Read() {
  v1::StreamChunksResponse message;
  while (stream_->Read(&message)) {
    const std::lock_guard<std::mutex> lock(mu_);
    TakeLocked(message);
    news_ = true;
    changed_.notify_all();
  }
  const std::lock_guard<std::mutex> lock(mu_);
  state_.broken = news_ = true;
  changed_.notify_all();
}

void RawConnection::TakeLocked(const v1::StreamChunksResponse& message) {
  if (message.has_opened()) {
    ++state_.opened_count;
    state_.opened = message.opened();
    state_.committed = message.opened().committed_sequence();
    state_.credit_bytes = message.opened().credit_bytes();
  } else if (message.has_ack()) {
    state_.committed = std::max(state_.committed, message.ack().committed_sequence());
    state_.credit_bytes = message.ack().credit_bytes();
    state_.closed = state_.closed || message.ack().closed();
  } else if (message.has_refused()) {
    TakeRefusedLocked(message.refused());
  }
}

void RawConnection::TakeRefusedLocked(const v1::Refused& refused) {
  if (refused.reason() == "SERIES_LIMIT") {
    // Some of the definitions alone; what is sent of them is told as a gap.
    std::printf("refused %s: %s\n", refused.reason().c_str(), refused.message().c_str());
    std::fflush(stdout);
  } else if (refusals_ == Refusals::kCount && !refused.terminal()) {
    ++state_.refused_count;
    state_.expected = refused.expected_sequence();
    state_.refused_reasons.insert(refused.reason());
  } else {
    state_.broken = true;
    state_.why = refused.reason() + ": " + refused.message();
  }
}

}  // namespace stepwell::faults
