// GrpcAnswers: what is read is paid for, as bytes of messages, in the one place that all answers pass, over gRPC and for
// requests of the HTTP port: as gRPC is given them, of methods that read (AccessRules). A unary answer is owed for, and what
// its caller reads next is refused meanwhile (EnterCall). A stream is slowed instead, as by a client that takes it slowly,
// each message for as long as AnswerPatience has it, and leaves a second's worth to calls beside it. Thread-safe.
//
//   builder.experimental().SetInterceptorCreators(CountAnswers(access));
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <memory>
#include <vector>

#include "server/access_control.h"

namespace stepwell {

using GrpcInterceptors =
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>>;

// `access` outlives the server that they are given to.
GrpcInterceptors CountAnswers(const AccessControl& access);

}  // namespace stepwell
