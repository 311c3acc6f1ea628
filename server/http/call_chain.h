// CallChain: unary calls of our own services of which the end of one is the next one's beginning, until
// somebody has gone. Thread-safe; one call is under way at a time.
//
//   chain_.Start<v1::ListTrialsResponse>(from, kListTrials, request, deadline, done);
//   exchange->WhenGone([self] { self->chain_.Cancel(); });
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/http/rpc_unary.h"

namespace stepwell {

class CallChain {
 public:
  // Where it cannot begin, `done` is told so at once; otherwise on a thread "http-rpc".
  template <typename Response, typename Request>
  void Start(const RpcFrom& from, const std::string& method, const Request& request,
             SteadyTime deadline, typename RpcUnary<Response>::Done done) ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::Status begun = Begin<Response>(from, method, request, deadline, done);
    if (begun.ok()) return;
    Response none;
    done({begun.code(), std::string(begun.message())}, none);
  }

  // The call that is under way ends, and so does each that begins after.
  void Cancel() ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::MutexLock lock(&mu_);
    cancelled_ = true;
    if (call_ != nullptr) call_->Cancel();
  }

 private:
  template <typename Response, typename Request>
  absl::Status Begin(const RpcFrom& from, const std::string& method, const Request& request,
                     SteadyTime deadline, const typename RpcUnary<Response>::Done& done)
      ABSL_LOCKS_EXCLUDED(mu_) {
    // Its end may come on another thread before its beginning is known here.
    const absl::MutexLock lock(&mu_);
    auto call = StartUnary<Response>(from, method, request, deadline, done);
    if (!call.ok()) return call.status();
    call_ = *std::move(call);
    if (cancelled_) call_->Cancel();
    return absl::OkStatus();
  }

  absl::Mutex mu_;
  std::shared_ptr<RpcCall> call_ ABSL_GUARDED_BY(mu_);
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace stepwell
