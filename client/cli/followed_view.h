// FollowedView: samples as they are pushed, as lines: those of one message by time. Confined to one
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "client/cli/samples_view.h"
#include "stepwell/v1/follow.pb.h"

namespace stepwell::cli {

class FollowedView {
 public:
  // REQUIRES: limit > 0.
  FollowedView(SamplesView::Form form, std::int64_t limit) : form_(form), limit_(limit) {}

  // A new stream: it announces its series again.
  void StreamBegan() { names_.clear(); }
  // The lines of one message, until the limit is reached.
  std::string Lines(const v1::FollowSamplesResponse& response);
  bool full() const { return count_ == limit_; }

 private:
  const SamplesView::Form form_;
  const std::int64_t limit_;
  std::int64_t count_ = 0;
  std::map<std::int32_t, std::string> names_;
};

}  // namespace stepwell::cli
