#include "server/http/rpc_channel.h"

#include <grpcpp/alarm.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/check.h"
#include "base/worker.h"
#include "server/grpc_deadline.h"
#include "server/http/inner_peer.h"

namespace stepwell {
namespace {

// Without gRPC's own, which says how the call ended and how it was packed.
RpcMetadata MetadataOf(const std::multimap<grpc::string_ref, grpc::string_ref>& sent) {
  RpcMetadata metadata;
  for (const auto& [name, value] : sent) {
    if (name.starts_with("grpc-")) continue;
    metadata.emplace_back(std::string(name.data(), name.size()),
                          std::string(value.data(), value.size()));
  }
  return metadata;
}

// REQUIRES: the call of `context` has ended.
RpcStatus StatusOf(const grpc::Status& status, const grpc::ClientContext& context) {
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message(),
          status.error_details(), MetadataOf(context.GetServerTrailingMetadata())};
}

// What its calls wait for comes from within the process. A thread that waited in gRPC's own way would take its turn at all
// sockets of the process, and hand each event of a stream on to a thread of streams: two switches of threads more for each.
class InnerQueue final : public grpc::CompletionQueue {
 public:
  InnerQueue()
      : CompletionQueue(grpc_completion_queue_attributes{GRPC_CQ_CURRENT_VERSION, GRPC_CQ_NEXT,
                                                         GRPC_CQ_NON_POLLING, nullptr}) {}
};

constexpr char kStopping[] = "this master is stopping";

bool IsHeaderText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

RpcStatus Stopping() { return {absl::StatusCode::kUnavailable, kStopping}; }

SharedBytes BytesOf(const grpc::ByteBuffer& buffer) {
  const auto slices = std::make_shared<std::vector<grpc::Slice>>();
  if (!buffer.Dump(slices.get()).ok()) return {};
  std::vector<std::string_view> pieces;
  for (const grpc::Slice& slice : *slices) {
    pieces.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return {pieces, slices};
}

}  // namespace

struct RpcChannel::State {
  InnerQueue queue;
  absl::Mutex mu;
  std::unique_ptr<grpc::GenericStub> stub ABSL_GUARDED_BY(mu);
  bool stopping ABSL_GUARDED_BY(mu) = false;
  bool stopped ABSL_GUARDED_BY(mu) = false;
  std::set<std::shared_ptr<Call>> calls ABSL_GUARDED_BY(mu);
  std::vector<Worker> workers;
};

// Exactly one operation is under way, or none while the receiver is given a message or holds it.
class RpcChannel::Call : public RpcCall, public std::enable_shared_from_this<Call> {
 public:
  Call(State& state, grpc::GenericStub& stub, std::string method,
       std::shared_ptr<RpcReceiver> receiver)
      : state_(state), stub_(stub), method_(std::move(method)), receiver_(std::move(receiver)) {}

  // To a thread that may work.
  void Begin(const RpcSender& sender, SteadyTime deadline) {
    if (!sender.authorization.empty()) context_.AddMetadata("authorization", sender.authorization);
    if (!sender.peer.empty()) context_.AddMetadata(kPeerMetadata, InnerPeerText(sender.peer));
    context_.set_deadline(ToGrpcTime(deadline));
    alarm_.Set(&state_.queue, gpr_now(GPR_CLOCK_MONOTONIC), this);
  }
  void Proceed(bool ok);

  void Next() override {
    const absl::MutexLock lock(&mu_);
    if (step_ == Step::kHeld) return ReadLocked();
    // From within OnMessage: done when that is through.
    next_wanted_ = true;
  }
  void Cancel() override {
    const absl::MutexLock lock(&mu_);
    context_.TryCancel();
    if (step_ == Step::kHeld) return FinishLocked();
    cancelled_ = true;
  }

 private:
  enum class Step { kBegin, kStart, kWrite, kRead, kGive, kHeld, kFinish };

