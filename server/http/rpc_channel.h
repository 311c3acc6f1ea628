// RpcChannel: calls of our own gRPC services from within the process, by name and in bytes, so that other
// doors than gRPC's lead to the same rooms: the same checks, turns, deadlines and errors. It waits for
// nobody: a call is a state machine on the threads "http-rpc", and takes a message of a stream only when the
// one before was taken, so that a slow reader holds back the service and no memory here. Thread-safe.
//
//   RpcChannel rpc(2);
//   rpc.Open(server);                                        // once gRPC serves
//   auto call = rpc.Start("/stepwell.v1.QueryService/GetTrial", sender, deadline, receiver);
//   rpc.Stop();
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/steady_time.h"
#include "server/http/rpc_status.h"
#include "server/http/shared_bytes.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace stepwell {

// A call that is under way.
class RpcCall {
 public:
  virtual ~RpcCall() = default;
  // The message was taken; the next may come.
  virtual void Next() = 0;
  // Its receiver still hears its end.
  virtual void Cancel() = 0;
};

// Who asked; called on the threads "http-rpc", one call after the other.
class RpcReceiver {
 public:
  virtual ~RpcReceiver() = default;
  // Made there, as it may cost something. A failure ends the call.
  virtual absl::StatusOr<std::string> MakeRequest() = 0;
  // The metadata that begins the answer: once, before the first message or, where there is none, the end; of a call whose
  // request was made.
  virtual void OnHeaders(RpcMetadata /*headers*/) {}
  // Then nothing until Next.
  virtual void OnMessage(const std::shared_ptr<RpcCall>& call, const SharedBytes& bytes) = 0;
  // Once, last.
  virtual void OnEnd(const RpcStatus& status) = 0;
};

// In whose name a call is made.
struct RpcSender {
  std::string authorization;  // as HeaderOf makes it; empty: no token was shown
  std::string peer;           // the address that it comes from, as AddressKey; empty: not known
};

// Metadata of calls from within the process; from elsewhere it means nothing.
inline constexpr char kPeerMetadata[] = "stepwell-peer";

class RpcChannel {
 public:
  explicit RpcChannel(int thread_count);
  ~RpcChannel();

  void Open(std::shared_ptr<grpc::Channel> channel);
  // `method` as "/package.Service/Method". kUnavailable: not open yet, or stopped. kInvalidArgument:
  // `sender.authorization` is not printable ASCII.
  absl::StatusOr<std::shared_ptr<RpcCall>> Start(const std::string& method, const RpcSender& sender,
                                                 SteadyTime deadline,
                                                 std::shared_ptr<RpcReceiver> receiver);
  // Before who serves the calls stops: none begins from here on, and one that is cancelled ends with
  // kUnavailable.
  void StopTaking();
  // Cancels what is under way and waits for its end. Twice is fine.
  void Stop();

 private:
  class Call;
  struct State;  // rpc_channel.cc
  const std::unique_ptr<State> state_;
};

}  // namespace stepwell
