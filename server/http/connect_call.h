// ConnectCall: one call of the Connect protocol between the client's exchange and the service's: turns the
// request into bytes, and what comes back into answers. Used by RpcChannel, one call after the other.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "server/http/connect_request.h"
#include "server/http/http_exchange.h"
#include "server/http/rpc_channel.h"

namespace google::protobuf {
class MethodDescriptor;
}  // namespace google::protobuf

namespace stepwell {

class ConnectCall : public RpcReceiver {
 public:
  ConnectCall(const google::protobuf::MethodDescriptor& method, ConnectRequest request,
              std::shared_ptr<HttpExchange> exchange, std::size_t request_bytes_max);

  absl::StatusOr<std::string> MakeRequest() override;
  void OnHeaders(RpcMetadata headers) override;
  void OnMessage(const std::shared_ptr<RpcCall>& call, const SharedBytes& bytes) override;
  void OnEnd(const RpcStatus& status) override;

 private:
  void AnswerUnary(const RpcStatus& status);
  void Answer(HttpResponse response);
  void BeginStream();
  // Whether the client may be given that; a failure, which ends the call, is kept.
  bool HasRoom(std::size_t bytes);
  // A message as the client wants it; a failure as with HasRoom.
  bool Encode(std::string& bytes);

  const google::protobuf::MethodDescriptor& method_;
  ConnectRequest request_;
  std::shared_ptr<HttpExchange> exchange_;  // gone with the end
  const std::size_t request_bytes_max_;
  // What the service began its answer with.
  HttpHeaders headers_;
  RpcStatus failed_;
  std::string answer_;
  bool begun_ = false;
};

absl::Status TooLargeRequest(std::size_t bytes_max);
// Of a call that ends before a service heard of it. REQUIRES: not OK.
HttpResponse ConnectFailure(ConnectForm form, const RpcStatus& status);

}  // namespace stepwell
