// ClockCalls: asks the master's time now and then, beside a stream and on its connection: the fourth of the agent's skins over
// gRPC. When it is due says ClockOffset, which hears the answers. Tend is one thread's; nothing here waits but the destructor,
// which cancels first.
//
//   ClockCalls clocks(channel, offset, clock);
//   clocks.Tend([&] { return token; });  // each second or so
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "client/agent/clock_offset.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace stepwell::agent {

class ClockCalls {
 public:
  // `offset` and `clock` outlive this.
  ClockCalls(const std::shared_ptr<grpc::Channel>& channel, ClockOffset& offset,
             const Clock& clock);
  ~ClockCalls();
  ClockCalls(const ClockCalls&) = delete;
  ClockCalls& operator=(const ClockCalls&) = delete;

  // `token` is asked where a call begins: shown beside what the connection shows; empty = nothing is.
  void Tend(const std::function<std::string()>& token) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Stub;  // clock_calls.cc
  struct Call;

  ClockOffset& offset_;
  const Clock& clock_;
  const std::unique_ptr<Stub> stub_;
  absl::Mutex mu_;
  std::unique_ptr<Call> call_ ABSL_GUARDED_BY(mu_);  // the last one
  bool is_under_way_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace stepwell::agent