  void ReadLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    step_ = Step::kRead;
    stream_->Read(&message_, this);
  }
  void FinishLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    step_ = Step::kFinish;
    stream_->Finish(&status_, this);
  }
  void Send();
  // REQUIRES: a read, or the end, is through.
  void TellHeaders();
  void Give();
  void End(RpcStatus status);

  State& state_;
  grpc::GenericStub& stub_;
  const std::string method_;
  std::shared_ptr<RpcReceiver> receiver_;
  grpc::ClientContext context_;
  grpc::Alarm alarm_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer message_;
  grpc::Status status_;
  bool told_headers_ = false;
  absl::Mutex mu_;
  Step step_ ABSL_GUARDED_BY(mu_) = Step::kBegin;
  // Said while a message was being given.
  bool next_wanted_ ABSL_GUARDED_BY(mu_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

void RpcChannel::Call::Proceed(bool ok) {
  // Last is called without the lock, as the receiver may call back.
  bool is_begin = false;
  bool is_end = false;
  {
    const absl::MutexLock lock(&mu_);
    switch (step_) {
      case Step::kBegin:
        is_begin = true;
        break;
      case Step::kStart:
        if (!ok) return FinishLocked();
        step_ = Step::kWrite;
        return stream_->WriteLast(request_, grpc::WriteOptions(), this);
      case Step::kWrite:
        if (!ok) return FinishLocked();
        return ReadLocked();
      case Step::kRead:
        if (!ok) return FinishLocked();
        step_ = Step::kGive;
        break;
      case Step::kFinish:
        is_end = true;
        break;
      case Step::kGive:
      case Step::kHeld:
        STEPWELL_CHECK(false);  // nothing was asked of gRPC
    }
  }
  if (is_begin) return Send();
  TellHeaders();
  if (is_end) return End(StatusOf(status_, context_));
  Give();
}

void RpcChannel::Call::TellHeaders() {
  if (std::exchange(told_headers_, true)) return;
  receiver_->OnHeaders(MetadataOf(context_.GetServerInitialMetadata()));
}

void RpcChannel::Call::Give() {
  const SharedBytes bytes = BytesOf(message_);
  message_.Clear();
  receiver_->OnMessage(shared_from_this(), bytes);
  const absl::MutexLock lock(&mu_);
  if (cancelled_) return FinishLocked();
  if (std::exchange(next_wanted_, false)) return ReadLocked();
  step_ = Step::kHeld;
}

void RpcChannel::Call::Send() {
  absl::StatusOr<std::string> request = receiver_->MakeRequest();
  if (!request.ok()) {
    return End({request.status().code(), std::string(request.status().message())});
  }
  const grpc::Slice slice(*request);
  request_ = grpc::ByteBuffer(&slice, 1);
  stream_ = stub_.PrepareCall(&context_, method_, &state_.queue);
  const absl::MutexLock lock(&mu_);
  step_ = Step::kStart;
  stream_->StartCall(this);
}

void RpcChannel::Call::End(RpcStatus status) {
  const std::shared_ptr<Call> self = shared_from_this();
  {
    const absl::MutexLock lock(&state_.mu);
    // Not by its caller, who went or would not know why.
    if (state_.stopping && status.code == absl::StatusCode::kCancelled) status = Stopping();
  }
  std::exchange(receiver_, nullptr)->OnEnd(status);
  const absl::MutexLock lock(&state_.mu);
  state_.calls.erase(self);
}

RpcChannel::RpcChannel(int thread_count) : state_(std::make_unique<State>()) {
  for (int i = 0; i < thread_count; ++i) {
    state_->workers.emplace_back("http-rpc", [queue = &state_->queue] {
      void* call = nullptr;
      bool ok = false;
      while (queue->Next(&call, &ok)) static_cast<Call*>(call)->Proceed(ok);
    });
  }
}

RpcChannel::~RpcChannel() { Stop(); }

void RpcChannel::Open(std::shared_ptr<grpc::Channel> channel) {
  const absl::MutexLock lock(&state_->mu);
  state_->stub = std::make_unique<grpc::GenericStub>(std::move(channel));
}

absl::StatusOr<std::shared_ptr<RpcCall>> RpcChannel::Start(const std::string& method,
                                                           const RpcSender& sender,
                                                           SteadyTime deadline,
                                                           std::shared_ptr<RpcReceiver> receiver) {
  // gRPC ends the process where metadata has other bytes.
  if (!IsHeaderText(sender.authorization)) {
    return absl::InvalidArgumentError("authorization: only printable ASCII is allowed");
  }
  const absl::MutexLock lock(&state_->mu);
  if (state_->stopping) return absl::UnavailableError(kStopping);
  if (state_->stub == nullptr) return absl::UnavailableError("this master is starting");
  auto call = std::make_shared<Call>(*state_, *state_->stub, method, std::move(receiver));
  state_->calls.insert(call);
  call->Begin(sender, deadline);
  return call;
}

void RpcChannel::StopTaking() {
  const absl::MutexLock lock(&state_->mu);
  state_->stopping = true;
}

void RpcChannel::Stop() {
  StopTaking();
  std::set<std::shared_ptr<Call>> calls;
  {
    const absl::MutexLock lock(&state_->mu);
    if (std::exchange(state_->stopped, true)) return;
    calls = state_->calls;
  }
  for (const auto& call : calls) call->Cancel();
  {
    const absl::MutexLock lock(&state_->mu);
    const auto is_empty = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu) {
      return state_->calls.empty();
    };
    state_->mu.Await(absl::Condition(&is_empty));
  }
  state_->queue.Shutdown();
  for (Worker& worker : state_->workers) worker.Join();
}

}  // namespace stepwell
