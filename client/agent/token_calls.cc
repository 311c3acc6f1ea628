#include "client/agent/token_calls.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/agent/stream.h"
#include "stepwell/v1/token.grpc.pb.h"

namespace stepwell::agent {
namespace {

constexpr int kPatienceSeconds = 5;

class GrpcTokenCalls : public TokenCalls {
 public:
  explicit GrpcTokenCalls(std::shared_ptr<TlsReload> tls) : tls_(std::move(tls)) {}

  absl::StatusOr<v1::FetchIngestTokenResponse> Fetch(
      const std::string& server, const std::string& token,
      const v1::FetchIngestTokenRequest& request) override {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    const auto stub = v1::TokenService::NewStub(grpc::CreateCustomChannel(
        "dns:///" + server, MasterCredentials(tls_.get(), token), arguments));
    grpc::ClientContext context;
    context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                      gpr_time_from_seconds(kPatienceSeconds, GPR_TIMESPAN)));
    {
      const absl::MutexLock lock(&mu_);
      if (is_cancelled_) return absl::CancelledError("the agent is leaving");
      context_ = &context;
    }
    v1::FetchIngestTokenResponse response;
    const grpc::Status status = stub->FetchIngestToken(&context, request, &response);
    const absl::MutexLock lock(&mu_);
    context_ = nullptr;
    if (status.ok()) return response;
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  }

  void Cancel() override {
    const absl::MutexLock lock(&mu_);
    is_cancelled_ = true;
    if (context_ != nullptr) context_->TryCancel();
  }

 private:
  const std::shared_ptr<TlsReload> tls_;
  absl::Mutex mu_;
  bool is_cancelled_ ABSL_GUARDED_BY(mu_) = false;
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mu_) = nullptr;
};

}  // namespace

std::unique_ptr<TokenCalls> MakeTokenCalls(std::shared_ptr<TlsReload> tls) {
  return std::make_unique<GrpcTokenCalls>(std::move(tls));
}

}  // namespace stepwell::agent
