#include "client/agent/trace_calls.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/agent/stream.h"
#include "proto/retry_delay.h"
#include "stepwell/v1/trace.grpc.pb.h"

namespace stepwell::agent {
namespace {

// As those of the stream: a machine that went without a word is noticed.
constexpr int kPingIntervalMs = 20'000;
constexpr int kPingTimeoutMs = 10'000;

// A master that says when to come again is there and busy, whatever it calls that.
absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  if (RetryDelayIn(status.error_details())) return absl::UnavailableError(status.error_message());
  // No service of a master says this without details, but its door does, where nobody is told apart any more
  // because too many wrong tokens were shown.
  if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED &&
      status.error_details().empty()) {
    return absl::UnavailableError(status.error_message());
  }
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

class GrpcTraceCalls : public TraceCalls {
 public:
  GrpcTraceCalls(std::shared_ptr<TlsReload> tls, UploadTokens tokens)
      : tls_(std::move(tls)), tokens_(std::move(tokens)) {}

  absl::StatusOr<v1::UploadTraceResponse> UploadTo(
      const std::string& server, const std::string& own, const v1::TraceUpload& upload,
      const std::function<bool(v1::TracePart&)>& next) override {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingIntervalMs);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
    // Else a master that vanishes while it is waited for is asked twice, and then waited for without an end.
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    const std::string token = own.empty() ? tokens_.shown(server, upload.trial()) : own;
    const auto stub = v1::TraceService::NewStub(grpc::CreateCustomChannel(
        "dns:///" + server, MasterCredentials(tls_.get(), token), arguments));
    grpc::ClientContext context;
    const UnderWay under_way(*this, context);
    v1::UploadTraceResponse response;
    const auto writer = stub->UploadTrace(&context, &response);
    v1::UploadTraceRequest message;
    *message.mutable_upload() = upload;
    // A write fails where the master has answered already: the end says what.
    bool may_go_on = writer->Write(message);
    while (may_go_on && next(*message.mutable_part())) may_go_on = writer->Write(message);
    writer->WritesDone();
    absl::Status called = FromGrpc(writer->Finish());
    if (absl::IsUnauthenticated(called)) tokens_.on_refused(server, token);
    if (!called.ok()) return called;
    return response;
  }

  void Cancel() override {
    const absl::MutexLock lock(&mu_);
    is_cancelled_ = true;
    if (context_ != nullptr) context_->TryCancel();
  }

  void CancelCall() override {
    const absl::MutexLock lock(&mu_);
    if (context_ != nullptr) context_->TryCancel();
  }

 private:
  // While it lives, Cancel reaches the call.
  class UnderWay {
   public:
    UnderWay(GrpcTraceCalls& calls, grpc::ClientContext& context) : calls_(calls) {
      const absl::MutexLock lock(&calls_.mu_);
      calls_.context_ = &context;
      if (calls_.is_cancelled_) context.TryCancel();
    }
    ~UnderWay() {
      const absl::MutexLock lock(&calls_.mu_);
      calls_.context_ = nullptr;
    }
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

   private:
    GrpcTraceCalls& calls_;
  };

  const std::shared_ptr<TlsReload> tls_;
  const UploadTokens tokens_;
  absl::Mutex mu_;
  bool is_cancelled_ ABSL_GUARDED_BY(mu_) = false;
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mu_) = nullptr;
};

}  // namespace

std::unique_ptr<TraceCalls> MakeTraceCalls(std::shared_ptr<TlsReload> tls, UploadTokens tokens) {
  return std::make_unique<GrpcTraceCalls>(std::move(tls), std::move(tokens));
}

}  // namespace stepwell::agent
