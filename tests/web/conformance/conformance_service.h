// ConformanceService: what connectrpc/conformance calls. Answers as its request says, and tells what it was asked.
// Thread-safe.
#pragma once

#include <grpcpp/grpcpp.h>

#include "connectrpc/conformance/v1/service.grpc.pb.h"
#include "tests/web/conformance/asked_requests.h"

namespace stepwell {

// What it does not override is unimplemented.
class ConformanceService final : public connectrpc::conformance::v1::ConformanceService::Service {
 public:
  // `asked` outlives this.
  explicit ConformanceService(AskedRequests& asked) : asked_(asked) {}

  grpc::Status Unary(grpc::ServerContext* context,
                     const connectrpc::conformance::v1::UnaryRequest* request,
                     connectrpc::conformance::v1::UnaryResponse* response) override;
  grpc::Status IdempotentUnary(
      grpc::ServerContext* context,
      const connectrpc::conformance::v1::IdempotentUnaryRequest* request,
      connectrpc::conformance::v1::IdempotentUnaryResponse* response) override;
  grpc::Status ServerStream(
      grpc::ServerContext* context, const connectrpc::conformance::v1::ServerStreamRequest* request,
      grpc::ServerWriter<connectrpc::conformance::v1::ServerStreamResponse>* writer) override;

 private:
  AskedRequests& asked_;
};

}  // namespace stepwell
