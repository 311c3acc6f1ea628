// TrialReading: the newest values of the machines of one trial, asked of our own services: in one call where
// the trial has few series, else one metric group after the other, as a training may have many of its own.
// Calls nothing once it was cancelled but `done`. Thread-safe.
//
//   auto reading = std::make_shared<TrialReading>(from, trial, deadline, [](const RpcStatus& status) { ... });
//   reading->Start();
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "base/steady_time.h"
#include "server/http/call_chain.h"
#include "server/http/rpc_from.h"
#include "stepwell/v1/query.pb.h"

namespace stepwell {

class TrialReading : public std::enable_shared_from_this<TrialReading> {
 public:
  // Once: when all is here, or a call has failed. On a thread "http-rpc", or within Start.
  using Done = std::function<void(const RpcStatus&)>;

  // `from` names an RpcChannel that outlives this.
  TrialReading(RpcFrom from, v1::Trial trial, SteadyTime deadline, Done done);

  void Start();
  void Cancel() { chain_.Cancel(); }

  const v1::Trial& trial() const { return trial_; }
  // Once it is done.
  const v1::LatestValuesResponse& latest() const { return latest_; }

 private:
  void Next();
  void Take(const RpcStatus& status, v1::LatestValuesResponse& answer);
  void End(const RpcStatus& status);

  const RpcFrom from_;
  const v1::Trial trial_;
  const SteadyTime deadline_;
  // One call is under way at a time, and its end is the next one's beginning.
  Done done_;
  const bool is_small_;
  std::size_t next_group_ = 0;
  v1::LatestValuesResponse latest_;
  CallChain chain_;
};

}  // namespace stepwell
