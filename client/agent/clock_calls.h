// ClockCalls: asks the master's time now and then, beside a stream and on its connection: the fourth of the agent's skins over
// gRPC. When it is due says ClockOffset, which hears the answers. Each call is made, and its answer stamped, by a thread of its
// own, which nothing else keeps from hearing it.
//
//   ClockCalls clocks(channel, offset, clock);
//   clocks.Tend([&] { return token; });  // each second or so; waits for nobody
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/worker.h"
#include "client/agent/clock_offset.h"

namespace grpc {
class Channel;
class ClientContext;
}  // namespace grpc

namespace stepwell::agent {

class ClockCalls {
 public:
  // `offset` and `clock` outlive this.
  ClockCalls(std::shared_ptr<grpc::Channel> channel, ClockOffset& offset, const Clock& clock);
  // The call under way is cancelled.
  ~ClockCalls();
  ClockCalls(const ClockCalls&) = delete;
  ClockCalls& operator=(const ClockCalls&) = delete;

  // `token` is asked where a call begins: shown beside what the connection shows. Empty, or no text for a header: nothing is.
  void Tend(const std::function<std::string()>& token) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  void Ask(const std::string& token) ABSL_LOCKS_EXCLUDED(mu_);

  const std::shared_ptr<grpc::Channel> channel_;
  ClockOffset& offset_;
  const Clock& clock_;
  absl::Mutex mu_;
  bool is_leaving_ ABSL_GUARDED_BY(mu_) = false;
  bool is_under_way_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<std::string> wanted_ ABSL_GUARDED_BY(mu_);       // a call, with this token
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mu_) = nullptr;  // of the call under way
  Worker worker_;
};

}  // namespace stepwell::agent
