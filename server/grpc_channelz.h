// ChannelzCalls: the counters that gRPC keeps of its connections (channelz).
//
//   calls.Begin();   // behind the start of the server
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "server/connection_calls.h"

namespace stepwell {

// Of the server of this process that was started last before Begin, nothing before that. Some 20 microseconds for each answer.
class ChannelzCalls final : public ConnectionCalls {
 public:
  // False: there is none.
  bool Begin();
  std::vector<CallCounter> Since(std::int64_t id) override;
  std::optional<std::int64_t> Begun(std::int64_t id) override;

 private:
  std::int64_t server_ = 0;
};

}  // namespace stepwell
